"""Single operators as ONNX models: operators × shapes × attributes. Needs numpy and onnx.

A case is called "OPERATOR what"; most images also exist as "… between", where the operator stands between two 1×1
convolutions, so that it gets the layouts that it would get in a network. To add a case, write a line in a function of
FAMILIES.
"""
from typing import NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
NARROW = 16  # channels before and after the two convolutions
F, U8, I8, I32, I64, BOOL = np.float32, np.uint8, np.int8, np.int32, np.int64, np.bool_


class Case(NamedTuple):
    name: str
    family: str
    op: str
    attributes: dict
    operands: tuple  # constant arrays, or Input, or None for an optional operand that is absent
    outputs: int = 1
    domain: str = ""
    between: bool = False

    def feeds(self, seed=0):
        """{name: array} of the model's inputs."""
        rng = np.random.default_rng(seed)
        if self.between:
            shape = self.operands[0].shape
            return {"x0": rng.standard_normal((shape[0], NARROW, *shape[2:])).astype(F)}
        return {f"x{i}": operand.draw(rng) for i, operand in enumerate(self.operands) if isinstance(operand, Input)}

    def model(self):
        """The model, of which the last node is named by the case."""
        names, constants, inputs = [], [], []
        for i, operand in enumerate(self.operands):
            names.append("" if operand is None else f"x{i}")
            if isinstance(operand, Input):
                inputs.append(helper.make_tensor_value_info(f"x{i}", _onnx_type(operand.dtype), operand.shape))
            elif operand is not None:
                constants.append(numpy_helper.from_array(operand, f"x{i}"))
        results = [f"y{i}" for i in range(self.outputs)]
        nodes = [helper.make_node(self.op, names, results, name="op", domain=self.domain, **self.attributes)]
        if self.between:
            nodes, inputs = self._with_convolutions(nodes[0], inputs[0], constants)
            results = ["z"]
        graph = helper.make_graph(nodes, "operator", inputs,
                                  [helper.make_empty_tensor_value_info(name) for name in results], constants)
        imports = [helper.make_opsetid("", OPSET)] + ([helper.make_opsetid(self.domain, 1)] if self.domain else [])
        return helper.make_model(graph, opset_imports=imports, ir_version=9)

    def _with_convolutions(self, node, given, constants):
        rng = np.random.default_rng(1)
        shape = self.operands[0].shape
        spatial = len(shape) - 2
        weight = lambda o, i: (rng.standard_normal((o, i) + (1,) * spatial) / np.sqrt(i)).astype(F)
        channels = shape[1]
        if self.op == "ConvTranspose":
            channels = self.operands[1].shape[1] * self.attributes.get("group", 1)
        elif self.op == "Conv":
            channels = self.operands[1].shape[0]
        constants.append(numpy_helper.from_array(weight(shape[1], NARROW), "before"))
        constants.append(numpy_helper.from_array(weight(NARROW, channels), "after"))
        node.input[0] = "x"
        nodes = [helper.make_node("Conv", ["x0", "before"], ["x"], name="conv_before"), node,
                 helper.make_node("Conv", ["y0", "after"], ["z"], name="conv_after")]
        return nodes, [helper.make_tensor_value_info("x0", TensorProto.FLOAT, (shape[0], NARROW, *shape[2:]))]


class Input(NamedTuple):
    shape: tuple
    dtype: type = F
    low: float = None  # of uniform values; floats are normal without it
    high: float = None

    def draw(self, rng):
        if np.dtype(self.dtype).kind == "b":
            return rng.integers(0, 2, self.shape).astype(bool)
        if np.dtype(self.dtype).kind in "iu":
            top = self.high if self.high is not None else min(100, np.iinfo(self.dtype).max)
            return rng.integers(int(self.low or 0), int(top), self.shape).astype(self.dtype)
        if self.low is None:
            return rng.standard_normal(self.shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)


def _onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _text(shape):
    return "×".join(map(str, shape))


