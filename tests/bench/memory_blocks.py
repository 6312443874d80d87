"""Fusion blocks of operators that move memory and compute little, as ONNX models. Needs numpy and onnx.

A block has a name, its shapes for a number of rows, its nodes, and the bytes that it must move: each input element that
is needed counts once, and so does each output element.
"""
import math
from typing import Callable, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 768  # of a row, as in BERT-base
FLOAT_BYTES = 4


class Block(NamedTuple):
    name: str
    inputs: Callable  # rows -> {name: shape}
    output: Callable  # rows -> shape
    nodes: tuple  # (operator, inputs, output, {attribute: value})
    constants: dict = {}  # name: array
    reads: Callable = lambda inputs, output: sum(map(math.prod, inputs.values()))  # elements of inputs needed

    def model(self, rows):
        info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        nodes = [helper.make_node(op, inputs.split(), [output], **attributes)
                 for op, inputs, output, attributes in self.nodes]
        graph = helper.make_graph(nodes, "block", [info(*item) for item in self.inputs(rows).items()],
                                  [info("y", self.output(rows))],
                                  [numpy_helper.from_array(values, name) for name, values in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def bytes(self, rows):
        inputs, output = self.inputs(rows), self.output(rows)
        weights = sum(values.size for values in self.constants.values() if values.dtype == np.float32)
        return FLOAT_BYTES * (self.reads(inputs, output) + weights + math.prod(output))

    def rows_for(self, size_bytes):
        """About as many bytes, in steps of 16 rows."""
        return max(16, round(size_bytes / (self.bytes(32) - self.bytes(16))) * 16)


def _floats(*values):
    return np.array(values, np.float32)


def _vector(seed):
    return np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32)


def _ints(*values):
    return np.array(values, np.int64)


_ROWS = lambda rows: {"x": (rows, WIDTH)}
_TWO = lambda rows: {"x": (rows, WIDTH), "r": (rows, WIDTH)}
_SAME = lambda rows: (rows, WIDTH)
_GELU = (("Div", "g root", "g1", {}), ("Erf", "g1", "g2", {}), ("Add", "g2 one", "g3", {}), ("Mul", "g g3", "g4", {}),
         ("Mul", "g4 half", "y", {}))
_GELU_CONSTANTS = {"root": _floats(math.sqrt(2)), "one": _floats(1), "half": _floats(0.5)}
_NORM = {"scale": _vector(1), "shift": _vector(2)}
_HEADS = 12

BLOCKS = {block.name: block for block in (
    Block("residual add", _TWO, _SAME, (("Add", "x r", "y", {}),)),
    Block("bias, ReLU", _ROWS, _SAME, (("Add", "x bias", "s", {}), ("Relu", "s", "y", {})), {"bias": _vector(3)}),
    Block("GELU", lambda rows: {"g": (rows, WIDTH)}, _SAME, _GELU, _GELU_CONSTANTS),
    Block("bias, GELU", _ROWS, _SAME, (("Add", "x bias", "g", {}), *_GELU), _GELU_CONSTANTS | {"bias": _vector(3)}),
    Block("softmax", _ROWS, _SAME, (("Softmax", "x", "y", {"axis": -1}),)),
    Block("LayerNorm", _ROWS, _SAME, (("LayerNormalization", "x scale shift", "y", {"axis": -1}),), _NORM),
    Block("bias, residual add, LayerNorm", _TWO, _SAME,
          (("Add", "x bias", "s", {}), ("Add", "s r", "t", {}), ("LayerNormalization", "t scale shift", "y", {"axis": -1})),
          _NORM | {"bias": _vector(3)}),
    Block("reduce mean over columns", _ROWS, lambda rows: (rows, 1), (("ReduceMean", "x", "y", {"axes": [-1]}),)),
    Block("reduce mean over rows", _ROWS, lambda rows: (1, WIDTH), (("ReduceMean", "x", "y", {"axes": [0]}),)),
    Block("transpose of a matrix", _ROWS, lambda rows: (WIDTH, rows), (("Transpose", "x", "y", {"perm": [1, 0]}),)),
    Block("transpose of heads", lambda rows: {"x": (rows, _HEADS, WIDTH // _HEADS)},
          lambda rows: (_HEADS, rows, WIDTH // _HEADS), (("Transpose", "x", "y", {"perm": [1, 0, 2]}),)),
    Block("concat, slice", _TWO, _SAME,
          (("Concat", "x r", "c", {"axis": 1}), ("Slice", "c from to axis", "y", {})),
          {"from": _ints(WIDTH // 2), "to": _ints(WIDTH // 2 + WIDTH), "axis": _ints(1)},
          reads=lambda inputs, output: math.prod(output)),
    Block("scale, shift, ReLU of channels", lambda rows: {"x": (1, 64, rows, 32)}, lambda rows: (1, 64, rows, 32),
          (("Mul", "x scale", "s", {}), ("Add", "s shift", "t", {}), ("Relu", "t", "y", {})),
          {"scale": _vector(4)[:64].reshape(64, 1, 1), "shift": _vector(5)[:64].reshape(64, 1, 1)}),
)}
