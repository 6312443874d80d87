"""Keeps engines to AVX2 on a machine that has more: our kernels by a device model, others by what CPUID tells them."""
import json
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent


def environment(folder):
    """For processes that must not see AVX-512, VNNI or AMX (hide_avx512.c, built into `folder`; Linux on x86-64)."""
    library = pathlib.Path(folder) / "hide_avx512.so"
    compiler = shutil.which("clang") or "cc"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(HERE / "hide_avx512.c"), "-o", str(library)], check=True)
    return {"LD_PRELOAD": str(library.resolve())}


def device(folder):
    """avx2.json with the sizes of this machine's caches, which kernels choose by what to write past them."""
    model = json.loads((HERE / "avx2.json").read_text())
    sizes = {}
    for cache in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        size = re.fullmatch(r"(\d+)K", (cache / "size").read_text().strip())
        if size and (cache / "type").read_text().strip() != "Instruction":
            sizes["L" + (cache / "level").read_text().strip()] = int(size[1]) * 1024
    for memory in model["memory"]:
        memory["size_bytes"] = sizes.get(memory["name"], memory.get("size_bytes", 0))
    path = pathlib.Path(folder) / "avx2.json"
    text = json.dumps(model)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    return path
