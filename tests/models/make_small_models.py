#!/usr/bin/python3
"""Writes the two small models of tests/models/small, weights included.

usage: make_small_models.py [--out DIR] [--check]

The graphs are written as exporters write them. Weights are seeded and scaled so that activations stay of order one, and
the bytes are the same every time; --check compares them with the files in DIR instead of writing.
Needs onnx and numpy (Debian: python3-onnx python3-numpy).
"""
import argparse
import pathlib
import sys
import zlib

try:
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper, shape_inference
except ImportError as error:
    print(f"{error.name} is missing: apt-get install python3-onnx python3-numpy (or pip install onnx numpy)", file=sys.stderr)
    sys.exit(77 if "--check" in sys.argv else 1)  # 77: the test is skipped


class Graph:
    """Nodes in order; every weight is drawn from a generator of its own name, so that edits stay local."""

    def __init__(self, name, opset):
        self.name, self.opset = name, opset
        self.nodes, self.weights = [], []

    def op(self, kind, *inputs, outputs=1, **attributes):
        stem = f"{kind}_{len(self.nodes)}"
        names = [stem] if outputs == 1 else [f"{stem}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=stem, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.int64):
        """A Constant node, as exporters write shapes and scalars."""
        stem = f"Constant_{len(self.nodes)}"
        tensor = numpy_helper.from_array(np.array(values, dtype), stem)
        self.nodes.append(helper.make_node("Constant", [], [stem], name=stem, value=tensor))
        return stem

    def weight(self, name, shape, scale, mean=0.0):
        rng = np.random.default_rng(zlib.crc32(f"{self.name}/{name}".encode()))
        values = (rng.standard_normal(shape) * scale + mean).astype(np.float32)
        return self.initializer(name, values)

    def initializer(self, name, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def model(self, inputs, outputs):
        """The last node computes the output."""
        self.nodes[-1].output[:] = [name for name, _ in outputs]
        info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, self.name, [info(*i) for i in inputs], [info(*o) for o in outputs],
                                  self.weights)
        model = helper.make_model(graph, producer_name="make_small_models", ir_version=8,
                                  opset_imports=[helper.make_opsetid("", self.opset)])
        checker.check_model(model)
        shape_inference.infer_shapes(model, strict_mode=True)
        return model


# --- tiny_encoder: x: [N, T, C] ---

TOKENS, CHANNELS, HEADS, HIDDEN, CLASSES = 32, 64, 4, 256, 10


def linear(g, x, name, fan_in, fan_out):
    product = g.op("MatMul", x, g.weight(f"{name}.weight", (fan_in, fan_out), fan_in**-0.5))
    return g.op("Add", g.weight(f"{name}.bias", (fan_out,), 0.1), product)


def layer_norm_parameters(g, name):
    return g.weight(f"{name}.weight", (CHANNELS,), 0.1, 1.0), g.weight(f"{name}.bias", (CHANNELS,), 0.1)


def layer_norm_written_out(g, x, name):
    """Nine nodes: what opset 16 exporters make of LayerNorm."""
    scale, bias = layer_norm_parameters(g, name)
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.constant(2.0, np.float32)), axes=[-1])
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(1e-5, np.float32)))
    return g.op("Add", g.op("Mul", g.op("Div", centred, deviation), scale), bias)


def layer_norm(g, x, name):
    return g.op("LayerNormalization", x, *layer_norm_parameters(g, name), axis=-1, epsilon=1e-5)


def gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, g.constant(2.0**0.5, np.float32)))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.constant(1.0, np.float32))), g.constant(0.5, np.float32))


