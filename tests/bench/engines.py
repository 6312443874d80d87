"""Engines that run one model, each in a process of its own, so that thread pools and libraries do not interfere.

To add an engine, write a class with `name`, `package` (whose version is printed), `install` (what to do if it is
missing), `modules` (imported before the clock of the load starts), `available(job)` (None, or why it cannot run the
job), and a constructor that prepares the job; then add a line to ENGINES. `run()` computes `outputs`, in the order of
job.output_names.

All engines get the same conditions: inputs and outputs are bound once, and a run reads and writes memory that stays in
place; subnormal numbers count as zero in all engines that have such a setting (TVM has none).
"""
import importlib
import importlib.util
import multiprocessing
import os
import pathlib
import sys
import time
from typing import NamedTuple

import avx2

EXPORT = pathlib.Path(__file__).resolve().parents[1] / "models/export.py"


class Job(NamedTuple):
    model: str  # .onnx
    bundle: str  # .fusion
    threads: int
    feeds: dict = {}  # name: array
    output_names: tuple = ()
    seed: int = 0  # of the weights in export.py


def installed(module):
    return importlib.util.find_spec(module) is not None


class Ours:
    name = "ours"
    modules = ("fusion_runtime",)
    install = "build the targets fusion-compile and fusion_runtime"

    @staticmethod
    def available(_job):
        return None if installed("numpy") else "numpy is missing"

    def __init__(self, job):
        from fusion_runtime import Session
        self._session = Session(job.bundle, job.threads)
        self.run, self.outputs = self._session.bind(job.feeds)


class OnnxRuntime:
    name = "onnxruntime"
    package = "onnxruntime"
    modules = ("onnxruntime",)
    install = "pip install onnxruntime"

    @staticmethod
    def available(_job):
        return None if installed("onnxruntime") else "onnxruntime is missing"

    def __init__(self, job):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = job.threads, 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        self._session = onnxruntime.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
        known = {value.name for value in self._session.get_inputs()}
        self._binding = self._session.io_binding()
        self._inputs = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in job.feeds.items()
                        if name in known}
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        for name in job.output_names:
            self._binding.bind_output(name)
        # All later runs write the output arrays of the first, unless their shapes depend on data.
        self._session.run_with_iobinding(self._binding)
        types = {value.name: value.shape for value in self._session.get_outputs()}
        for name, value in zip(job.output_names, self._binding.get_outputs()):
            if value.is_tensor() and all(isinstance(extent, int) for extent in types[name]):
                self._binding.bind_ortvalue_output(name, value)

    def run(self):
        self._session.run_with_iobinding(self._binding)

    @property
    def outputs(self):
        return self._binding.copy_outputs_to_cpu()


class OpenVino:
    name = "openvino"
    package = "openvino"
    modules = ("openvino",)
    install = "pip install openvino"

    @staticmethod
    def available(_job):
        return None if installed("openvino") else "openvino is missing"

    def __init__(self, job):
        import openvino
        core = openvino.Core()
        # float32 throughout: OpenVINO would choose bfloat16 if the machine has it.
        settings = {"INFERENCE_NUM_THREADS": job.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32", "CPU_DENORMALS_OPTIMIZATION": True}
        model = core.read_model(job.model)
        model.reshape({name: list(value.shape) for name, value in job.feeds.items()})
        self._request = core.compile_model(model, "CPU", settings).create_infer_request()
        self._feeds, self._names = job.feeds, job.output_names

    def run(self):
        self._request.infer(self._feeds, share_inputs=True, share_outputs=True)

    @property
    def outputs(self):
        return [self._request.get_tensor(name).data.copy() for name in self._names]


class Inductor:
    """torch.compile of the module that export.py exports, not of the .onnx file; with export.py's seed its weights are
    the file's to rounding, unless the versions of PyTorch draw differently. Weights are constants to it, as to the others
    (`freezing`: packed once, folded where they can be)."""
    name = "inductor"
    package = "torch"
    modules = ("torch",)
    install = "pip install torch torchvision transformers==4.30.2 (and a C++ compiler)"

    @classmethod
    def available(cls, job):
        if not installed("torch"):
            return "torch is missing"
        import torch
        if not hasattr(torch, "compile"):
            return f"torch {torch.__version__} has no torch.compile"
        export = cls._export()
        name = pathlib.Path(job.model).stem
        if name not in export.RECIPES:
            return f"export.py has no model '{name}'"
        missing = export.missing_packages(export.RECIPES[name])
        return f"{', '.join(missing)} missing" if missing else None

    def __init__(self, job):
        import torch
        import torch._inductor.config
        torch.set_num_threads(job.threads)
        torch.set_flush_denormal(True)
        torch._inductor.config.freezing = True
        export, name = self._export(), pathlib.Path(job.model).stem
        module, _ = export.build(name, job.seed)
        self._module = torch.compile(module)
        self._inputs = [torch.from_numpy(job.feeds[key]) for key in export.RECIPES[name].inputs]
        self._no_grad, self._flat = torch.no_grad, export.flat

    def run(self):
        with self._no_grad():
            self._results = self._module(*self._inputs)

    @property
    def outputs(self):
        return [value.numpy() for value in self._flat(self._results)]

    @staticmethod
    def _export():
        spec = importlib.util.spec_from_file_location("export", EXPORT)
        export = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(export)
        return export


class Tvm:
    """Relax with its default pipeline, nothing tuned: the schedules that come with TVM for processors cover little, so
    convolutions and products are plain loops on one thread."""
    name = "tvm"
    package = "apache-tvm"
    modules = ("tvm", "onnx")
    install = "pip install apache-tvm onnx"

    @staticmethod
    def available(_job):
        missing = [name for name in ("tvm", "onnx") if not installed(name)]
        return f"{', '.join(missing)} missing" if missing else None

    def __init__(self, job):
        import onnx
        import tvm
        from tvm import relax
        from tvm.relax.frontend.onnx import from_onnx
        model = onnx.load(job.model)
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in weights]
        module = from_onnx(model, shape_dict={name: list(job.feeds[name].shape) for name in names})
        target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(),
                                    "num-cores": job.threads})
        self._main = relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())["main"]
        self._inputs = [tvm.runtime.tensor(job.feeds[name]) for name in names]

    def run(self):
        self._results = self._main(*self._inputs)

    @property
    def outputs(self):
        return [value.numpy() for value in (self._results if hasattr(self._results, "__len__") else [self._results])]


