"""The convolutions and matrix products of an ONNX model with the operators that follow, and a model of each.

    for layer, count in distinct_layers("resnet50.onnx"): onnx.save(layer.model(rng)[0], ...)

Nodes of a model that belong to the layer have names that begin with "layer". Needs numpy and onnx.
"""
import math
from typing import NamedTuple, Optional

import numpy as np
import onnx
from onnx import helper, numpy_helper

FEW_CHANNELS = 16  # of the convolutions around the one that is examined


def row_major(shape):
    return tuple(math.prod(shape[axis + 1:]) for axis in range(len(shape)))


def random(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


class Operand(NamedTuple):
    """An activation stored row-major as `stored`, read through `perm`."""
    stored: tuple
    perm: tuple

    @property
    def shape(self):
        return tuple(self.stored[axis] for axis in self.perm)

    @property
    def strides(self):
        return tuple(row_major(self.stored)[axis] for axis in self.perm)


class Epilogue(NamedTuple):
    scale: float = 1.0
    bias: bool = False
    residual: bool = False
    activation: str = ""  # Relu, Gelu, Tanh


class Graph:
    """Nodes for a model of one layer."""

    def __init__(self):
        self.inputs, self.nodes, self.constants = {}, [], {}

    def input(self, name, shape):
        self.inputs[name] = tuple(shape)
        return name

    def constant(self, name, values):
        self.constants[name] = np.asarray(values, np.float32)
        return name

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def activation(self, kind, value):
        if kind != "Gelu":
            return self.node(kind, [value], "layer_activation") if kind else value
        constant = lambda name, number: self.constant(name, number)
        scaled = self.node("Div", [value, constant("root_of_two", math.sqrt(2))], "layer_scaled")
        erf = self.node("Erf", [scaled], "layer_erf")
        shifted = self.node("Add", [erf, constant("one", 1)], "layer_shifted")
        twice = self.node("Mul", [value, shifted], "layer_twice")
        return self.node("Mul", [twice, constant("half", 0.5)], "layer_activation")

    def model(self, output, shape):
        info = lambda name, extents: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, extents)
        graph = helper.make_graph(self.nodes, "layer", [info(*item) for item in self.inputs.items()],
                                  [info(output, shape)],
                                  [numpy_helper.from_array(values, name) for name, values in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)


class Convolution(NamedTuple):
    x: tuple  # [N, C, H, W]
    weights: tuple  # [O, C / groups, KH, KW]
    y: tuple
    strides: tuple
    pads: tuple  # top, left, bottom, right
    dilations: tuple
    groups: int
    epilogue: Epilogue

    @property
    def reads_input(self):
        """Stands first in its network, for all that its channels tell."""
        return self.x[1] <= 4

    @property
    def kind(self):
        if self.reads_input:
            return "first"
        if self.groups > 1:
            return "grouped"
        return "strided" if max(self.strides) > 1 else "x".join(map(str, self.weights[2:]))

    @property
    def flops(self):
        return 2 * math.prod(self.y) * math.prod(self.weights[1:])

    def describe(self):
        size = lambda pair: "×".join(map(str, pair))
        text = f"{size(self.weights[2:])}, {self.x[1]} → {self.weights[0]}, {size(self.x[2:])}"
        text += f" / {self.strides[0]}" if max(self.strides) > 1 else ""
        text += f", {self.groups} groups" if self.groups > 1 else ""
        return text + (", add" if self.epilogue.residual else "") + \
            (f", {self.epilogue.activation}" if self.epilogue.activation else "")

    def parameters(self, rng):
        return (random(rng, *self.weights, scale=math.prod(self.weights[1:])**-0.5), random(rng, self.weights[0]))

    def model(self, parameters, rng):
        """(model, what maps its inputs to the layer's operands, what maps the layer's result to its output). The layer
        stands between convolutions of 1 × 1 to and from few channels, so that it reads and writes the layout that the
        compiler likes best. The first of a network reads the network's input instead."""
        graph, small = Graph(), (self.x[0], FEW_CHANNELS, *self.x[2:])
        around = {}

        def pointwise(value, name, channels_in, channels_out):
            around[name] = random(rng, channels_out, channels_in, scale=channels_in**-0.5)
            weights = graph.constant(f"{name}_weights", around[name][:, :, None, None])
            return graph.node("Conv", [value, weights], name, kernel_shape=[1, 1])

        if self.reads_input:
            value = graph.input("x", self.x)
        else:
            value = pointwise(graph.input("x", small), "before", FEW_CHANNELS, self.x[1])
        weights, bias = parameters
        y = graph.node("Conv", [value, graph.constant("weights", weights), graph.constant("bias", bias)], "layer",
                       kernel_shape=self.weights[2:], strides=self.strides, pads=self.pads, dilations=self.dilations,
                       group=self.groups)
        if self.epilogue.residual:
            residual = pointwise(graph.input("residual", (self.y[0], FEW_CHANNELS, *self.y[2:])), "before_residual",
                                 FEW_CHANNELS, self.y[1])
            y = graph.node("Add", [y, residual], "layer_residual")
        y = graph.activation(self.epilogue.activation, y)
        y = pointwise(y, "after", self.y[1], FEW_CHANNELS)

        def project(name, values):
            return np.einsum("oc,nchw->nohw", around[name], values, optimize=True) if name in around else values

        def operands(feeds):
            found = {"x": project("before", feeds["x"])}
            if self.epilogue.residual:
                found["residual"] = project("before_residual", feeds["residual"])
            return found

        return graph.model(y, (self.y[0], FEW_CHANNELS, *self.y[2:])), operands, lambda values: project("after", values)


class Product(NamedTuple):
    a: Operand  # without leading axes of extent 1; with weights [M, K]
    b: Operand
    weights: bool  # b is constant
    y: Operand  # the result's elements, [..., M, N], where they are stored
    epilogue: Epilogue

    @property
    def kind(self):
        if not self.weights:
            return "attention"
        return "one row" if self.a.shape[0] == 1 else "matmul"

    @property
    def flops(self):
        return 2 * math.prod(self.y.shape) * self.a.shape[-1]

    def describe(self):
        (m, k), n, batch = self.a.shape[-2:], self.b.shape[-1], self.y.shape[:-2]
        text = "".join(f"{extent} × " for extent in batch) + f"[{m}, {k}] [{k}, {n}]"
        follows = [word for word, there in (("bias", self.epilogue.bias), ("scale", self.epilogue.scale != 1),
                                            ("add", self.epilogue.residual)) if there]
        return ", ".join([text, *follows, *([self.epilogue.activation] if self.epilogue.activation else [])])

    def parameters(self, rng):
        if not self.weights:
            return None, None
        k, n = self.b.shape
        return random(rng, k, n, scale=k**-0.5), random(rng, n) if self.epilogue.bias else None

    def model(self, parameters, _rng):
        """As Convolution.model. The operands are inputs, stored and transposed as in the network."""
        graph = Graph()

        def operand(name, form):
            value = graph.input(name, form.stored)
            if form.perm == tuple(range(len(form.perm))):
                return value
            return graph.node("Transpose", [value], f"layer_transpose_{name}", perm=form.perm)

        weights, bias = parameters
        a = operand("x", self.a)
        b = graph.constant("weights", weights) if self.weights else operand("b", self.b)
        y = graph.node("MatMul", [a, b], "layer")
        if self.epilogue.scale != 1:
            y = graph.node("Mul", [y, graph.constant("scale", self.epilogue.scale)], "layer_scale")
        if self.epilogue.bias:
            y = graph.node("Add", [y, graph.constant("bias", bias)], "layer_bias")
        if self.epilogue.residual:
            y = graph.node("Add", [y, graph.input("residual", self.y.shape)], "layer_residual")
        y = graph.activation(self.epilogue.activation, y)
        back = tuple(int(axis) for axis in np.argsort(self.y.perm))
        if back != tuple(range(len(back))):
            y = graph.node("Transpose", [y], "layer_transpose_y", perm=back)

        def operands(feeds):
            found = {"x": feeds["x"].transpose(self.a.perm)}
            if not self.weights:
                found["b"] = feeds["b"].transpose(self.b.perm)
            if self.epilogue.residual:
                found["residual"] = feeds["residual"]
            return found

        return graph.model(y, self.y.stored), operands, lambda values: values.transpose(back)


class _Network:
    """A model's nodes with shapes and users."""

    def __init__(self, path):
        model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
        graph = model.graph
        self.nodes = list(graph.node)
        extents = lambda info: tuple(axis.dim_value for axis in info.type.tensor_type.shape.dim)
        self.shapes = {info.name: extents(info) for info in (*graph.value_info, *graph.input, *graph.output)}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._constants |= {node.output[0]: node.attribute[0].t for node in self.nodes
                            if node.op_type == "Constant" and node.attribute[0].name == "value"}
        self.shapes |= {name: tuple(tensor.dims) for name, tensor in self._constants.items()}
        self.maker = {name: node for node in self.nodes for name in node.output}
        self._users, self._outputs = {}, {info.name for info in graph.output}
        for node in self.nodes:
            for name in node.input:
                self._users.setdefault(name, []).append(node)

    def is_constant(self, name):
        return name in self._constants

    def scalar(self, name):
        """Its value if it is a constant of one element, else None."""
        if name not in self._constants or math.prod(self.shapes[name]) != 1:
            return None
        return float(numpy_helper.to_array(self._constants[name]).reshape(()))

    def users(self, name):
        return [] if name in self._outputs else self._users.get(name, [])

    def only_user(self, name):
        users = self.users(name)
        return users[0] if len(users) == 1 else None

    def follow(self, value, epilogue):
        """(`epilogue` with what comes after `value`, the value behind it); a product has a scale or a bias."""
        channels = self.shapes[value][-1]
        if any(node.op_type in ("Div", "Mul") and getattr(self.only_user(node.output[0]), "op_type", "") == "Erf"
               for node in self.users(value)):
            return epilogue._replace(activation="Gelu"), value
        node = self.only_user(value)
        if node is None:
            return epilogue, value
        other = next((name for name in node.input if name != value), None)
        grown = None
        if node.op_type in ("Relu", "Tanh"):
            return epilogue._replace(activation=node.op_type), node.output[0]
        if node.op_type == "Div" and self.scalar(other) is not None and epilogue == Epilogue():
            grown = epilogue._replace(scale=1 / self.scalar(other))
        elif node.op_type == "Mul" and self.scalar(other) is not None and epilogue == Epilogue():
            grown = epilogue._replace(scale=self.scalar(other))
        elif node.op_type == "Add" and self.is_constant(other):
            if self.shapes[other] == (channels,) and epilogue == Epilogue():
                grown = epilogue._replace(bias=True)
        elif node.op_type == "Add" and self.shapes[other] == self.shapes[value] and not epilogue.residual:
            # Where two convolutions are added, the first takes the sum.
            if node.input[0] == value or self.maker.get(other) is None or self.maker[other].op_type != "Conv":
                grown = epilogue._replace(residual=True)
        return (epilogue, value) if grown is None else self.follow(node.output[0], grown)


def _attributes(node, **defaults):
    return defaults | {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _convolution(network, node):
    x, weights, y = (network.shapes[name] for name in (node.input[0], node.input[1], node.output[0]))
    if len(x) != 4 or not network.is_constant(node.input[1]):
        return None
    found = _attributes(node, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1)
    epilogue, _ = network.follow(node.output[0], Epilogue(bias=True))
    return Convolution(x, weights, y, *(tuple(found[key]) for key in ("strides", "pads", "dilations")), found["group"],
                       epilogue)


def _operand(network, name):
    """Through a transposition, without leading axes of extent 1."""
    maker = network.maker.get(name)
    stored, perm = network.shapes[name], tuple(range(len(network.shapes[name])))
    if maker is not None and maker.op_type == "Transpose":
        stored, perm = network.shapes[maker.input[0]], tuple(_attributes(maker)["perm"])
    return _without_ones(Operand(stored, perm))


def _without_ones(operand):
    while len(operand.perm) > 2 and operand.shape[0] == 1:
        gone = operand.perm[0]
        stored = operand.stored[:gone] + operand.stored[gone + 1:]
        operand = Operand(stored, tuple(axis - (axis > gone) for axis in operand.perm[1:]))
    return operand


def _product(network, node):
    a, b, y = (network.shapes[name] for name in (node.input[0], node.input[1], node.output[0]))
    plain = lambda *shape: Operand(shape, tuple(range(len(shape))))
    if network.is_constant(node.input[1]):
        if len(b) != 2:
            return None
        epilogue = Epilogue()
        if node.op_type == "Gemm":
            found = _attributes(node, alpha=1.0, beta=1.0, transA=0, transB=0)
            if (found["alpha"], found["beta"], found["transA"]) != (1, 1, 0):
                return None
            b = b[::-1] if found["transB"] else b
            epilogue = Epilogue(bias=len(node.input) > 2)
        epilogue, _ = network.follow(node.output[0], epilogue)
        rows = math.prod(a[:-1])
        return Product(plain(rows, a[-1]), plain(*b), True, plain(rows, b[1]), epilogue)
    if network.is_constant(node.input[0]) or len(a) != len(b) or node.op_type == "Gemm" or a[:-2] != b[:-2]:
        return None
    epilogue, value = network.follow(node.output[0], Epilogue())
    stored, perm = y, tuple(range(len(y)))
    after = network.only_user(value)
    if after is not None and after.op_type == "Transpose":
        perm = tuple(int(axis) for axis in np.argsort(_attributes(after)["perm"]))
        stored = network.shapes[after.output[0]]
    return Product(_operand(network, node.input[0]), _operand(network, node.input[1]), False,
                   _without_ones(Operand(stored, perm)), epilogue)


def distinct_layers(path):
    """{layer: how often `path` has it}, and the nodes that have no form here as a list of names."""
    network, layers, strange = _Network(path), {}, []
    readers = {"Conv": _convolution, "MatMul": _product, "Gemm": _product}
    for node in network.nodes:
        if node.op_type in readers:
            layer = readers[node.op_type](network, node)
            if layer is None:
                strange.append(node.name)
            else:
                layers[layer] = layers.get(layer, 0) + 1
    return layers, strange
