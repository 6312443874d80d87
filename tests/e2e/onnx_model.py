"""Writes small ONNX models with nothing but the standard library: the wire form of onnx.proto, field by field."""
import random
import struct

FLOAT, INT64, BOOL = 1, 7, 9


def _varint(value):
    value &= (1 << 64) - 1
    out = b""
    while True:
        out += bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
        value >>= 7
        if not value:
            return out


def _int(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def tensor(name, dims, values=None, dtype=FLOAT, raw=None, external=None):
    """An initializer. `values` are floats or ints; `raw` overrides the bytes; `external` names a file instead."""
    text = b"".join(_int(1, d) for d in dims) + _int(2, dtype) + _bytes(8, name)
    if external is not None:
        return text + _bytes(13, _bytes(1, "location") + _bytes(2, external)) + _int(14, 1)
    if raw is None:
        raw = struct.pack("<%d%s" % (len(values), "f" if dtype == FLOAT else "q"), *values)
    return text + _bytes(9, raw)


def value(name, dims, dtype=FLOAT):
    shape = b"".join(_bytes(1, _bytes(2, d) if isinstance(d, str) else _int(1, d)) for d in dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, _int(1, dtype) + _bytes(2, shape)))


def node(op, inputs, outputs, name="", **attributes):
    text = b"".join(_bytes(1, i) for i in inputs) + b"".join(_bytes(2, o) for o in outputs)
    text += _bytes(3, name) + _bytes(4, op)
    for key, item in attributes.items():
        if isinstance(item, int):
            text += _bytes(5, _bytes(1, key) + _int(3, item) + _int(20, 2))
        elif isinstance(item, str):
            text += _bytes(5, _bytes(1, key) + _bytes(4, item) + _int(20, 3))
        elif isinstance(item, float):
            text += _bytes(5, _bytes(1, key) + _varint(2 << 3 | 5) + struct.pack("<f", item) + _int(20, 1))
        else:
            text += _bytes(5, _bytes(1, key) + b"".join(_int(8, i) for i in item) + _int(20, 7))
    return text


def model(nodes, inputs, outputs, initializers=(), opset=13):
    graph = b"".join(_bytes(1, n) for n in nodes) + _bytes(2, "g")
    graph += b"".join(_bytes(5, i) for i in initializers)
    graph += b"".join(_bytes(11, i) for i in inputs) + b"".join(_bytes(12, o) for o in outputs)
    return _int(1, 8) + _bytes(7, graph) + _bytes(8, _int(2, opset))


def floats(count, seed, scale=0.2):
    source = random.Random(seed)
    return [source.uniform(-scale, scale) for _ in range(count)]


def mlp(seed=0, widths=(16, 24, 8), batch=4, names="t"):
    """MatMul + Add + Relu layers, the last without Relu. `names` prefixes every tensor and node."""
    nodes, initializers, current = [], [], names + "_x"
    for i, (rows, columns) in enumerate(zip(widths, widths[1:])):
        weight, bias = "%s_w%d" % (names, i), "%s_b%d" % (names, i)
        initializers.append(tensor(weight, [rows, columns], floats(rows * columns, seed + i)))
        initializers.append(tensor(bias, [columns], floats(columns, seed + 100 + i)))
        nodes.append(node("MatMul", [current, weight], ["%s_m%d" % (names, i)], "%s_mm%d" % (names, i)))
        current = "%s_a%d" % (names, i)
        nodes.append(node("Add", ["%s_m%d" % (names, i), bias], [current], "%s_add%d" % (names, i)))
        if i + 2 < len(widths):
            nodes.append(node("Relu", [current], ["%s_r%d" % (names, i)], "%s_relu%d" % (names, i)))
            current = "%s_r%d" % (names, i)
    return model(nodes, [value(names + "_x", [batch, widths[0]])], [value(current, [batch, widths[-1]])], initializers)


def convolution(seed=0, channels=32, size=14):
    """Conv 3x3, Relu."""
    weights = floats(channels * channels * 9, seed)
    return model(
        [node("Conv", ["x", "w"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
         node("Relu", ["c"], ["y"], "relu")],
        [value("x", [1, channels, size, size])], [value("y", [1, channels, size, size])],
        [tensor("w", [channels, channels, 3, 3], weights)])


def elementwise_and_softmax(seed=0, rows=32, columns=48):
    """Has yellow cases: a reduction between broadcasts and elementwise operators."""
    nodes = [
        node("Mul", ["x", "scale"], ["a"], "mul"),
        node("Add", ["a", "x"], ["b"], "add"),
        node("Softmax", ["b"], ["c"], "softmax", axis=-1),
        node("Sigmoid", ["c"], ["d"], "sigmoid"),
        node("Transpose", ["d"], ["e"], "transpose", perm=[1, 0]),
        node("Add", ["e", "row"], ["y"], "bias"),
    ]
    return model(nodes, [value("x", [rows, columns])], [value("y", [columns, rows])],
                 [tensor("scale", [columns], floats(columns, seed)), tensor("row", [rows], floats(rows, seed + 1))])