def split_heads(g, x, perm):
    """[N, T, C] -> [N, H, T, C/H] or, for keys, [N, H, C/H, T]."""
    return g.op("Transpose", g.op("Reshape", x, g.constant([1, TOKENS, HEADS, CHANNELS // HEADS])), perm=perm)


def attention(g, q, k, v):
    scores = g.op("MatMul", split_heads(g, q, [0, 2, 1, 3]), split_heads(g, k, [0, 2, 3, 1]))
    scores = g.op("Div", scores, g.constant((CHANNELS // HEADS)**0.5, np.float32))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), split_heads(g, v, [0, 2, 1, 3]))
    return g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant([1, TOKENS, CHANNELS]))


def feed_forward(g, x, name):
    return linear(g, gelu(g, linear(g, x, f"{name}.up", CHANNELS, HIDDEN)), f"{name}.down", HIDDEN, CHANNELS)


def layer_after_bert(g, x, name):
    """Three projections, norms behind the residuals and written out."""
    q, k, v = (linear(g, x, f"{name}.{role}", CHANNELS, CHANNELS) for role in ("query", "key", "value"))
    out = linear(g, attention(g, q, k, v), f"{name}.out", CHANNELS, CHANNELS)
    x = layer_norm_written_out(g, g.op("Add", out, x), f"{name}.norm1")
    return layer_norm_written_out(g, g.op("Add", feed_forward(g, x, name), x), f"{name}.norm2")


def layer_after_gpt(g, x, name):
    """One projection that is split, norms before the branches and as one operator."""
    qkv = linear(g, layer_norm(g, x, f"{name}.norm1"), f"{name}.qkv", CHANNELS, 3 * CHANNELS)
    q, k, v = g.op("Split", qkv, g.constant([CHANNELS] * 3), outputs=3, axis=2)
    x = g.op("Add", linear(g, attention(g, q, k, v), f"{name}.out", CHANNELS, CHANNELS), x)
    return g.op("Add", feed_forward(g, layer_norm(g, x, f"{name}.norm2"), name), x)


def tiny_encoder():
    g = Graph("tiny_encoder", 17)
    x = g.op("Add", "input", g.weight("position", (1, TOKENS, CHANNELS), 0.5))
    x = layer_after_bert(g, x, "layer0")
    x = layer_after_gpt(g, x, "layer1")
    x = g.op("ReduceMean", layer_norm(g, x, "norm"), axes=[1], keepdims=0)
    x = g.op("Tanh", gemm(g, x, "pooler", CHANNELS, CHANNELS))
    gemm(g, x, "head", CHANNELS, CLASSES)
    return g.model([("input", (1, TOKENS, CHANNELS))], [("logits", (1, CLASSES))])


# --- tiny_resnet: x: [N, C, H, W] ---


def gemm(g, x, name, fan_in, fan_out):
    weight = g.weight(f"{name}.weight", (fan_out, fan_in), fan_in**-0.5)
    return g.op("Gemm", x, weight, g.weight(f"{name}.bias", (fan_out,), 0.1), transB=1)


def conv_bn(g, x, name, fan_in, fan_out, kernel, stride=1, group=1):
    """Convolution without bias and its batch norm, which stays a node."""
    inputs = fan_in // group * kernel * kernel
    x = g.op("Conv", x, g.weight(f"{name}.weight", (fan_out, fan_in // group, kernel, kernel), inputs**-0.5),
             kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, dilations=[1, 1], group=group)
    rng = np.random.default_rng(zlib.crc32(f"{name}/running_var".encode()))
    variance = g.initializer(f"{name}.running_var", rng.uniform(0.5, 1.5, fan_out).astype(np.float32))
    return g.op("BatchNormalization", x, g.weight(f"{name}.scale", (fan_out,), 0.2, 1.0),
                g.weight(f"{name}.shift", (fan_out,), 0.2), g.weight(f"{name}.running_mean", (fan_out,), 0.2), variance,
                epsilon=1e-5)


def residual_block(g, x, name, fan_in, fan_out, stride):
    branch = g.op("Relu", conv_bn(g, x, f"{name}.conv1", fan_in, fan_out, 3, stride))
    branch = conv_bn(g, branch, f"{name}.conv2", fan_out, fan_out, 3)
    if stride != 1 or fan_in != fan_out:
        x = conv_bn(g, x, f"{name}.downsample", fan_in, fan_out, 1, stride)
    return g.op("Relu", g.op("Add", branch, x))


def inverted_residual(g, x, name, channels, expansion):
    """MobileNetV2's block: 1x1, depthwise 3x3, 1x1, with the activation clipped at six."""
    low, high = g.constant(0.0, np.float32), g.constant(6.0, np.float32)
    wide = channels * expansion
    branch = g.op("Clip", conv_bn(g, x, f"{name}.expand", channels, wide, 1), low, high)
    branch = g.op("Clip", conv_bn(g, branch, f"{name}.depthwise", wide, wide, 3, group=wide), low, high)
    return g.op("Add", x, conv_bn(g, branch, f"{name}.project", wide, channels, 1))


def tiny_resnet():
    g = Graph("tiny_resnet", 16)
    x = g.op("Relu", conv_bn(g, "input", "stem", 3, 16, 3, stride=2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=0)
    x = residual_block(g, x, "block1", 16, 16, 1)
    x = residual_block(g, x, "block2", 16, 32, 2)
    x = inverted_residual(g, x, "block3", 32, 4)
    x = residual_block(g, x, "block4", 32, 64, 2)
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    gemm(g, x, "head", 64, CLASSES)
    return g.model([("input", (1, 3, 64, 64))], [("logits", (1, CLASSES))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "small")
    parser.add_argument("--check", action="store_true", help="compare with the files in DIR instead of writing them")
    options = parser.parse_args()
    for make in (tiny_encoder, tiny_resnet):
        path = options.out / f"{make.__name__}.onnx"
        data = make().SerializeToString(deterministic=True)
        if options.check:
            if not path.is_file() or path.read_bytes() != data:
                sys.exit(f"{path} is not what this script makes; run {sys.argv[0]} and commit the result")
        else:
            options.out.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main()