ENGINES = {engine.name: engine for engine in (Ours, OnnxRuntime, OpenVino, Inductor, Tvm)}


class EngineError(RuntimeError):
    pass


class EngineProcess:
    """An engine in a child. Calls raise EngineError with what the child said, or that it died or hung. `load_s`: seconds
    from the file to the first result, packages imported and file in the page cache. `environment`: of the child."""

    def __init__(self, name, job, environment=None, timeout_s=900):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._name, self._timeout_s = name, timeout_s
        self._child = context.Process(target=_serve, args=(name, job, theirs), daemon=True)
        with avx2.applied(environment or {}):
            self._child.start()
        theirs.close()
        try:
            self.load_s = self._receive()
        except EngineError:
            self.close()
            raise

    def time(self, runs):
        """Nanoseconds of each of `runs` runs, after one that is not counted."""
        return self._ask("time", runs)

    def outputs(self):
        return self._ask("outputs", None)

    def peak_bytes(self):
        """The most that was resident since loading began, less what was before: packages, and the inputs."""
        return self._ask("peak", None)

    def close(self):
        self._child.kill()
        self._child.join()

    def _ask(self, what, argument):
        try:
            self._pipe.send((what, argument))
        except OSError:
            raise EngineError(f"{self._name} died") from None
        return self._receive()

    def _receive(self):
        if not self._pipe.poll(self._timeout_s):
            raise EngineError(f"{self._name} said nothing for {self._timeout_s} s")
        try:
            ok, value = self._pipe.recv()
        except (EOFError, OSError):
            self._child.join()
            raise EngineError(f"{self._name} died, exit status {self._child.exitcode}") from None
        if not ok:
            raise EngineError(value)
        return value


def _status_bytes(field):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field + ":"))


def _serve(name, job, pipe):
    os.environ["OMP_NUM_THREADS"] = os.environ["TVM_NUM_THREADS"] = str(job.threads)
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    try:
        for module in ENGINES[name].modules:
            importlib.import_module(module)
        pathlib.Path(job.bundle if name == "ours" else job.model).read_bytes()
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
        before, start = _status_bytes("VmRSS"), time.perf_counter()
        engine = ENGINES[name](job)
        engine.run()
        pipe.send((True, time.perf_counter() - start))
        while True:
            what, argument = pipe.recv()
            if what == "peak":
                pipe.send((True, _status_bytes("VmHWM") - before))
                continue
            if what == "outputs":
                engine.run()
                pipe.send((True, list(engine.outputs)))
                continue
            engine.run()
            latencies = []
            for _ in range(argument):
                start = time.perf_counter_ns()
                engine.run()
                latencies.append(time.perf_counter_ns() - start)
            pipe.send((True, latencies))
    except EOFError:
        pass
    except Exception as error:  # the parent reports it, whatever it is
        pipe.send((False, f"{name}: {error}"))
