#!/usr/bin/env python3
"""GraphTurbo's Table 3: how many outputs stay in DDR, LLB and L1.

usage: graphturbo.py --build DIR --models DIR [--only NAME,…] [--local-kib N,…] [--literal] [--out docs/benchmarks/graphturbo.md]

For each model of the paper it makes the batch of one cluster (Table 2), runs graph-turbo, and prints the counts beside the paper's. Counts follow from capacities and shapes; no rate enters.
Models come from --models (tests/models says how they are made). BERT and the vision transformer are written here in the form
that TensorFlow and TVM give them; BERT at 384 is MLPerf's BERT-large. DenseNet's concatenations are chained as TensorFlow's are.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

# Paper: label, batch of a cluster (Table 2), outputs in DDR of TVM, and in DDR, LLB and L1 of GraphTurbo (Table 3).
Row = collections.namedtuple("Row", "label name model batch sequence tvm ddr llb l1")
PAPER = [
    Row("A", "ResNet-50", "resnet50", 16, None, 58, 1, 11, 284),
    Row("B", "BERT-128", "bert base", 8, 128, 242, 1, 0, 305),
    Row("C", "BERT-256", "bert base", 4, 256, 242, 1, 110, 240),
    Row("D", "BERT-384", "bert large", 2, 384, 515, 1, 75, 967),
    Row("E", "BERT-512", "bert base", 2, 512, 242, 1, 76, 337),
    Row("F", "DLRM", "dlrm", 256, None, 76, 0, 0, 76),
    Row("G", "MobileNet-v2", "mobilenet_v2", 32, None, 56, 0, 3, 608),
    Row("H", "Vision_Transformer", "vision transformer", 8, None, 214, 24, 60, 340),
    Row("I", "DenseNet", "densenet121", 8, None, 247, 0, 3, 389),
    Row("J", "Conformer", "conformer", 3, None, 1054, 4, 813, 250),
]
# Models that the paper has no row for.
OTHERS = [Row("", name, name, batch, sequence, None, None, None, None) for name, batch, sequence in
          (("bert_base_dyn", 8, 128), ("vit_b_16", 8, None), ("efficientnet_b0", 8, None), ("shufflenet_v2_x1_0", 8, None), ("vgg16", 8, None))]


def rebatch(model, batch):
    """Sets the batch of a model whose graph was exported for one; reshapes to written extents follow."""
    graph = model.graph
    for value in list(graph.input) + list(graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.name in {i.name for i in graph.initializer} or not dims:
            continue
        old = dims[0].dim_value
        dims[0].dim_value = batch
    del graph.value_info[:]
    written = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            written[node.output[0]] = node.attribute[0].t
        elif node.op_type == "Identity" and node.input[0] in written:
            written[node.output[0]] = written[node.input[0]]

    def constant(node, at, array):
        name = f"{node.output[0]}_input_{at}"
        graph.initializer.append(numpy_helper.from_array(array, name))
        node.input[at] = name

    for node in graph.node:
        if node.op_type == "Reshape" and node.input[1] in written:
            shape = numpy_helper.to_array(written[node.input[1]]).tolist()
            constant(node, 1, numpy.array(scaled(shape, batch // old), numpy.int64))
        elif node.op_type == "Expand" and node.input[0] in written and written[node.input[0]].dims[:1] == [1]:
            constant(node, 1, numpy.array([batch] + list(written[node.input[0]].dims)[1:], numpy.int64))
        elif node.op_type == "Concat" and node.attribute[0].i != 0:
            for at, name in enumerate(node.input):
                if name in written and len(written[name].dims) > 2 and written[name].dims[0] == 1:
                    constant(node, at, numpy.repeat(numpy_helper.to_array(written[name]), batch, axis=0))
    return model


def scaled(shape, factor):
    """The extents with a batch that is `factor` times as large: the leading 1 or, where the tokens lead (torch's
    attention has [tokens, batch, …]), the dimension behind them."""
    if shape[0] in (1, 128):
        return [shape[0] * factor] + shape[1:]
    if len(shape) == 2:
        return [shape[0] * factor, shape[1]]
    return [shape[0], shape[1] * factor] + shape[2:]


def chained_concatenations(model):
    """Writes a concatenation of all features so far as one of the last concatenation and what is new, which is the form
    of TensorFlow's DenseNet (torch's lists all features each time)."""
    joined = {}  # the features of a concatenation, in order: its result
    for node in model.graph.node:
        if node.op_type != "Concat":
            continue
        features = list(node.input)
        if tuple(features[:-1]) in joined:
            del node.input[:]
            node.input.extend([joined[tuple(features[:-1])], features[-1]])
        joined[tuple(features)] = node.output[0]
    return model


class Writer:
    """Makes a graph node by node. Weights are zeros, because they do not matter to the counts; those of equal name are
    shared."""

    def __init__(self):
        self.nodes, self.initializers, self.inputs = [], {}, []

    def tensor(self, name, array):
        self.initializers.setdefault(name, numpy_helper.from_array(array, name))
        return name

    def weight(self, name, *shape):
        return self.tensor(name, numpy.zeros(shape, numpy.float32) if shape else numpy.array(0.125, numpy.float32))

    def input(self, name, kind, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def reshape(self, x, *extents):
        return self.op("Reshape", x, self.tensor("extents_" + "_".join(map(str, extents)), numpy.array(extents, numpy.int64)))

    def dense(self, x, inputs, outputs):
        name = f"{inputs}x{outputs}"
        return self.op("Add", self.op("MatMul", x, self.weight(f"w{name}", inputs, outputs)), self.weight(f"b{name}", outputs))

    def norm(self, x, width):
        """A layer norm in the parts that TensorFlow writes."""
        op, gain = self.op, self.weight("gain", width)
        mean = op("ReduceMean", x, axes=[-1])
        variance = op("ReduceMean", op("Pow", op("Sub", x, mean), self.weight("two")), axes=[-1])
        scale = op("Mul", op("Reciprocal", op("Sqrt", op("Add", variance, self.weight("epsilon")))), gain)
        return op("Add", op("Mul", x, scale), op("Sub", self.weight("bias", width), op("Mul", mean, scale)))

    def attention(self, x, batch, tokens, hidden, heads, mask=None, rows=()):
        """x: [rows…, hidden], by default [batch · tokens, hidden]. Products of rank 3, as TVM writes them."""
        op, width = self.op, hidden // heads

        def heads_of(perm):
            turned = op("Transpose", self.reshape(self.dense(x, hidden, hidden), batch, tokens, heads, width), perm=perm)
            return self.reshape(turned, batch * heads, *((width, tokens) if perm[2] == 3 else (tokens, width)))

        q, k, v = (heads_of(perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        scores = op("Mul", self.reshape(op("MatMul", q, k), batch, heads, tokens, tokens), self.weight("scale"))
        weights = op("Softmax", op("Add", scores, mask) if mask else scores, axis=-1)
        context = op("MatMul", self.reshape(weights, batch * heads, tokens, tokens), v)
        turned = op("Transpose", self.reshape(context, batch, heads, tokens, width), perm=[0, 2, 1, 3])
        return self.dense(self.reshape(turned, *(rows or (batch * tokens,)), hidden), hidden, hidden)

    def feed_forward(self, x, hidden):
        op, inner = self.op, self.dense(x, hidden, 4 * hidden)
        error = op("Erf", op("Div", inner, self.weight("root")))
        gelu = op("Mul", op("Mul", inner, self.weight("half")), op("Add", error, self.weight("one")))
        return self.dense(gelu, 4 * hidden, hidden)

    def model(self, output, *shape):
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self.nodes, "written", self.inputs, outputs, list(self.initializers.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)])


def bert(batch, tokens, layers, hidden, heads):
    """BERT for questions; the vocabulary is short."""
    w = Writer()
    ids, types, positions = (w.input(name, TensorProto.INT64, batch, tokens) for name in ("ids", "types", "positions"))
    visible = w.input("mask", TensorProto.FLOAT, batch, 1, 1, tokens)
    tables = [w.op("Gather", w.weight(f"table{rows}", rows, hidden), x) for rows, x in ((1000, ids), (2, types), (512, positions))]
    embedded = w.op("Add", w.op("Add", tables[0], tables[1]), tables[2])
    x = w.norm(w.reshape(embedded, batch * tokens, hidden), hidden)
    mask = w.op("Mul", w.op("Sub", w.weight("one"), visible), w.weight("scale"))
    for _ in range(layers):
        x = w.norm(w.op("Add", w.attention(x, batch, tokens, hidden, heads, mask), x), hidden)
        x = w.norm(w.op("Add", w.feed_forward(x, hidden), x), hidden)
    spans = w.op("Transpose", w.reshape(w.dense(x, hidden, 2), batch, tokens, 2), perm=[2, 0, 1])
    return w.model(spans, 2, batch, tokens)


def vision_transformer(batch, layers=12, hidden=768, heads=12):
    """ViT-B/16 with the batch outermost (torch's attention has the tokens there)."""
    w, tokens = Writer(), 197
    image = w.input("image", TensorProto.FLOAT, batch, 3, 224, 224)
    patches = w.op("Conv", image, w.weight("patch", hidden, 3, 16, 16), strides=[16, 16])
    patches = w.op("Transpose", w.reshape(patches, batch, hidden, 196), perm=[0, 2, 1])
    joined = w.op("Concat", w.weight("class", batch, 1, hidden), patches, axis=1)
    x = w.op("Add", joined, w.weight("position", tokens, hidden))
    for _ in range(layers):
        x = w.op("Add", w.attention(w.norm(x, hidden), batch, tokens, hidden, heads, rows=(batch, tokens)), x)
        x = w.op("Add", w.feed_forward(w.norm(x, hidden), hidden), x)
    first = w.tensor("first", numpy.array(0, numpy.int64))
    chosen = w.op("Gather", w.norm(x, hidden), first, axis=1)
    return w.model(w.dense(chosen, hidden, 1000), batch, 1000)


WRITTEN = {"bert base": lambda row: bert(row.batch, row.sequence, 12, 768, 12),
           "bert large": lambda row: bert(row.batch, row.sequence, 24, 1024, 16),
           "vision transformer": lambda row: vision_transformer(row.batch)}


def count(row, options, local_kib, literal, folder):
    """graph-turbo's report for a model, or its error."""
    command = [str(pathlib.Path(options.build) / "bin/graph-turbo"), "--machine", "stcp920"]
    command += ["--local-bytes", str(local_kib << 10)] + (["--literal"] if literal else [])
    stored = pathlib.Path(options.models) / f"{row.model}.onnx"
    path = folder / "model.onnx"
    if row.model in WRITTEN:
        onnx.save(WRITTEN[row.model](row), path)
    elif not stored.exists():
        return {"error": f"no {stored.name}"}
    elif row.sequence:
        path = stored
        command += ["--dim", f"batch={row.batch}", "--dim", f"sequence={row.sequence}"]
    else:
        onnx.save(chained_concatenations(rebatch(onnx.load(stored), row.batch)), path)
    done = subprocess.run(command + [str(path)], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()}


def line(row, report):
    if "error" in report:
        return f"| {row.label} | {row.name} | {row.batch} | {report['error']} |"
    counts, moved = report["outputs"], report["movements"]

    def beside(ours, paper):
        return f"{ours}" if paper is None else f"{ours} ({paper})"

    share = "" if row.tvm is None else f"{report['tvm_ddr'] / row.tvm:.2f}"
    return (f"| {row.label} | {row.name} | {row.batch} | {beside(report['tvm_ddr'], row.tvm)} | {share} | "
            f"{beside(counts['ddr'] + moved['ddr'], row.ddr)} | {beside(counts['llb'] + moved['llb'], row.llb)} | "
            f"{beside(counts['l1'] + moved['l1'], row.l1)} | {counts['l1'] + counts['llb'] + counts['ddr']} | "
            f"{report['sub_graphs']} | {report['instances']} | {report['order']} | "
            f"{report['recomputation']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--local-kib", default="64", help="capacities of an L1 in KiB")
    parser.add_argument("--literal", action="store_true", help="also with the paper's Eq. 1 and its two orders only")
    parser.add_argument("--out", help="a page in which the text between the marks `<!-- table -->` is replaced")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    variants = [(local_kib, literal) for literal in ([False, True] if options.literal else [False])
                for local_kib in map(int, options.local_kib.split(","))]
    text = ""
    for local_kib, literal in variants:
        text += f"\n{local_kib} KiB of L1 a core{', Eq. 1 and the two orders as printed' if literal else ''}:\n\n"
        text += ("| | model | batch a cluster | TVM-like: DDR | of the paper's | DDR | LLB | L1 | of these, operators | "
                 "sub-graphs | instances | order | recomputation |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|\n")
        print(text.split("\n\n")[-2].strip(), flush=True)
        for row in PAPER + OTHERS:
            if only and row.model not in only:
                continue
            with tempfile.TemporaryDirectory() as folder:
                text += line(row, count(row, options, local_kib, literal, pathlib.Path(folder))) + "\n"
            print(text.splitlines()[-1], flush=True)
    if options.out:
        page = pathlib.Path(options.out)
        begin, _, end = page.read_text().split("<!-- table -->")
        page.write_text(f"{begin}<!-- table -->\n{text.strip()}\n<!-- table -->{end}")


if __name__ == "__main__":
    main()
