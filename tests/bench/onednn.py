"""oneDNN layer by layer for Python: builds onednn_layers.cc (Debian: apt-get install libdnnl-dev) and binds it by ctypes.

    library = OneDnn(folder)
    for name, run in library.candidates(layer, parameters): run.write("x", x); ns = run.time(10); y = run.read()

`layer` is one of model_layers.py. Needs numpy.
"""
import ctypes
import pathlib
import re
import shutil
import subprocess

import numpy as np

SOURCE = pathlib.Path(__file__).with_name("onednn_layers.cc")
ACTIVATIONS = {"": 0, "Relu": 1, "Gelu": 2, "Tanh": 3}
OPERANDS = {"x": 0, "b": 1, "residual": 2}


class OneDnnError(RuntimeError):
    pass


def _int64s(values):
    return (ctypes.c_int64 * len(values))(*values)


def _floats(values):
    return None if values is None else values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


def _contiguous(values):
    return None if values is None else np.ascontiguousarray(values, np.float32)


class OneDnn:
    def __init__(self, folder):
        compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            raise OneDnnError("no C++ compiler for onednn_layers.cc: apt-get install g++")
        path = pathlib.Path(folder) / "libonednn_layers.so"
        done = subprocess.run([compiler, "-std=c++20", "-O2", "-fopenmp", "-shared", "-fPIC", str(SOURCE), "-ldnnl", "-o",
                               str(path)], capture_output=True, text=True)
        if done.returncode:
            missing = re.search("fatal error: '?dnnl.hpp", done.stderr)
            hint = "apt-get install libdnnl-dev" if missing else done.stderr.strip()[-2000:]
            raise OneDnnError(f"onednn_layers.cc does not build: {hint}")
        self._lib = ctypes.CDLL(str(path))
        for name in ("convolution", "matmul", "inner_product"):
            getattr(self._lib, f"onednn_{name}").restype = ctypes.c_void_p
        for name in ("error", "implementation"):
            getattr(self._lib, f"onednn_{name}").restype = ctypes.c_char_p

    @property
    def version(self):
        number = self._lib.onednn_version()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def set_threads(self, threads):
        self._lib.onednn_threads(threads)

    def candidates(self, layer, parameters):
        """{algorithm: Run} of all that oneDNN has for the layer, at the number of threads set last."""
        weights, bias = (_contiguous(values) for values in parameters)
        epilogue = layer.epilogue
        after = (ctypes.c_float(epilogue.scale), int(epilogue.residual), ACTIVATIONS[epilogue.activation])
        made = {}
        if hasattr(layer, "groups"):
            arrays = [_int64s(values) for values in (layer.x, layer.weights, layer.y, layer.strides, layer.pads,
                                                     layer.dilations)]
            for number, name in enumerate(("direct", "winograd")):
                made[name] = self._lib.onednn_convolution(*arrays, ctypes.c_int64(layer.groups), _floats(weights),
                                                          _floats(bias), *after, int(layer.reads_input), number)
            shapes = layer.x, layer.weights, layer.y
        else:
            operands = (layer.a, layer.b, layer.y)
            arrays = [_int64s(values) for operand in operands for values in (operand.shape, operand.strides)]
            made["matmul"] = self._lib.onednn_matmul(len(layer.y.shape), *arrays, _floats(weights), _floats(bias), *after)
            if layer.weights and bias is not None:
                made["inner product"] = self._lib.onednn_inner_product(
                    *map(ctypes.c_int64, (*layer.a.shape, layer.b.shape[1])), _floats(weights), _floats(bias), *after)
            shapes = tuple(operand.shape for operand in operands)
        runs = {name: Run(self._lib, handle, shapes) for name, handle in made.items() if handle}
        if not runs:
            raise OneDnnError(f"{layer.describe()}: {self._lib.onednn_error().decode(errors='replace')}")
        return runs


class Run:
    """A layer with its memory."""

    def __init__(self, lib, handle, shapes):
        self._lib, self._handle, self._shapes = lib, ctypes.c_void_p(handle), shapes

    def close(self):
        self._lib.onednn_close(self._handle)

    @property
    def implementation(self):
        return self._lib.onednn_implementation(self._handle).decode()

    def write(self, operand, values):
        """`operand`: x, b (the second one of a product of activations) or residual (what is added to)."""
        which = OPERANDS[operand]
        values = _contiguous(values)
        if values.shape != tuple(self._shapes[which]):
            raise OneDnnError(f"{operand} is {values.shape}, the layer takes {tuple(self._shapes[which])}")
        self._check(self._lib.onednn_write(self._handle, which, _floats(values)))

    def read(self):
        values = np.empty(self._shapes[2], np.float32)
        self._check(self._lib.onednn_read(self._handle, 2, _floats(values)))
        return values

    def time(self, runs):
        """ns of each run."""
        latencies = (ctypes.c_int64 * runs)()
        self._check(self._lib.onednn_time(self._handle, runs, latencies))
        return list(latencies)

    def _check(self, status):
        if status:
            raise OneDnnError(self._lib.onednn_error().decode(errors="replace"))