def _weights(*shape):
    fan = max(1, int(np.prod(shape[1:])))
    return (np.random.default_rng(2).standard_normal(shape) / np.sqrt(fan)).astype(F)


def _ints(*values):
    return np.array(values, I64)


def _alone_and_between(case):
    return [case, case._replace(name=case.name + " between", between=True)]


def convolutions():
    def conv(x, out, kernel, stride=1, group=1, dilation=1, note=""):
        spatial = len(x) - 2
        kernel = (kernel,) * spatial if isinstance(kernel, int) else kernel
        pads = [(k - 1) * dilation // 2 for k in kernel] * 2
        name = f"Conv {_text(x)} to {out}, {_text(kernel)}" + (f" s{stride}" if stride > 1 else "")
        name += (f" g{group}" if group > 1 else "") + (f" d{dilation}" if dilation > 1 else "") + note
        return Case(name, "convolution", "Conv",
                    dict(strides=[stride] * spatial, pads=pads, group=group, dilations=[dilation] * spatial),
                    (Input(x), _weights(out, x[1] // group, *kernel), _weights(out)))
    dense = [((1, 3, 224, 224), 64, 7, 2), ((1, 3, 224, 224), 32, 3, 2), ((1, 64, 56, 56), 64, 3), ((1, 64, 56, 56), 256, 1),
             ((1, 256, 56, 56), 64, 1), ((1, 128, 28, 28), 128, 3), ((1, 128, 56, 56), 128, 3, 2), ((1, 512, 7, 7), 512, 3),
             ((1, 768, 14, 14), 768, 1), ((1, 960, 7, 7), 160, 1), ((1, 32, 112, 112), 32, 5), ((1, 256, 14, 14), 256, 3, 1, 1, 2),
             ((1, 58, 28, 28), 58, 1), ((1, 64, 56, 56), 64, (1, 7)), ((1, 64, 56, 56), 64, (7, 1)), ((1, 128, 28, 28), 256, 3, 1, 32),
             ((1, 3, 224, 224), 768, 16, 16), ((1, 80, 1000), 256, 3), ((1, 256, 500), 256, 5), ((1, 1, 16000), 64, 10, 5),
             ((1, 64, 4000), 64, 7, 1, 1, 3), ((1, 16, 8, 56, 56), 32, 3), ((1, 64, 64, 64), 3, 3), ((8, 64, 28, 28), 64, 3)]
    deep = [((1, 64, 56, 56), 3, 1), ((1, 144, 56, 56), 3, 2), ((1, 64, 112, 112), 3, 1), ((1, 96, 28, 28), 5, 2), ((1, 240, 28, 28), 5, 1),
            ((1, 96, 56, 56), 7, 1), ((1, 384, 14, 14), 7, 1), ((1, 64, 32, 32), 31, 1), ((1, 960, 7, 7), 3, 1), ((1, 256, 400), 31, 1),
            ((1, 512, 1000), 3, 1), ((1, 32, 8, 28, 28), 3, 1), ((4, 32, 112, 112), 3, 1)]
    cases = [case for given in dense for case in _alone_and_between(conv(*given))]
    for x, kernel, stride in deep:
        cases += _alone_and_between(conv(x, x[1], kernel, stride, x[1]))
    for x, group in [((1, 96, 56, 56), 32), ((1, 128, 56, 56), 32), ((1, 192, 28, 28), 32), ((1, 384, 14, 14), 32), ((1, 512, 14, 14), 32)]:
        cases += _alone_and_between(conv(x, x[1], 3, 1, group))
    return cases + _alone_and_between(conv((1, 32, 56, 56), 64, 3, 1, 32, note=" two each"))


def transposed_convolutions():
    cases = []
    for x, out, kernel, stride, group in [
            ((1, 64, 56, 56), 64, 3, 2, 1), ((1, 64, 56, 56), 64, 4, 2, 1), ((1, 64, 56, 56), 64, 2, 2, 1),
            ((1, 256, 14, 14), 128, 3, 2, 1), ((1, 256, 14, 14), 256, 4, 2, 1), ((1, 64, 64, 64), 3, 4, 2, 1),
            ((1, 64, 64, 64), 3, 3, 2, 1), ((1, 32, 112, 112), 1, 2, 2, 1), ((1, 64, 28, 28), 64, 5, 2, 1),
            ((1, 64, 28, 28), 64, 5, 3, 1), ((1, 64, 28, 28), 32, 3, 1, 1), ((1, 21, 16, 16), 21, 16, 8, 1),
            ((1, 64, 28, 28), 64, 4, 2, 64), ((1, 64, 28, 28), 64, 3, 2, 64), ((1, 64, 28, 28), 64, 3, 2, 4),
            ((1, 256, 200), 128, 16, 8, 1), ((1, 128, 1600), 64, 8, 4, 1), ((1, 512, 100), 256, 10, 5, 1),
            ((1, 64, 4000), 32, 4, 2, 1), ((1, 256, 200), 128, 3, 2, 1), ((1, 32, 8000), 1, 4, 2, 1),
            ((1, 16, 8, 28, 28), 16, 3, 2, 1), ((1, 32, 8, 14, 14), 16, 2, 2, 1)]:
        spatial = len(x) - 2
        pad = max(0, (kernel - stride) // 2) if stride > 1 else kernel // 2
        name = f"ConvTranspose {_text(x)} to {out}, {_text((kernel,) * spatial)} s{stride}" + (f" g{group}" if group > 1 else "")
        cases += _alone_and_between(Case(
            name, "transposed convolution", "ConvTranspose",
            dict(strides=[stride] * spatial, pads=[pad] * 2 * spatial, group=group),
            (Input(x), _weights(x[1], out // group, *(kernel,) * spatial), _weights(out))))
    return cases


def pooling():
    cases = []
    for op in ("MaxPool", "AveragePool"):
        for x, kernel, stride, pad in [((1, 64, 112, 112), 3, 2, 1), ((1, 64, 112, 112), 2, 2, 0), ((1, 192, 28, 28), 3, 1, 1),
                                       ((1, 512, 13, 13), 5, 1, 2), ((1, 512, 13, 13), 9, 1, 4), ((1, 512, 13, 13), 13, 1, 6),
                                       ((1, 64, 56, 56), 13, 1, 6), ((1, 64, 56, 56), 3, 2, 0), ((1, 128, 1000), 3, 2, 1),
                                       ((1, 32, 16, 28, 28), 2, 2, 0)]:
            spatial = len(x) - 2
            cases += _alone_and_between(Case(f"{op} {_text(x)}, {_text((kernel,) * spatial)} s{stride}", "pooling", op,
                                             dict(kernel_shape=[kernel] * spatial, strides=[stride] * spatial,
                                                  pads=[pad] * 2 * spatial), (Input(x),)))
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for x in [(1, 512, 7, 7), (1, 1280, 7, 7), (1, 64, 112, 112)]:
            cases.append(Case(f"{op} {_text(x)}", "pooling", op, {}, (Input(x),)))
    cases.append(Case("LpPool 1×64×56×56, 3×3 s2", "pooling", "LpPool", dict(kernel_shape=[3, 3], strides=[2, 2], p=2),
                      (Input((1, 64, 56, 56)),)))
    return cases


def elementwise():
    image = (1, 256, 56, 56)  # 802,816 elements
    cases = []
    for op in ["Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sin", "Cos", "Atan", "Softplus", "Mish", "HardSwish", "Elu", "Gelu",
               "Neg", "Abs", "Floor", "Round", "Softsign", "Tan", "Sinh", "Asinh", "Sign", "Not"]:
        cases.append(Case(f"{op} 802816", "elementwise", op, {}, (Input(image, BOOL if op == "Not" else F),)))
    for op in ["Log", "Sqrt", "Reciprocal", "Acosh"]:
        cases.append(Case(f"{op} 802816", "elementwise", op, {}, (Input(image, F, 1.1, 2),)))
    for op in ["Asin", "Acos", "Atanh"]:
        cases.append(Case(f"{op} 802816", "elementwise", op, {}, (Input(image, F, -0.9, 0.9),)))
    cases.append(Case("LeakyRelu 802816", "elementwise", "LeakyRelu", dict(alpha=0.1), (Input(image),)))
    cases.append(Case("Clip 802816", "elementwise", "Clip", {}, (Input(image), np.array(-1, F), np.array(1, F))))
    for op in ["Add", "Mul", "Sub", "Div", "Max", "Min"]:
        cases.append(Case(f"{op} 802816", "elementwise", op, {}, (Input(image), Input(image, F, 0.5, 2))))
    cases.append(Case("Pow 802816", "elementwise", "Pow", {}, (Input(image, F, 0.1, 3), Input(image, F, -2, 2))))
    cases.append(Case("Pow 802816 by 3", "elementwise", "Pow", {}, (Input(image), np.array(3, F))))
    cases.append(Case("Mod 802816", "elementwise", "Mod", dict(fmod=1), (Input(image), Input(image, F, 0.5, 2))))
    for other in [(1, 256, 1, 1), (56,), (56, 1), (1, 1, 56, 56)]:
        cases.append(Case(f"Add {_text(image)} + {_text(other)}", "elementwise", "Add", {}, (Input(image), Input(other))))
    for op in ["Less", "Equal"]:
        cases.append(Case(f"{op} 802816", "elementwise", op, {}, (Input(image), Input(image))))
    cases.append(Case("Where 802816", "elementwise", "Where", {}, (Input(image, BOOL), Input(image), Input(image))))
    cases.append(Case("PRelu 802816", "elementwise", "PRelu", {}, (Input(image), _weights(256, 1, 1))))
    for source, target in [(F, I32), (F, np.float16), (np.float16, F), (U8, F), (F, U8), (I64, F), (F, BOOL)]:
        cases.append(Case(f"Cast 802816 {np.dtype(source)} to {np.dtype(target)}", "elementwise", "Cast",
                          dict(to=_onnx_type(target)), (Input(image, source, *((0, 100) if target == U8 else (None, None))),)))
    for op in ["Sigmoid", "HardSwish", "Tanh"]:
        cases.append(Case(f"{op} {_text(image)} between", "elementwise", op, {}, (Input(image),), between=True))
    cases += [Case(f"{op} 1000", "elementwise", op, {}, (Input((1000,)),)) for op in ("Relu", "Exp", "Sigmoid")]
    return cases


def reductions():
    cases = []
    def reduce(op, x, axes, keep=1):
        return Case(f"{op} {_text(x)} axes {','.join(map(str, axes))}", "reduction", op, dict(keepdims=keep), (Input(x), _ints(*axes)))
    for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd"]:
        for x, axes in [((1, 256, 56, 56), (2, 3)), ((512, 1024), (1,)), ((512, 1024), (0,)), ((16, 128, 128), (1,)), ((1000000,), (0,))]:
            cases.append(reduce(op, x, axes))
    cases += [reduce("ReduceMean", (64, 64, 5), (2,)), reduce("ReduceMean", (32, 56, 56, 32), (1, 2)), reduce("ReduceMax", (1, 64, 112, 112), (1,))]
    for op in ["ArgMax", "ArgMin"]:
        for x, axis in [((512, 1024), 1), ((1, 21, 224, 224), 1), ((1000, 10), 1), ((1, 50257), 1)]:
            cases.append(Case(f"{op} {_text(x)} axis {axis}", "reduction", op, dict(axis=axis, keepdims=0), (Input(x),)))
    for op in ["Softmax", "LogSoftmax"]:
        for x, axis in [((12, 128, 128), -1), ((1000, 5), -1), ((20000, 5), -1), ((64, 1000), -1), ((8, 1024, 1024), -1), ((1, 50257), -1),
                        ((1, 21, 128, 128), 1), ((1536, 196), -1), ((1, 49), -1)]:
            cases.append(Case(f"{op} {_text(x)} axis {axis}", "reduction", op, dict(axis=axis), (Input(x),)))
    for x, axis in [((512, 1024), 1), ((512, 1024), 0), ((1000000,), 0), ((4, 5000), 1), ((20000, 64), 0), ((16, 512, 64), 1)]:
        cases.append(Case(f"CumSum {_text(x)} axis {axis}", "reduction", "CumSum", {}, (Input(x), np.array(axis, I64))))
    cases.append(Case("CumSum 512×1024 axis 1 reverse exclusive", "reduction", "CumSum", dict(reverse=1, exclusive=1),
                      (Input((512, 1024)), np.array(1, I64))))
    return cases


def normalizations():
    cases = []
    for x in [(128, 768), (1024, 768), (196, 384), (4096, 96), (1, 4096), (3136, 128)]:
        cases.append(Case(f"LayerNormalization {_text(x)}", "normalization", "LayerNormalization", dict(axis=-1),
                          (Input(x), _weights(x[1]), _weights(x[1]))))
    for x in [(1, 64, 112, 112), (1, 256, 28, 28), (4, 32, 64, 64)]:
        cases += _alone_and_between(Case(f"InstanceNormalization {_text(x)}", "normalization", "InstanceNormalization", {},
                                         (Input(x), _weights(x[1]), _weights(x[1]))))
    for x in [(1, 64, 112, 112), (1, 512, 7, 7)]:
        vector = lambda: np.abs(_weights(x[1])) + F(0.5)
        cases.append(Case(f"BatchNormalization {_text(x)}", "normalization", "BatchNormalization", {},
                          (Input(x), vector(), vector(), vector(), vector())))
    cases.append(Case("LRN 1×64×56×56", "normalization", "LRN", dict(size=5), (Input((1, 64, 56, 56)),)))
    cases.append(Case("LpNormalization 512×768", "normalization", "LpNormalization", dict(axis=1, p=2), (Input((512, 768)),)))
    return cases


def movement():
    cases = []
    for x, perm in [((1, 256, 56, 56), (0, 2, 3, 1)), ((1, 56, 56, 256), (0, 3, 1, 2)), ((16, 512, 512), (0, 2, 1)), ((1024, 1024), (1, 0)),
                    ((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 12, 128, 64), (0, 2, 1, 3)), ((8, 16, 32, 64), (3, 2, 1, 0)), ((1, 3, 224, 224), (0, 2, 3, 1)),
                    ((1, 224, 224, 3), (0, 3, 1, 2)), ((64, 100, 7), (2, 0, 1)), ((8, 64, 28, 28), (1, 0, 2, 3)), ((1, 12, 128, 64), (0, 1, 3, 2))]:
        cases.append(Case(f"Transpose {''.join(map(str, perm))} {_text(x)}", "movement", "Transpose", dict(perm=list(perm)), (Input(x),)))
    cases.append(Case("Transpose 0231 1×256×56×56 uint8", "movement", "Transpose", dict(perm=[0, 2, 3, 1]), (Input((1, 256, 56, 56), U8),)))
    cases.append(Case("Transpose 021 16×512×512 float16", "movement", "Transpose", dict(perm=[0, 2, 1]), (Input((16, 512, 512), np.float16),)))
    for axis in (0, 1, 3):
        pair = (Input((2, 128, 56, 56)), Input((2, 128, 56, 56)))
        cases.append(Case(f"Concat 2×128×56×56 axis {axis}", "movement", "Concat", dict(axis=axis), pair))
    for axis in (1, 3):
        cases.append(Case(f"Split 1×256×56×56 axis {axis}", "movement", "Split", dict(axis=axis, num_outputs=2), (Input((1, 256, 56, 56)),), 2))
    for x, starts, ends, axes, steps in [((1, 256, 56, 56), (0, 64), (1, 192), (0, 1), (1, 1)), ((1, 256, 56, 56), (1, 1), (55, 55), (2, 3), (1, 1)),
                                         ((1, 256, 56, 56), (0, 0), (56, 56), (2, 3), (2, 2)), ((1024, 1024), (-1,), (-2000,), (1,), (-1,))]:
        cases.append(Case(f"Slice {_text(x)} axes {axes} step {steps[0]}", "movement", "Slice", {},
                          (Input(x), _ints(*starts), _ints(*ends), _ints(*axes), _ints(*steps))))
    for mode in ("constant", "reflect", "edge", "wrap"):
        for x, pads in [((1, 64, 112, 112), (0, 0, 1, 1, 0, 0, 1, 1)), ((1, 3, 224, 224), (0, 0, 3, 3, 0, 0, 3, 3))]:
            made = Case(f"Pad {mode} {_text(x)} by {pads[2]}", "movement", "Pad", dict(mode=mode), (Input(x), _ints(*pads)))
            cases += _alone_and_between(made) if x[1] > 3 and mode != "wrap" else [made]
    cases.append(Case("Expand 256×1×1 to 256×56×56", "movement", "Expand", {}, (Input((256, 1, 1)), _ints(256, 56, 56))))
    cases.append(Case("Tile 64×56×56 by 1×2×2", "movement", "Tile", {}, (Input((64, 56, 56)), _ints(1, 2, 2))))
    for op in ("DepthToSpace", "SpaceToDepth"):
        x = (1, 256, 56, 56)
        cases.append(Case(f"{op} {_text(x)} by 2", "movement", op, dict(blocksize=2), (Input(x),)))
    cases.append(Case("DepthToSpace CRD 1×256×56×56 by 2", "movement", "DepthToSpace", dict(blocksize=2, mode="CRD"), (Input((1, 256, 56, 56)),)))
    for x, count, axis in [((30522, 768), 128, 0), ((1000, 64), 10000, 0), ((512, 1024), 256, 1), ((64, 56, 56), 28, 2)]:
        cases.append(Case(f"Gather {_text(x)} {count} of axis {axis}", "movement", "Gather", dict(axis=axis),
                          (Input(x), Input((count,), I64, 0, x[axis]))))
    cases.append(Case("GatherElements 512×1024 axis 1", "movement", "GatherElements", dict(axis=1), (Input((512, 1024)), Input((512, 300), I64, 0, 1024))))
    cases.append(Case("GatherND 64×56×56×8 by 5000×3", "movement", "GatherND", {}, (Input((64, 56, 56, 8)), Input((5000, 3), I64, 0, 56))))
    cases.append(Case("ScatterND 10000×64 by 1000", "movement", "ScatterND", {}, (Input((10000, 64)), Input((1000, 1), I64, 0, 10000), Input((1000, 64)))))
    cases.append(Case("ScatterND add 10000×64 by 1000", "movement", "ScatterND", dict(reduction="add"),
                      (Input((10000, 64)), Input((1000, 1), I64, 0, 10000), Input((1000, 64)))))
    cases.append(Case("ScatterElements 512×1024 axis 1", "movement", "ScatterElements", dict(axis=1),
                      (Input((512, 1024)), Input((512, 300), I64, 0, 1024), Input((512, 300)))))
    cases.append(Case("OneHot 10000 to 100", "movement", "OneHot", {}, (Input((10000,), I64, 0, 100), np.array([100], I64), np.array([0, 1], F))))
    cases.append(Case("Trilu 1024×1024", "movement", "Trilu", dict(upper=1), (Input((1024, 1024)),)))
    cases.append(Case("ReverseSequence 100×32×64", "movement", "ReverseSequence", dict(time_axis=0, batch_axis=1),
                      (Input((100, 32, 64)), np.arange(50, 82, dtype=I64))))
    return cases


def resampling():
    cases = []
    for mode, x, scale, more in [("nearest", (1, 64, 56, 56), 2.0, {}), ("nearest", (1, 256, 13, 13), 2.0, {}), ("linear", (1, 64, 56, 56), 2.0, {}),
                                 ("linear", (1, 21, 28, 28), 8.0, {}), ("linear", (1, 64, 56, 56), 2.0, dict(coordinate_transformation_mode="align_corners")),
                                 ("linear", (1, 64, 56, 56), 0.5, {}), ("cubic", (1, 32, 56, 56), 2.0, {}), ("linear", (1, 3, 480, 640), 0.4, dict(antialias=1))]:
        note = " ".join(str(value) for value in more.values())
        made = Case(f"Resize {mode} {_text(x)} by {scale} {note}".rstrip(), "resampling", "Resize", dict(mode=mode, **more),
                    (Input(x), None, np.array([1, 1, scale, scale], F)))
        cases += _alone_and_between(made) if not more.get("antialias") else [made]
    for mode in ("linear", "nearest", "cubic"):
        cases.append(Case(f"GridSample {mode} 1×64×56×56", "resampling", "GridSample", dict(mode=mode), (Input((1, 64, 56, 56)), Input((1, 56, 56, 2), F, -1, 1))))
    cases.append(Case("GridSample linear border 4×16×100×100", "resampling", "GridSample", dict(mode="linear", padding_mode="border", align_corners=1),
                      (Input((4, 16, 100, 100)), Input((4, 80, 80, 2), F, -1, 1))))
    cases.append(Case("RoiAlign 1×256×50×50, 100 of 7×7", "resampling", "RoiAlign", dict(output_height=7, output_width=7, sampling_ratio=2, spatial_scale=1.0),
                      (Input((1, 256, 50, 50)), np.tile(np.array([[5, 5, 30, 40]], F), (100, 1)), np.zeros(100, I64))))
    return cases


def products():
    cases = []
    for a, b in [((128, 768), (768, 768)), ((128, 768), (768, 3072)), ((1, 768), (768, 3072)), ((1, 4096), (4096, 4096)), ((512, 512), (512, 512)),
                 ((1000, 64), (64, 10)), ((196, 384), (384, 1152)), ((8, 2048), (2048, 1000)), ((17, 33), (33, 65))]:
        cases.append(Case(f"MatMul {_text(a)} by weights {_text(b)}", "product", "MatMul", {}, (Input(a), _weights(*b))))
    for a, b in [((12, 128, 64), (12, 64, 128)), ((12, 128, 128), (12, 128, 64)), ((512, 512), (512, 512)), ((8, 197, 64), (8, 64, 197)), ((32, 1, 64), (32, 64, 500))]:
        cases.append(Case(f"MatMul {_text(a)} by {_text(b)}", "product", "MatMul", {}, (Input(a), Input(b))))
    cases.append(Case("Gemm 8×512 by 1000×512ᵀ", "product", "Gemm", dict(transB=1), (Input((8, 512)), _weights(1000, 512), _weights(1000))))
    cases.append(Case("Gemm 256×512ᵀ by 512×256", "product", "Gemm", dict(transA=1), (Input((512, 256)), _weights(512, 256), _weights(256))))
    cases.append(Case("Einsum bhid,bhjd->bhij", "product", "Einsum", dict(equation="bhid,bhjd->bhij"), (Input((1, 12, 128, 64)), Input((1, 12, 128, 64)))))
    return cases


def recurrent():
    cases = []
    for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        for steps, batch, size, hidden, direction in [(100, 1, 256, 256, "forward"), (30, 8, 128, 128, "forward"), (50, 1, 64, 128, "bidirectional")]:
            both = 2 if direction == "bidirectional" else 1
            cases.append(Case(f"{op} {steps} steps of {batch}×{size} to {hidden} {direction}", "recurrent", op,
                              dict(hidden_size=hidden, direction=direction, **(dict(linear_before_reset=1) if op == "GRU" else {})),
                              (Input((steps, batch, size)), _weights(both, gates * hidden, size), _weights(both, gates * hidden, hidden),
                               _weights(both, 2 * gates * hidden))))
    return cases


def quantised():
    rng = np.random.default_rng(3)
    scale, zero8, zero = np.array(0.02, F), np.array(128, U8), np.array(0, I8)
    image = (1, 256, 56, 56)
    signed = lambda *shape: rng.integers(-100, 100, shape).astype(I8)
    cases = [Case("QuantizeLinear 802816", "quantised", "QuantizeLinear", {}, (Input(image), scale, zero8)),
             Case("DequantizeLinear 802816", "quantised", "DequantizeLinear", {}, (Input(image, U8), scale, zero8)),
             Case("QuantizeLinear 256 channels", "quantised", "QuantizeLinear", dict(axis=1), (Input(image), np.full(256, 0.02, F), np.zeros(256, I8))),
             Case("DequantizeLinear 256 channels", "quantised", "DequantizeLinear", dict(axis=1), (Input(image, I8), np.full(256, 0.02, F), np.zeros(256, I8))),
             Case("DynamicQuantizeLinear 128×768", "quantised", "DynamicQuantizeLinear", {}, (Input((128, 768)),), 3)]
    for m, k, n in [(128, 768, 768), (1, 768, 3072), (128, 768, 3072)]:
        cases.append(Case(f"MatMulInteger {m}×{k} by {k}×{n}", "quantised", "MatMulInteger", {}, (Input((m, k), U8), signed(k, n), zero8, zero)))
        cases.append(Case(f"QLinearMatMul {m}×{k} by {k}×{n}", "quantised", "QLinearMatMul", {},
                          (Input((m, k), U8), scale, zero8, signed(k, n), scale, zero, np.array(1, F), zero8)))
    for x, out, kernel, stride in [((1, 64, 56, 56), 64, 3, 1), ((1, 64, 56, 56), 256, 1, 1), ((1, 3, 224, 224), 32, 3, 2)]:
        cases.append(Case(f"QLinearConv {_text(x)} to {out}, {kernel}×{kernel} s{stride}", "quantised", "QLinearConv",
                          dict(strides=[stride] * 2, pads=[kernel // 2] * 4),
                          (Input(x, U8), scale, zero8, signed(out, x[1], kernel, kernel), scale, zero, np.array(1, F), zero8)))
    return cases


def sorting():
    cases = []
    for x, k, axis, largest in [((1, 20000), 300, 1, 1), ((1, 1000), 5, 1, 1), ((64, 1000), 10, 1, 1), ((1, 50257), 50, 1, 1), ((1000, 100), 1, 1, 1),
                                ((100, 64, 56), 3, 1, 0), ((1, 100000), 1000, 1, 1), ((1, 4096), 4096, 1, 0)]:
        cases.append(Case(f"TopK {k} of {_text(x)} axis {axis}", "sorting", "TopK", dict(axis=axis, largest=largest), (Input(x), _ints(k)), 2))
    cases.append(Case("NonZero 512×512", "sorting", "NonZero", {}, (Input((512, 512), BOOL),)))
    cases.append(Case("Unique 10000", "sorting", "Unique", dict(sorted=1), (Input((10000,), I64, 0, 500),)))
    boxes = np.random.default_rng(4).uniform(0, 100, (1, 2000, 4)).astype(F)
    boxes[..., 2:] += boxes[..., :2]
    cases.append(Case("NonMaxSuppression 2000 boxes", "sorting", "NonMaxSuppression", {},
                      (boxes, Input((1, 4, 2000), F, 0, 1), _ints(100), np.array([0.5], F), np.array([0.1], F))))
    return cases


FAMILIES = (convolutions, transposed_convolutions, pooling, elementwise, reductions, normalizations, movement, resampling, products,
            recurrent, quantised, sorting)


def all_cases():
    """Every case; names are distinct."""
    cases = [case for family in FAMILIES for case in family()]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return cases
