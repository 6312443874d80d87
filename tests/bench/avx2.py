"""Keeps engines to AVX2 on a machine that has more: our kernels by a device model, others by what CPUID tells them."""
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).parent


def environment(folder, packages):
    """For processes of the engines in those Python packages, which must not see AVX-512, VNNI or AMX (hide_avx512.c,
    built into `folder`; Linux on x86-64). Where CPUID cannot fault, its instructions are looked up in the packages'
    libraries (objdump of binutils)."""
    library = (pathlib.Path(folder) / "hide_avx512.so").resolve()
    compiler = shutil.which("clang") or "cc"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", str(HERE / "hide_avx512.c"), "-o", str(library)], check=True)
    preload = {"LD_PRELOAD": str(library)}
    if subprocess.run(["true"], env=os.environ | preload, stderr=subprocess.DEVNULL).returncode == 0:
        return preload
    sites = library.with_name("cpuid_sites.txt")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sites.write_text("".join(pool.map(cpuid_sites, libraries(packages))))
    return {"LD_AUDIT": str(library), "HIDE_AVX512_SITES": str(sites)}


@contextlib.contextmanager
def applied(environment):
    """Processes that are started meanwhile have these variables."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def libraries(packages):
    """The shared libraries of those packages that are installed."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise RuntimeError(f"AVX-512 cannot be hidden from {package}: no Python module has that name")
        for root in spec.submodule_search_locations:
            yield from sorted({path.resolve() for path in pathlib.Path(root).rglob("*.so*") if path.is_file()})


def cpuid_sites(library):
    """Lines of the list that hide_avx512.c reads: one for each CPUID instruction of the library."""
    lines = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(library)], check=True, capture_output=True,
                           text=True).stdout
    return "".join(f"{library}\t{site}\n" for site in re.findall(r"^ *([0-9a-f]+):\s+cpuid", lines, re.MULTILINE))


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
