"""libfusion_runtime for Python: a ctypes binding of runtime/loader/fusion_runtime.h.

    session = Session("model.fusion", threads=2)
    logits, = session.run({"input": numpy.zeros((1, 3, 224, 224), numpy.float32)})

The library is $FUSION_RUNTIME_LIB or the one of build/release. Needs numpy.
"""
import ctypes
import math
import os
import pathlib
from typing import NamedTuple

import numpy as np

LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build/release/lib/libfusion_runtime.so"

# In the order of fusion_dtype; bfloat16 travels as its bits.
DTYPES = [np.float32, np.float64, np.float16, np.uint16, np.int8, np.int16, np.int32, np.int64,
          np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]


class Tensor(NamedTuple):
    name: str
    dtype: np.dtype
    shape: tuple


class FusionError(RuntimeError):
    pass


def load(path=None):
    """The library with its functions declared."""
    path = path or os.environ.get("FUSION_RUNTIME_LIB") or LIBRARY
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise FusionError(f"{error}; build the target fusion_runtime or set FUSION_RUNTIME_LIB") from None
    handle, text, size, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
    extents, pointers = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_void_p)
    signatures = {
        "fusion_last_error": (text,),
        "fusion_bundle_open": (number, text, ctypes.POINTER(handle)),
        "fusion_bundle_close": (None, handle),
        "fusion_bundle_describe": (text, handle),
        "fusion_bundle_launch_count": (size, handle),
        "fusion_bundle_launch_label": (text, handle, size),
        "fusion_session_create": (number, handle, number, ctypes.POINTER(handle)),
        "fusion_session_close": (None, handle),
        "fusion_run": (number, handle, pointers, pointers),
        "fusion_session_input": (handle, handle, size),
        "fusion_session_output": (handle, handle, size),
        "fusion_session_output_shape": (number, handle, size, extents),
        "fusion_session_set_profiling": (None, handle, number),
        "fusion_session_latency_ns": (ctypes.c_int64, handle, size),
    }
    for role in ("input", "output"):
        signatures[f"fusion_bundle_{role}_count"] = (size, handle)
        signatures[f"fusion_bundle_{role}_name"] = (text, handle, size)
        signatures[f"fusion_bundle_{role}_dtype"] = (number, handle, size)
        signatures[f"fusion_bundle_{role}_rank"] = (number, handle, size)
        signatures[f"fusion_bundle_{role}_shape"] = (extents, handle, size)
    for name, (result, *arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Session:
    """A bundle and one session of it. Not for use by several threads at once, but that any thread may call what bind
    returned; runs wait for each other in the order of the calls."""

    def __init__(self, bundle_path, threads=0, library=None):
        self._lib = load(library)
        self._bundle, self._session = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._lib.fusion_bundle_open(os.fsencode(bundle_path), ctypes.byref(self._bundle)))
        self._check(self._lib.fusion_session_create(self._bundle, threads, ctypes.byref(self._session)))
        self.inputs, self.outputs = self._tensors("input"), self._tensors("output")

    def close(self):
        self._lib.fusion_session_close(self._session)
        self._lib.fusion_bundle_close(self._bundle)
        self._session, self._bundle = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def describe(self):
        """manifest.json as text."""
        return self._lib.fusion_bundle_describe(self._bundle).decode()

    def bind(self, feeds, in_place=False):
        """Returns (run, outputs): run() computes the arrays `outputs` from `feeds` anew, with no work around it.
        To time run() is to time what a caller pays: kernels work in the arrays of `feeds` where fusion_run lets them, else
        these are copied in every run; `outputs` are arrays that are never copied but where the model hands out an input
        or a constant. In place, feeds are copied once into the session's own memory, which lives as long as the session,
        and outputs are views of it: kernels and nothing else run. Where the model's extents depend on data, the arrays
        have room for the most that there may be, and made() cuts what a run made out of them."""
        missing = [t.name for t in self.inputs if t.name not in feeds]
        if missing:
            raise FusionError(f"no value for inputs {missing}; the bundle takes {[t.name for t in self.inputs]}")
        arrays = []
        for tensor in self.inputs:
            array = np.ascontiguousarray(feeds[tensor.name])
            if array.shape != tensor.shape or array.dtype != tensor.dtype:
                raise FusionError(f"input '{tensor.name}' is {array.dtype}{list(array.shape)}; "
                                  f"the bundle wants {tensor.dtype}{list(tensor.shape)}")
            arrays.append(array)
        if in_place:
            own = [self._view(self._lib.fusion_session_input(self._session, i), t) for i, t in enumerate(self.inputs)]
            for mine, array in zip(own, arrays):
                mine[...] = array
            arrays = own
            outputs = [self._view(self._lib.fusion_session_output(self._session, i), t)
                       for i, t in enumerate(self.outputs)]
        else:
            outputs = [self._room(tensor) for tensor in self.outputs]
        addresses = lambda values: (ctypes.c_void_p * max(1, len(values)))(*[v.ctypes.data for v in values])
        ins, outs, session, fusion_run = addresses(arrays), addresses(outputs), self._session, self._lib.fusion_run

        def run(_keep_alive=(arrays, outputs)):
            status = fusion_run(session, ins, outs)
            if status:
                self._check(status)

        return run, outputs

    def made(self, outputs):
        """The bound `outputs` in the shapes that the latest run gave them: an output whose extents depend on data lies
        row-major at the start of its array."""
        made = []
        for i, (tensor, array) in enumerate(zip(self.outputs, outputs)):
            extents = (ctypes.c_int64 * max(1, len(tensor.shape)))()
            self._check(self._lib.fusion_session_output_shape(self._session, i, extents))
            shape = tuple(extents[:len(tensor.shape)])
            made.append(array if shape == array.shape else array.reshape(-1)[:math.prod(shape)].reshape(shape))
        return made

    def run(self, feeds):
        run, outputs = self.bind(feeds)
        run()
        return self.made(outputs)

    def profile(self, run, runs):
        """ns of every launch, in order, for each of `runs` calls of a bound `run`."""
        count = self._lib.fusion_bundle_launch_count(self._bundle)
        latencies = []
        self._lib.fusion_session_set_profiling(self._session, 1)
        for _ in range(runs):
            run()
            latencies.append([self._lib.fusion_session_latency_ns(self._session, i) for i in range(count)])
        self._lib.fusion_session_set_profiling(self._session, 0)
        return latencies

    def launch_latencies(self, feeds, runs=5):
        """[(label, fastest ns of `runs`)] for each kernel launch, in order."""
        run, _ = self.bind(feeds)
        run()
        return [(self._lib.fusion_bundle_launch_label(self._bundle, i).decode(), min(times))
                for i, times in enumerate(zip(*self.profile(run, runs)))]

    @staticmethod
    def _room(tensor):
        """An array that begins at a multiple of 64 bytes and has as many behind it."""
        size = int(np.prod(tensor.shape)) * tensor.dtype.itemsize
        room = np.empty(size + 128, np.uint8)
        begin = -room.ctypes.data % 64
        return room[begin:begin + size].view(tensor.dtype).reshape(tensor.shape)

    @staticmethod
    def _view(address, tensor):
        size = int(np.prod(tensor.shape)) * tensor.dtype.itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(address), tensor.dtype).reshape(tensor.shape)

    def _check(self, status):
        if status:
            raise FusionError(self._lib.fusion_last_error().decode(errors="replace"))

    def _tensors(self, role):
        field = lambda name: getattr(self._lib, f"fusion_bundle_{role}_{name}")
        tensors = []
        for i in range(field("count")(self._bundle)):
            rank, extents = field("rank")(self._bundle, i), field("shape")(self._bundle, i)
            tensors.append(Tensor(field("name")(self._bundle, i).decode(), np.dtype(DTYPES[field("dtype")(self._bundle, i)]),
                                  tuple(extents[d] for d in range(rank))))
        return tensors
