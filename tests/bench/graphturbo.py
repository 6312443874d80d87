#!/usr/bin/env python3
"""GraphTurbo's Table 3: how many outputs stay in DDR, LLB and L1. With --parts also Figures 14 to 16 and Table 1, on
the simulator (runtime/devices/dsa_sim).

usage: graphturbo.py --build DIR --models DIR [--only NAME,…] [--local-kib N,…] [--literal] [--parts table,speeds,use] [--jobs N] [--out docs/benchmarks/graphturbo.md]

For each model of the paper it makes the batch of one cluster (Table 2), runs graph-turbo, and prints the counts beside the paper's. Counts follow from capacities and shapes; no rate enters.
Models come from --models (tests/models says how they are made). BERT and the vision transformer are written here in the form
that TensorFlow and TVM give them; BERT at 384 is MLPerf's BERT-large. DenseNet's concatenations are chained as TensorFlow's are.
"""
import argparse
import collections
import concurrent.futures
import itertools
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
# Batches of a cluster that TVM's row of Table 2 has, by label; the clusters of STCP920.
TVM_BATCH = {"A": 2, "B": 4, "C": 2, "D": 1, "E": 1, "F": 64, "G": 2, "H": 4, "I": 4, "J": 1}
CLUSTERS = 4
VARIANTS = ["tvm_like", "astitch_like", "llb", "l1", "instances", "graph_turbo"]
# Parts of an LB that plans of instances keep for weights; the better one is taken, as a tuner would.
SHARES = [0.125, 0.5]
RATES = [0.25, 1, 4]
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


def run(row, options, local_kib, arguments, folder):
    """graph-turbo's report for a model, or its error."""
    command = [str(pathlib.Path(options.build) / "bin/graph-turbo"), "--machine", "stcp920"]
    command += ["--local-bytes", str(local_kib << 10)] + arguments
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


