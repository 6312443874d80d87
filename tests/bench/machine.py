"""Describes the machine and the best rates that it reaches, to be printed with figures."""
import json
import os
import pathlib
import platform
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).with_name("machine_probe.cc")
FLAGS = ["-std=c++20", "-O3", "-ffp-contract=fast", "-pthread"]


class Probe:
    """Builds machine_probe.cc into `folder`, for this machine's instructions or for those of a level ("x86-64-v3")."""

    def __init__(self, folder, compiler=None, level="native"):
        compiler = compiler or shutil.which("clang++") or shutil.which("g++")
        if compiler is None:
            raise RuntimeError("no C++ compiler for machine_probe.cc: apt-get install clang")
        self._program = pathlib.Path(folder) / "machine_probe"
        wide = ["-mprefer-vector-width=512"] if platform.machine() == "x86_64" else []
        subprocess.run([compiler, *FLAGS, f"-march={level}", *wide, str(SOURCE), "-o", str(self._program)], check=True)

    def sample(self, threads, fma_ms=20, copy_ms=0, copy_bytes=None):
        """The fields of machine_probe.cc. `copy_bytes`: read and written, all threads together; None: beyond caches."""
        command = [self._program, threads, fma_ms, copy_ms, *([copy_bytes] if copy_bytes else [])]
        said = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
        return json.loads(said.stdout)


def describe():
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": model, "cpus_usable": len(os.sched_getaffinity(0)), "system": platform.platform(),
            "load_average": os.getloadavg()[0]}
