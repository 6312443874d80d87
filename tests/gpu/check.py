"""Checks and times every kernel of bundles of target cuda on a GPU.

Each launch runs twice on equal memory: on the GPU, from the bundle's cubin through the driver API, and on the CPU, from
the bundle's own text compiled as C++ (runtime/devices/cuda/testing/cuda_shim.h). The buffers of the launch are
compared, and the GPU continues with the CPU's results, so that each kernel is judged alone. Then the launches are timed
by events, in the bundle's order. It needs the driver, Python's standard library and a C++ compiler.
"""
import argparse
import ctypes
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SHIM = HERE.parents[1] / "runtime/devices/cuda/testing/cuda_shim.h"
BLOCKS_HERE = 3  # of a persistent kernel that run at the same time
ALIGN, SLACK = 64, 64  # runtime/bundle/FORMAT.md
DTYPES = ["f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]
BYTES = dict(f32=4, f64=8, f16=2, bf16=2, i8=1, i16=2, i32=4, i64=8, u8=1, u16=2, u32=4, u64=8, bool=1)
# Relative, and absolute as a share of the largest value: GPU and CPU differ in exp, erf and contracted multiply-adds.
TOLERANCES = dict(f32=(1e-4, 1e-5), f64=(1e-10, 1e-11), f16=(4e-3, 2e-3), bf16=(3.2e-2, 1.6e-2))

pointer = ctypes.c_uint64


class Failure(Exception):
    pass


class Driver:
    """The driver API; each call fails with the driver's words."""

    def __init__(self, number):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Failure("no CUDA driver on this machine: %s" % error)
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), number)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 255, device)
        facts = []
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, MINOR, MULTIPROCESSOR_COUNT, COOPERATIVE_LAUNCH
        for attribute in (75, 76, 16, 95):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
            facts.append(value.value)
        self.name, self.capability = name.value.decode(), tuple(facts[:2])
        self.multiprocessors, self.cooperates = facts[2:]
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)  # CU_STREAM_NON_BLOCKING

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise Failure("%s: %s" % (name, (text.value or b"error %d" % code).decode()))

    def finish(self):
        self.call("cuStreamSynchronize", self.stream)

    def allocate(self, size):
        memory = pointer()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(max(size, 1)))
        return memory.value

    def free(self, memory):
        self.call("cuMemFree_v2", pointer(memory))

    def upload(self, to, source, size):
        if size > 0:
            self.call("cuMemcpyHtoDAsync_v2", pointer(to), ctypes.c_void_p(source), ctypes.c_size_t(size), self.stream)
            self.finish()

    def download(self, to, source, size):
        if size > 0:
            self.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(to), pointer(source), ctypes.c_size_t(size), self.stream)
            self.finish()

    def load(self, code):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(code))
        return module

    def function(self, module, symbol):
        function, threads = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        self.call("cuFuncGetAttribute", ctypes.byref(threads), 0, function)  # CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        return function, threads.value

    def blocks_together(self, function, threads):
        each = ctypes.c_int()
        self.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(each), function, threads,
                  ctypes.c_size_t(0))
        return max(1, each.value * self.multiprocessors) if self.cooperates else 1

    def launch(self, function, threads, blocks, arguments, together):
        values = (pointer * len(arguments))(*arguments)
        places = (ctypes.c_void_p * len(arguments))(
            *(ctypes.addressof(values) + 8 * i for i in range(len(arguments))))
        name, more = ("cuLaunchCooperativeKernel", ()) if together else ("cuLaunchKernel", (None,))
        self.call(name, function, blocks, 1, 1, threads, 1, 1, 0, self.stream, places, *more)

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event):
        self.call("cuEventRecord", event, self.stream)

    def microseconds(self, start, end):
        milliseconds = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
        return 1e3 * milliseconds.value