def simulate(row, options, local_kib, variants, rates):
    """By variant: what the simulator says of a batch of one cluster, with each of the rates, by each of SHARES where the variant has instances."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--simulate", ",".join(variants), "--weights-share", ",".join(map(str, SHARES)), "--assumed-rates", ",".join(map(str, rates))]
        return run(row, options, local_kib, arguments, pathlib.Path(folder))


def throughputs(row, options, local_kib):
    """By variant and rate: the most samples a second of all clusters, over the batches of Table 2 and, with instances,
    over SHARES; and what was chosen at the assumed rates."""
    best, chosen = {}, {}
    for batch in sorted({TVM_BATCH[row.label], row.batch}):
        report = simulate(row._replace(batch=batch), options, local_kib, VARIANTS, RATES)
        if "error" in report:
            return report, {}
        for variant, simulations in report.items():
            for simulation in simulations:
                for timing in simulation["timings"]:
                    rate = timing["assumed_rates"]
                    throughput = CLUSTERS * batch / timing["seconds"]
                    if throughput > best.get((variant, rate), 0):
                        best[variant, rate] = throughput
                        if rate == 1:
                            chosen[variant] = {**timing, "batch": batch, "share": simulation.get("weights_share"), "instructions": simulation["instructions"]}
    return best, chosen


def chosen_rows(rows, only):
    return [row for row in rows if not only or row.model in only or row.label in only]


def figure_line(row, best, chosen):
    """A row of Figures 14 and 15, from what throughputs() found."""
    if not chosen:
        return f"| {row.label} | {row.name} | {best['error']} |"

    def speed(variant):
        return f"{best[variant, 1] / best['tvm_like', 1]:.2f}"

    interval = ", ".join(f"{best['graph_turbo', rate] / best['astitch_like', rate]:.2f}" for rate in RATES)
    bytes_of = [(chosen[v]["ddr_read_bytes"] + chosen[v]["ddr_written_bytes"]) / 1e6 / chosen[v]["batch"] for v in ("tvm_like", "graph_turbo")]
    return (f"| {row.label} | {row.name} | {best['tvm_like', 1]:.0f} | {chosen['tvm_like']['batch']} | {speed('llb')} | {speed('l1')} | {speed('instances')} | "
            f"{speed('graph_turbo')} | {speed('astitch_like')} | {interval} | {chosen['graph_turbo']['batch']}, {chosen['graph_turbo']['share']} | "
            f"{bytes_of[0]:.1f}, {bytes_of[1]:.1f} | {chosen['graph_turbo']['instructions']} |")


def figures(options, only, local_kib):
    """Figures 14 and 15 as a table for one capacity of L1, line by line."""
    yield f"\n{local_kib} KiB of L1 a core:\n"
    yield ("| | model | TVM-like, samples/s | batch a cluster | llb | l1 | instances | GraphTurbo | AStitch-like | GraphTurbo / AStitch-like at rates x 1/4, 1, 4 | batch, share | DDR MB: TVM-like, GraphTurbo | instructions |\n"
           "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(lambda row: figure_line(row, *throughputs(row, options, local_kib)), chosen_rows(PAPER, only))


def utilisation(options, only, local_kib):
    """Figure 16 and Table 1, line by line: use of the units against the batch of a cluster, and 64 sentences in rounds."""
    yield f"\n{local_kib} KiB of L1 a core:\n"
    yield "| model | batch a cluster | ms | MME | VME | vector core |\n|---|---:|---:|---:|---:|---:|"

    def fastest(row):
        """The timing of the better of SHARES; None where a program was refused."""
        report = simulate(row, options, local_kib, ["graph_turbo"], [1])
        timings = [simulation["timings"][0] for simulation in report.get("graph_turbo", [])]
        return min(timings, key=lambda timing: timing["seconds"], default=None)

    rows = [row._replace(batch=batch) for row in chosen_rows(PAPER[:2], only) for batch in (1, 2, 4, 8, 16)]
    seconds = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row, timing in zip(rows, pool.map(fastest, rows)):
            if timing is None:
                continue
            seconds[row.label, row.batch] = timing["seconds"]
            use = timing["utilisation"]
            yield f"| {row.name} | {row.batch} | {timing['seconds'] * 1e3:.2f} | {use['mme']:.3f} | {use['vme']:.3f} | {use['vector']:.3f} |"
    if ("B", 8) in seconds and ("B", 16) in seconds:
        yield (f"\n64 sentences on four clusters: two rounds of 8 a cluster take {2e3 * seconds['B', 8]:.2f} ms, one round of 16 "
               f"takes {1e3 * seconds['B', 16]:.2f} ms (the paper: 15.34 and 23.58).")


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


def table(options, only, local_kib, literal):
    """Table 3 for one capacity of L1, line by line."""
    yield f"\n{local_kib} KiB of L1 a core{', Eq. 1 and the two orders as printed' if literal else ''}:\n"
    yield ("| | model | batch a cluster | TVM-like: DDR | of the paper's | DDR | LLB | L1 | of these, operators | "
           "sub-graphs | instances | order | recomputation |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|")

    def counted(row):
        with tempfile.TemporaryDirectory() as folder:
            # The paper keeps weights out of the account (section 2.2).
            arguments = ["--without-weights", *(["--literal"] if literal else [])]
            return line(row, run(row, options, local_kib, arguments, pathlib.Path(folder)))

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(counted, chosen_rows(PAPER + OTHERS, only))


def put(page, mark, lines):
    """Puts the lines between a page's marks."""
    begin, _, end = page.read_text().split(f"<!-- {mark} -->")
    text = "\n".join(lines).strip()
    page.write_text(f"{begin}<!-- {mark} -->\n{text}\n<!-- {mark} -->{end}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--local-kib", default="64", help="capacities of an L1 in KiB")
    parser.add_argument("--literal", action="store_true", help="also with the paper's Eq. 1 and its two orders only")
    parser.add_argument("--parts", default="table", help="of table (Table 3), speeds (Figures 14 and 15), use (Figure 16 and Table 1)")
    parser.add_argument("--jobs", type=int, default=2, help="rows that are made at once")
    parser.add_argument("--out", help="a page in which the text between the marks `<!-- table -->`, `<!-- speeds -->` and `<!-- use -->` is replaced, row by row")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    capacities = list(map(int, options.local_kib.split(",")))
    for part in options.parts.split(","):
        if part == "table":
            tables = [table(options, only, local_kib, literal) for literal in ([False, True] if options.literal else [False])
                      for local_kib in capacities]
        else:
            tables = [{"speeds": figures, "use": utilisation}[part](options, only, local_kib) for local_kib in capacities]
        lines = []
        for made in itertools.chain(*tables):
            lines.append(made)
            print(made, flush=True)
            if options.out:
                put(pathlib.Path(options.out), part, lines)


if __name__ == "__main__":
    main()