def build(compiler, text, path):
    """C++ text to a shared object at `path`, and its bytes."""
    source = path.with_suffix(".cc")
    source.write_text(text)
    done = subprocess.run([compiler, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-fno-stack-protector",
                           "-U_FORTIFY_SOURCE", str(source),
                           "-o", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure("%s does not build %s:\n%s" % (compiler, source, done.stderr[:2000]))
    return path.read_bytes()


def as_cpp(text):
    kernels = re.findall(r"__launch_bounds__\((\d+), 1\) (\w+)\(", text)
    return '#include "%s"\n%s\n%s\n' % (
        SHIM, text, "\n".join("FUSION_CUDA_KERNEL(%s, %s)" % (name, threads) for threads, name in kernels))


class HostMemory:
    def __init__(self, size):
        self.bytes = ctypes.create_string_buffer(size + ALIGN)
        self.base = (ctypes.addressof(self.bytes) + ALIGN - 1) // ALIGN * ALIGN


class Check:
    def __init__(self, path, driver, helper, options, folder):
        self.driver, self.helper, self.options, self.folder = driver, helper, options, folder
        with zipfile.ZipFile(path) as bundle:
            self.entries = {name: bundle.read(name) for name in bundle.namelist()}
        self.manifest = json.loads(self.entries["manifest.json"])
        if self.manifest["target"] != "cuda":
            raise Failure("is for target %s" % self.manifest["target"])
        number = int(self.manifest["isa"][3:])
        if number // 10 != driver.capability[0] or number % 10 > driver.capability[1]:
            raise Failure("is for cuda:%s, '%s' is sm_%d%d" % ((self.manifest["isa"], driver.name) + driver.capability))
        if any(call in phase for kernel in self.manifest["kernels"] for phase in kernel["phases"]
               for call in ("product", "convolution")):
            raise Failure("leaves phases to CUDA's libraries, which have no text to compare with: "
                          "compile it with --tune off")
        self.place()
        self.load()

    # The arena, then inputs and outputs; the weights apart. Offsets are the same on the device and on the host.
    def place(self):
        size = self.manifest["arena_bytes"] + SLACK
        self.offsets = []
        for buffer in self.manifest["buffers"]:
            if buffer["kind"] in ("input", "output"):
                size = (size + ALIGN - 1) // ALIGN * ALIGN
                self.offsets.append(size)
                size += buffer["size_bytes"] + SLACK
            else:
                self.offsets.append(buffer["offset"])
        weights = self.entries.get("weights.safetensors", b"")
        if weights:
            weights = weights[8 + int.from_bytes(weights[:8], "little"):]
        self.sizes = {False: size, True: len(weights) + SLACK}
        self.host = {constant: HostMemory(bytes_) for constant, bytes_ in self.sizes.items()}
        ctypes.memmove(self.host[True].base, weights, len(weights))
        for i, buffer in enumerate(self.manifest["buffers"]):
            if buffer["kind"] == "input":
                self.helper.fill(ctypes.c_void_p(self.here(i)), DTYPES.index(buffer["dtype"]),
                                 ctypes.c_int64(buffer["size_bytes"] // BYTES[buffer["dtype"]]), ctypes.c_uint64(i + 1))
        self.device = {constant: self.driver.allocate(bytes_) for constant, bytes_ in self.sizes.items()}
        self.grid_barrier = self.driver.allocate(4)  # of persistent kernels (runtime/devices/cuda/kernel_abi.md)
        nobody = HostMemory(4)
        self.driver.upload(self.grid_barrier, nobody.base, 4)
        for constant, bytes_ in self.sizes.items():
            self.driver.upload(self.device[constant], self.host[constant].base, bytes_)

    def constant(self, buffer):
        return self.manifest["buffers"][buffer]["kind"] == "constant"

    def here(self, buffer):
        return self.host[self.constant(buffer)].base + self.offsets[buffer]

    def there(self, buffer):
        return self.device[self.constant(buffer)] + self.offsets[buffer]

    def load(self):
        self.modules, self.libraries = {}, {}
        for kernel in self.manifest["kernels"]:
            name = kernel["file"]
            if name in self.libraries:
                continue
            path = self.folder / (pathlib.Path(name).stem + ".so")
            if kernel.get("host"):
                path.write_bytes(self.entries[name])
            else:
                code = build(self.options.compiler, as_cpp(self.entries[kernel["source"]].decode()), path)
                self.modules[name] = self.driver.load(code if self.options.shim else self.entries[name])
            self.libraries[name] = ctypes.CDLL(str(path))
        self.launches = []  # on the device: [(function, threads, blocks, together)] and arguments; on the host: None
        for launch in self.manifest["launches"]:
            kernel = self.manifest["kernels"][launch["kernel"]]
            if kernel.get("host"):
                self.launches.append(None)
                continue
            phases, arguments = [], [self.there(b) for b in launch["buffers"]]
            for phase in kernel["phases"]:
                blocks = phase["tasks"]
                function, threads = self.driver.function(self.modules[kernel["file"]], phase["symbol"])
                if kernel.get("resident"):
                    blocks = min(blocks, self.driver.blocks_together(function, threads))
                    arguments.append(self.grid_barrier)
                if blocks > 0:
                    phases.append((function, threads, blocks, kernel.get("resident") and blocks > 1))
            self.launches.append((phases, arguments))

    def run_here(self, launch):
        kernel = self.manifest["kernels"][launch["kernel"]]
        places = [self.here(b) for b in launch["buffers"]]
        resident, nobody = kernel.get("resident"), HostMemory(4)
        if resident:
            places.append(nobody.base)
        arguments = (ctypes.c_void_p * len(places))(*places)
        scratch = HostMemory(self.manifest["scratch_bytes_per_thread"] + SLACK)
        for phase in kernel["phases"]:
            tasks = min(phase["tasks"], BLOCKS_HERE) if resident else phase["tasks"]
            symbol = phase["symbol"] + ("" if kernel.get("host") else "_together" if resident else "_tasks")
            getattr(self.libraries[kernel["file"]], symbol)(
                arguments, ctypes.c_void_p(scratch.base), ctypes.c_int64(0), ctypes.c_int64(tasks))

    def run_there(self, l):
        phases, arguments = self.launches[l]
        for function, threads, blocks, together in phases:
            self.driver.launch(function, threads, blocks, arguments, together)

    # For each launch: how far the GPU is from the processor, as a share of the tolerance; None for the host's.
    def errors(self):
        errors = []
        for l, launch in enumerate(self.manifest["launches"]):
            if self.launches[l] is not None:
                self.run_there(l)
            self.run_here(launch)
            worst = 0.0
            for b in launch["buffers"]:
                buffer = self.manifest["buffers"][b]
                if self.constant(b) or buffer["size_bytes"] == 0:
                    continue
                if self.launches[l] is not None:
                    actual = HostMemory(buffer["size_bytes"])
                    self.driver.download(actual.base, self.there(b), buffer["size_bytes"])
                    relative, absolute = TOLERANCES.get(buffer["dtype"], (0, 0))
                    worst = max(worst, self.helper.distance(
                        ctypes.c_void_p(self.here(b)), ctypes.c_void_p(actual.base), DTYPES.index(buffer["dtype"]),
                        ctypes.c_int64(buffer["size_bytes"] // BYTES[buffer["dtype"]]), ctypes.c_double(relative),
                        ctypes.c_double(absolute)))
                self.driver.upload(self.there(b), self.here(b), buffer["size_bytes"])
            errors.append(worst if self.launches[l] is not None else None)
        return errors

    # For each launch, the median of --runs; a run is the device's launches one after another.
    def times(self):
        samples = [[] for _ in self.launches]
        events = [self.driver.event() for _ in range(len(self.launches) + 1)]
        for run in range(self.options.runs + 1):
            for l, launch in enumerate(self.launches):
                self.driver.record(events[l])
                if launch is not None:
                    self.run_there(l)
            self.driver.record(events[-1])
            self.driver.finish()
            for l in range(len(self.launches) if run > 0 else 0):  # the first warms up
                samples[l].append(self.driver.microseconds(events[l], events[l + 1]))
        return [statistics.median(one) if one else 0.0 for one in samples]

    def close(self):
        for module in self.modules.values():
            self.driver.call("cuModuleUnload", module)
        for memory in (*self.device.values(), self.grid_barrier):
            self.driver.free(memory)


def report(path, check, options):
    errors, times = check.errors(), check.times()
    wrong = 0
    print("\n%s: %d launches, %.1f µs" % (path, len(errors), sum(times)))
    print("LAUNCH  KERNEL  µs        GFLOP/s  GB/s    ERROR  WHAT")
    for l, launch in enumerate(check.manifest["launches"]):
        seconds = 1e-6 * max(times[l], 1e-3)
        bad = errors[l] is not None and not errors[l] <= 1
        wrong += bad
        print("%-7d %-7s %-9.2f %-8.1f %-7.1f %-6s %s%s" % (
            l, "k%d" % launch["kernel"], times[l], launch["flops"] / seconds / 1e9, launch["bytes"] / seconds / 1e9,
            "host" if errors[l] is None else "%.2g" % errors[l], launch["label"], "  WRONG" if bad else ""))
    return len(errors), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=50, help="timed runs of each bundle; 0: only the check")
    parser.add_argument("--device", type=int, default=0, help="number of the GPU")
    parser.add_argument("--compiler", default="c++", help="of the text as C++ (g++ from 12 or clang++)")
    parser.add_argument("--shim", action="store_true",
                        help="for the test of this program: the driver is the shim, which runs what runs here")
    options = parser.parse_args()
    launches = wrong = refused = 0
    try:
        driver = Driver(options.device)
        print("%s, sm_%d%d" % ((driver.name,) + driver.capability))
        with tempfile.TemporaryDirectory(prefix="fusion-gpu-") as folder:
            folder = pathlib.Path(folder)
            build(options.compiler, (HERE / "helper.cc").read_text(), folder / "helper.so")
            helper = ctypes.CDLL(str(folder / "helper.so"))
            helper.distance.restype = ctypes.c_double
            for number, path in enumerate(options.bundles):
                own = folder / str(number)
                own.mkdir()
                try:
                    check = Check(path, driver, helper, options, own)
                except (Failure, OSError, KeyError, ValueError, zipfile.BadZipFile) as failure:
                    print("\n%s: refused: %s" % (path, failure))
                    refused += 1
                    continue
                some, some_wrong = report(path, check, options)
                launches, wrong = launches + some, wrong + some_wrong
                check.close()
    except Failure as failure:
        sys.exit("error: %s" % failure)
    print("\n%d launches checked, %d wrong; %d bundles refused" % (launches, wrong, refused))
    return 1 if wrong or refused or not launches else 0


if __name__ == "__main__":
    sys.exit(main())
