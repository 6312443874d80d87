"""Writes the cases of this folder: graphs whose shapes depend on data, as exporters write detectors, with random inputs
and onnxruntime's outputs, in the layout of ONNX's node tests. For development only: python3 make.py [NAME...]"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TYPES = {np.dtype("float32"): F, np.dtype("int64"): I, np.dtype("bool"): B}
CASES = {}


class Graph:
    def __init__(self, prefix=""):
        self.nodes, self.constants, self.outputs, self.inputs, self.count = [], [], [], {}, 0
        self.prefix = prefix

    def input(self, name, value):
        self.inputs[name] = value
        return name

    def const(self, value, dtype=np.int64):
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def op(self, op, *inputs, outputs=1, **attrs):
        names = [f"{self.prefix}v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op}_{self.count}", **attrs))
        return names[0] if outputs == 1 else names

    def output(self, name, elem):
        self.outputs.append(helper.make_tensor_value_info(name, elem, None))

    def body(self, name, inputs, build):
        """A subgraph, which sees this graph's names; inputs: [(name, element type, shape)]."""
        inner = Graph(name + "_")
        build(inner, *[i[0] for i in inputs])
        infos = [helper.make_tensor_value_info(*i) for i in inputs]
        return helper.make_graph(inner.nodes, name, infos, inner.outputs, inner.constants)


def case(build):
    CASES[build.__name__] = build
    return build


def newest(build):
    """A case that needs opset 24."""
    build.opset = 24
    return case(build)


def rng(seed):
    return np.random.default_rng(seed)


def sparse(seed, shape, density=0.4):
    r = rng(seed)
    return (r.normal(size=shape) * (r.random(shape) < density)).astype(np.float32)


def positive_rows(g, seed=0, n=12, c=4):
    """x [n, c] and the rows of x whose first element is positive, as boolean indexing is exported."""
    x = g.input("x", rng(seed).normal(size=(n, c)).astype(np.float32))
    first = g.op("Gather", x, g.const(0), axis=1)
    mask = g.op("Greater", first, g.const(0, np.float32))
    kept = g.op("Squeeze", g.op("NonZero", mask), g.const([0]))
    return x, kept, g.op("Gather", x, kept, axis=0)


@case
def nonzero_transpose_gathernd(g):
    x = g.input("x", sparse(1, (3, 5)))
    where = g.op("Transpose", g.op("NonZero", x), perm=[1, 0])
    g.output(where, I)
    g.output(g.op("GatherND", x, where), F)


@case
def nonzero_of_nothing(g):
    x = g.input("x", np.zeros((3, 4), np.float32))
    found = g.op("NonZero", x)
    g.output(found, I)
    g.output(g.op("ReduceSum", g.op("Cast", found, to=F), g.const([1]), keepdims=0), F)


@case
def boolean_indexing(g):
    _, kept, rows = positive_rows(g)
    g.output(kept, I)
    g.output(rows, F)


@case
def elementwise_chain(g):
    _, _, rows = positive_rows(g, 1)
    y = g.op("Floor", g.op("Mul", rows, g.const([1, 2, 3, 4], np.float32)))
    z = g.op("Where", g.op("Equal", y, g.const(0, np.float32)), rows, g.op("Add", y, rows))
    g.output(g.op("Cast", z, to=I), I)


@case
def folds_over_rows(g):
    _, _, rows = positive_rows(g, 2)
    g.output(g.op("ReduceSum", rows, g.const([0]), keepdims=0), F)
    g.output(g.op("ReduceMax", rows, axes=[0], keepdims=1), F)
    g.output(g.op("ReduceMin", rows, axes=[0, 1], keepdims=0), F)
    g.output(g.op("ReduceMean", rows, axes=[0], keepdims=0), F)
    g.output(g.op("ReduceMean", rows, axes=[1], keepdims=0), F)
    g.output(g.op("ArgMax", rows, axis=0), I)
    g.output(g.op("Softmax", rows, axis=0), F)
    g.output(g.op("ReduceProd", rows, axes=[0]), F)
    g.output(g.op("ReduceL2", rows, axes=[0]), F)


@case
def products(g):
    _, _, rows = positive_rows(g, 3)
    g.output(g.op("MatMul", rows, g.const(rng(4).normal(size=(4, 6)), np.float32)), F)
    g.output(g.op("MatMul", g.op("Transpose", rows, perm=[1, 0]), rows), F)
    g.output(g.op("Gemm", rows, g.const(rng(5).normal(size=(3, 4)), np.float32), transB=1), F)


@case
def rows_without_any(g):
    x = g.input("x", -np.abs(rng(6).normal(size=(5, 4))).astype(np.float32))
    mask = g.op("Greater", g.op("Gather", x, g.const(0), axis=1), g.const(0, np.float32))
    rows = g.op("Compress", x, mask, axis=0)
    g.output(rows, F)
    g.output(g.op("ReduceSum", rows, g.const([0])), F)
    g.output(g.op("Concat", rows, x, axis=0), F)


@case
def top_k_of_min(g):
    """k = min(5, n), n from Shape: torchvision's RPN."""
    _, _, rows = positive_rows(g, 7)
    scores = g.op("Gather", rows, g.const(1), axis=1)
    n = g.op("Gather", g.op("Shape", scores), g.const(0))
    k = g.op("Min", g.const(5), n)
    values, indices = g.op("TopK", scores, g.op("Unsqueeze", k, g.const([0])), outputs=2, axis=0)
    g.output(values, F)
    g.output(g.op("Gather", rows, indices, axis=0), F)


@case
def top_k_smallest_of_rows(g):
    _, _, rows = positive_rows(g, 8)
    values, indices = g.op("TopK", rows, g.const([2]), outputs=2, axis=1, largest=0)
    g.output(values, F)
    g.output(indices, I)
    best, _ = g.op("TopK", rows, g.const([1]), outputs=2, axis=0, largest=0)
    g.output(best, F)


@case
def nms_gather_boxes(g):
    r = rng(9)
    corner = r.random((1, 20, 2)) * 10
    boxes = g.input("boxes", np.concatenate([corner, corner + 1 + r.random((1, 20, 2)) * 4], 2).astype(np.float32))
    scores = g.input("scores", r.random((1, 3, 20)).astype(np.float32))
    picked = g.op("NonMaxSuppression", boxes, scores, g.const([6]), g.const([0.3], np.float32), g.const([0.2], np.float32))
    index = g.op("Gather", picked, g.const(2), axis=1)
    g.output(picked, I)
    g.output(g.op("Gather", g.op("Squeeze", boxes, g.const([0])), index, axis=0), F)
    g.output(g.op("GatherND", g.op("Squeeze", scores, g.const([0])), g.op("Gather", picked, g.const([1, 2]), axis=1)), F)


@case
def nms_of_kept_boxes(g):
    """Boxes above a score, then suppression among those, then at most four: torchvision's batched_nms."""
    r = rng(10)
    corner = r.random((16, 2)) * 6
    boxes = g.input("boxes", np.concatenate([corner, corner + 1 + r.random((16, 2)) * 4], 1).astype(np.float32))
    scores = g.op("Squeeze", g.input("scores", r.random((1, 16)).astype(np.float32)), g.const([0]))
    kept = g.op("Squeeze", g.op("NonZero", g.op("Greater", scores, g.const(0.3, np.float32))), g.const([0]))
    some, some_scores = g.op("Gather", boxes, kept, axis=0), g.op("Gather", scores, kept, axis=0)
    picked = g.op("NonMaxSuppression", g.op("Unsqueeze", some, g.const([0])),
                  g.op("Unsqueeze", some_scores, g.const([0, 1])), g.const([100]), g.const([0.4], np.float32))
    index = g.op("Squeeze", g.op("Gather", picked, g.const([2]), axis=1), g.const([1]))
    index = g.op("Slice", index, g.const([0]), g.const([4]), g.const([0]))
    g.output(g.op("Gather", some, index, axis=0), F)
    g.output(g.op("Gather", some_scores, index, axis=0), F)


@case
def slices(g):
    _, kept, rows = positive_rows(g, 11)
    n = g.op("Gather", g.op("Shape", rows), g.const([0]))
    half = g.op("Div", n, g.const([2]))
    g.output(g.op("Slice", rows, half, n, g.const([0])), F)
    g.output(g.op("Slice", rows, g.const([0]), half, g.const([0])), F)
    g.output(g.op("Slice", rows, g.const([-2]), g.const([2**63 - 1]), g.const([0])), F)
    g.output(g.op("Slice", kept, g.const([-1]), g.const([-2**63]), g.const([0]), g.const([-1])), I)
    g.output(g.op("Slice", rows, g.const([1, 0]), g.const([100, 4]), g.const([0, 1]), g.const([2, 3])), F)
    g.output(g.op("Gather", rows, g.const([-1]), axis=0), F)


@case
def concat_of_two_lists(g):
    x, _, rows = positive_rows(g, 12)
    mask = g.op("Less", g.op("Gather", x, g.const(1), axis=1), g.const(0, np.float32))
    others = g.op("Compress", x, mask, axis=0)
    both = g.op("Concat", rows, x, others, axis=0)
    g.output(both, F)
    g.output(g.op("Shape", both), I)
    g.output(g.op("Concat", rows, rows, axis=1), F)


@case
def reshapes(g):
    _, _, rows = positive_rows(g, 13)
    flat = g.op("Reshape", rows, g.const([-1]))
    g.output(flat, F)
    g.output(g.op("Reshape", flat, g.const([-1, 4])), F)
    g.output(g.op("Reshape", rows, g.const([0, 2, 2])), F)
    g.output(g.op("Reshape", rows, g.const([-1, 1])), F)
    n = g.op("Gather", g.op("Shape", rows), g.const([0]))
    g.output(g.op("Reshape", rows, g.op("Concat", n, g.const([2, -1]), axis=0)), F)
    turned = g.op("Transpose", rows, perm=[1, 0])  # a dynamic inner dimension moves
    g.output(g.op("Reshape", turned, g.const([-1])), F)
    g.output(g.op("Reshape", turned, g.const([2, -1])), F)
    g.output(g.op("Flatten", g.op("Unsqueeze", rows, g.const([2])), axis=1), F)


@case
def shapes_from_shapes(g):
    _, kept, rows = positive_rows(g, 14)
    shape = g.op("Shape", rows)
    g.output(g.op("ConstantOfShape", shape, value=helper.make_tensor("v", F, [1], [2.5])), F)
    g.output(g.op("Expand", g.const([[1, 2, 3, 4]], np.float32), shape), F)
    n = g.op("Gather", shape, g.const(0))
    positions = g.op("Range", g.const(0), n, g.const(1))
    g.output(positions, I)
    g.output(g.op("Range", n, g.const(-3), g.const(-2)), I)
    g.output(g.op("Add", positions, kept), I)
    g.output(g.op("Size", rows), I)
    g.output(g.op("Expand", rows, g.op("Concat", g.const([2]), shape, axis=0)), F)


@case
def scatters(g):
    _, kept, rows = positive_rows(g, 15)
    zeros = g.const(np.zeros((12, 4)), np.float32)
    g.output(g.op("ScatterND", zeros, g.op("Unsqueeze", kept, g.const([1])), rows), F)
    index = g.op("Expand", g.op("Unsqueeze", kept, g.const([1])), g.op("Shape", rows))
    g.output(g.op("ScatterElements", zeros, index, rows, axis=0), F)
    g.output(g.op("GatherElements", rows, g.op("ArgMax", rows, axis=1), axis=1), F)


@case
def roi_align_of_kept(g):
    r = rng(16)
    image = g.input("image", r.normal(size=(1, 2, 8, 8)).astype(np.float32))
    corner = r.random((6, 2)) * 3
    rois = g.input("rois", np.concatenate([corner, corner + 1 + r.random((6, 2)) * 3], 1).astype(np.float32))
    mask = g.op("Greater", g.op("Gather", rois, g.const(0), axis=1), g.const(1, np.float32))
    some = g.op("Compress", rois, mask, axis=0)
    n = g.op("Slice", g.op("Shape", some), g.const([0]), g.const([1]))
    batch = g.op("ConstantOfShape", n, value=helper.make_tensor("v", I, [1], [0]))
    pooled = g.op("RoiAlign", image, some, batch, output_height=3, output_width=3, sampling_ratio=2)
    g.output(pooled, F)
    g.output(g.op("Gemm", g.op("Flatten", pooled), g.const(r.normal(size=(18, 5)), np.float32)), F)
    g.output(g.op("Relu", g.op("Conv", pooled, g.const(r.normal(size=(4, 2, 3, 3)), np.float32), pads=[1, 1, 1, 1])), F)


@case
def levels(g):
    """Rows of each of two levels through products of their own, put back in order: torchvision's MultiScaleRoIAlign."""
    r = rng(17)
    x = g.input("x", r.normal(size=(10, 3)).astype(np.float32))
    level = g.op("Cast", g.op("Greater", g.op("ReduceSum", x, g.const([1]), keepdims=0), g.const(0, np.float32)), to=I)
    result = g.op("ConstantOfShape", g.const([10, 2]))
    for k in range(2):
        where = g.op("Squeeze", g.op("NonZero", g.op("Equal", level, g.const(k))), g.const([0]))
        rows = g.op("MatMul", g.op("Gather", x, where, axis=0), g.const(r.normal(size=(3, 2)), np.float32))
        index = g.op("Expand", g.op("Unsqueeze", where, g.const([1])), g.op("Shape", rows))
        result = g.op("ScatterElements", result, index, rows, axis=0)
    g.output(result, F)


@case
def unique_of_kept(g):
    _, kept, rows = positive_rows(g, 18)
    coarse = g.op("Floor", rows)
    for name in g.op("Unique", coarse, outputs=4):
        g.output(name, F if name == g.nodes[-1].output[0] else I)


@case
def compress_flat(g):
    _, _, rows = positive_rows(g, 19)
    flat = g.op("Reshape", rows, g.const([-1]))
    g.output(g.op("Compress", rows, g.op("Greater", flat, g.const(0.5, np.float32))), F)
    g.output(g.op("NonZero", g.op("Relu", rows)), I)


@case
def flattens(g):
    _, _, rows = positive_rows(g, 25)
    for axis in range(3):
        g.output(g.op("Flatten", rows, axis=axis), F)


@case
def loop_until(g):
    """At most eight halvings, until the sum is small; each state is a row of the scan output."""
    x = g.input("x", np.abs(rng(20).normal(size=(5,))).astype(np.float32))

    def body(b, i, going, state):
        half = b.op("Mul", state, b.const(0.5, np.float32))
        b.output(b.op("Greater", b.op("ReduceSum", half, keepdims=0), b.const(0.5, np.float32)), B)
        b.output(half, F)
        b.output(b.op("Identity", half), F)

    inputs = [("i", I, []), ("going", B, []), ("state", F, [5])]
    last, rows = g.op("Loop", g.const(8), g.const(True, bool), x, outputs=2, body=g.body("halve", inputs, body))
    g.output(last, F)
    g.output(rows, F)
    g.output(g.op("ReduceMax", rows, axes=[0], keepdims=0), F)


@case
def loop_over_kept(g):
    """As many iterations as rows were kept."""
    _, kept, rows = positive_rows(g, 21)
    trips = g.op("Gather", g.op("Shape", kept), g.const(0), axis=0)

    def body(b, i, going, state):
        row = b.op("Gather", rows, i, axis=0)
        mixed = b.op("Add", b.op("Mul", state, b.const(0.5, np.float32)), row)
        b.output(b.op("Identity", going), B)
        b.output(mixed, F)
        b.output(b.op("ReduceSum", mixed, keepdims=0), F)

    inputs = [("i", I, []), ("going", B, []), ("state", F, [4])]
    start = g.const(np.zeros(4), np.float32)
    last, sums = g.op("Loop", trips, "", start, outputs=2, body=g.body("mix", inputs, body))
    g.output(last, F)
    g.output(sums, F)


@case
def branches_of_sizes(g):
    """A branch that keeps three rows, another that has them twice, and what comes after either."""
    x = g.input("x", rng(22).normal(size=(5, 2)).astype(np.float32))
    for k, less in enumerate((True, False)):
        total = g.op("ReduceSum", x, keepdims=0)
        if less:
            total = g.op("Abs", total)
        else:
            total = g.op("Neg", g.op("Abs", total))

        def first(b):
            b.output(b.op("Slice", x, b.const([0]), b.const([3]), b.const([0])), F)

        def second(b):
            b.output(b.op("Concat", x, x, axis=0), F)

        rows = g.op("If", g.op("Greater", total, g.const(0, np.float32)), then_branch=g.body(f"first{k}", [], first),
                    else_branch=g.body(f"second{k}", [], second))
        g.output(rows, F)
        g.output(g.op("Softmax", rows, axis=0), F)
        g.output(g.op("Shape", rows), I)


@case
def branch_of_kept(g):
    """Kept rows, or all of them."""
    x, _, rows = positive_rows(g, 23)

    def kept(b):
        b.output(b.op("Mul", rows, b.const(2, np.float32)), F)

    def everything(b):
        b.output(b.op("Identity", x), F)

    some = g.op("Greater", g.op("ReduceMax", x, keepdims=0), g.const(1.0, np.float32))
    y = g.op("If", some, then_branch=g.body("kept", [], kept), else_branch=g.body("everything", [], everything))
    g.output(y, F)
    g.output(g.op("MatMul", y, g.const(rng(24).normal(size=(4, 3)), np.float32)), F)


def meeting(g, a, b, take):
    """The sum of the rows that two masks keep, in a branch; else twice the rows of the first."""
    x = g.input("x", rng(31).normal(size=(6, 4)).astype(np.float32))
    a, b = g.input("a", np.array(a, bool)), g.input("b", np.array(b, bool))
    rows, others = g.op("Compress", x, a, axis=0), g.op("Compress", x, b, axis=0)
    take = g.input("take", np.array(take))

    def added(i):
        i.output(i.op("Add", rows, others), F)

    def doubled(i):
        i.output(i.op("Mul", rows, i.const(2, np.float32)), F)

    y = g.op("If", take, then_branch=g.body("added", [], added), else_branch=g.body("doubled", [], doubled))
    g.output(y, F)
    g.output(g.op("ReduceSum", y, g.const([0]), keepdims=0), F)


@case
def extents_that_are_equal(g):
    meeting(g, [1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 0, 1], True)


@case
def extents_of_which_one_is_1(g):
    meeting(g, [1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0], True)


@case
def extents_that_differ_elsewhere(g):
    meeting(g, [1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 0], False)


@case
def extents_of_other_bounds(g):
    """Three values meet, with bounds of their own; a static extent meets one that depends on data; and both in one."""
    x = g.input("x", rng(32).normal(size=(6, 4)).astype(np.float32))
    z = g.input("z", rng(33).normal(size=(9, 1)).astype(np.float32))
    rows = g.op("Compress", x, g.input("a", np.array([0, 1, 1, 0, 0, 1], bool)), axis=0)
    others = g.op("Compress", z, g.input("b", np.array([1, 0, 0, 1, 0, 0, 0, 1, 0], bool)), axis=0)
    one = g.op("Compress", x, g.input("c", np.array([0, 0, 0, 1, 0, 0], bool)), axis=0)
    static = g.const(rng(34).normal(size=(3, 4)), np.float32)
    g.output(g.op("Where", g.op("Greater", rows, others), one, rows), F)
    g.output(g.op("Mul", others, rows), F)
    g.output(g.op("Sub", rows, static), F)
    g.output(g.op("Max", static, one, others), F)


@case
def resizes(g):
    """Sizes and scales that are computed, larger and smaller than what there is."""
    x = g.input("x", rng(26).normal(size=(1, 2, 5, 7)).astype(np.float32))
    size = g.input("size", np.array([9, 4], np.int64))
    size = g.op("Max", g.op("Min", size, g.const([12, 12])), g.const([1, 1]))
    sizes = g.op("Concat", g.op("Slice", g.op("Shape", x), g.const([0]), g.const([2])), size, axis=0)
    for mode, transform in ("linear", "half_pixel"), ("nearest", "pytorch_half_pixel"), ("linear", "align_corners"):
        g.output(g.op("Resize", x, "", "", sizes, mode=mode, coordinate_transformation_mode=transform), F)
    half = g.op("Mul", g.op("Cast", size, to=F), g.const(0.25, np.float32))
    scales = g.op("Concat", g.const([1, 1], np.float32), half, axis=0)
    g.output(g.op("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor"), F)


@case
def resizes_of_kept(g):
    """Twice as many rows and a fixed number of columns, of as many rows as are kept."""
    _, _, rows = positive_rows(g, 27)
    image = g.op("Unsqueeze", g.op("Unsqueeze", rows, g.const([0])), g.const([0]))
    g.output(g.op("Resize", image, "", g.const([1, 1, 2, 1], np.float32), mode="nearest"), F)
    g.output(g.op("Resize", image, "", g.const([1, 1, 2, 3], np.float32), mode="linear"), F)
    g.output(g.op("Resize", image, "", "", g.const([1, 1, 6, 5]), mode="linear",
                  coordinate_transformation_mode="align_corners"), F)


@case
def loop_appends(g):
    """As many rows as were kept, one an iteration; their length is computed, and always what it is joined to."""
    _, kept, rows = positive_rows(g, 28, n=4)
    trips = g.op("Gather", g.op("Shape", kept), g.const(0), axis=0)
    last = g.op("Add", g.op("Mul", g.op("Min", trips, g.const(1)), g.const(0)), g.const(4))

    def body(b, i, going, done):
        row = b.op("Gather", rows, b.op("Unsqueeze", i, b.const([0])), axis=0)
        end = b.op("Add", b.op("Min", b.op("Mul", i, b.const(2)), b.const(2)), b.op("Max", last, b.const(4)))
        row = b.op("Slice", row, b.const([0]), b.op("Unsqueeze", end, b.const([0])), b.const([1]))
        b.output(b.op("Identity", going), B)
        b.output(b.op("Concat", done, b.op("Mul", row, b.const(2, np.float32)), axis=0), F)

    inputs = [("i", I, []), ("going", B, []), ("done", F, [None, 4])]
    none = g.const(np.zeros((0, 4)), np.float32)
    joined = g.op("Loop", trips, "", none, body=g.body("append", inputs, body))
    g.output(joined, F)
    g.output(g.op("ReduceSum", joined, keepdims=0), F)


@case
def paste_masks(g):
    """Mask R-CNN's last step: each mask resized to its box and laid into the image, as far as the box lies inside it."""
    values = rng(29).random((9, 1, 4, 4)).astype(np.float32)
    values[[1, 6]] *= 0.4  # not kept
    masks = g.input("masks", values)
    boxes = g.input("boxes", np.array([[-2.5, 1.2, 6.1, 9.7], [1, 1, 2, 2], [3.3, 4.4, 20.5, 17.2],
                                        [10.2, 12.9, 12.8, 13.4], [0, 0, 15, 15],
                                        [-3, -3, 19, 19], [7, 7, 8, 8], [12.5, -1, 15.9, 3.1], [5, 2, 5, 14]], np.float32))
    keep = g.op("Squeeze", g.op("NonZero", g.op("Greater", g.op("ReduceMax", masks, axes=[1, 2, 3], keepdims=0),
                                                g.const(0.5, np.float32))), g.const([0]))
    masks, boxes = g.op("Gather", masks, keep), g.op("Gather", boxes, keep)
    boxes = g.op("Clip", boxes, g.const(-4, np.float32), g.const(24, np.float32))
    boxes = g.op("Cast", boxes, to=I)
    n, side = g.op("Gather", g.op("Shape", boxes), g.const(0)), 16

    def body(b, i, going, done):
        mask = b.op("Gather", b.op("Gather", masks, i), b.const(0))
        box = b.op("Gather", boxes, i)
        x0, y0, x1, y1 = (b.op("Gather", box, b.const(k)) for k in range(4))

        def pair(op, x, limit):
            return b.op(op, b.op("Concat", b.op("Unsqueeze", x, b.const([0])), b.const([limit]), axis=0), keepdims=0)

        def vector(*scalars):
            return b.op("Concat", *(b.op("Unsqueeze", s, b.const([0])) for s in scalars), axis=0)

        one = b.const(1)
        w = pair("ReduceMax", b.op("Add", b.op("Sub", x1, x0), one), 1)
        h = pair("ReduceMax", b.op("Add", b.op("Sub", y1, y0), one), 1)
        mask = b.op("Unsqueeze", mask, b.const([0, 1]))
        mask = b.op("Resize", mask, "", "", b.op("Concat", b.const([1, 1]), vector(h, w), axis=0), mode="linear",
                    coordinate_transformation_mode="half_pixel")
        mask = b.op("Gather", b.op("Gather", mask, b.const(0)), b.const(0))
        left, right = pair("ReduceMax", x0, 0), pair("ReduceMin", b.op("Add", x1, one), side)
        top, bottom = pair("ReduceMax", y0, 0), pair("ReduceMin", b.op("Add", y1, one), side)
        mask = b.op("Slice", mask, vector(b.op("Sub", top, y0)), vector(b.op("Sub", bottom, y0)), b.const([0]))
        mask = b.op("Slice", mask, vector(b.op("Sub", left, x0)), vector(b.op("Sub", right, x0)), b.const([1]))
        width = b.op("Gather", b.op("Shape", mask), one)
        above = b.op("ConstantOfShape", vector(top, width))
        below = b.op("ConstantOfShape", vector(b.op("Sub", b.const(side), bottom), width))
        rows = b.op("Slice", b.op("Concat", above, mask, below, axis=0), b.const([0]), b.const([side]), b.const([0]))
        height = b.op("Gather", b.op("Shape", rows), b.const(0))
        before = b.op("ConstantOfShape", vector(height, left))
        behind = b.op("ConstantOfShape", vector(height, b.op("Sub", b.const(side), right)))
        image = b.op("Slice", b.op("Concat", before, rows, behind, axis=1), b.const([0]), b.const([side]), b.const([1]))
        b.output(b.op("Identity", going), B)
        b.output(b.op("Concat", done, b.op("Unsqueeze", image, b.const([0])), axis=0), F)

    inputs = [("i", I, []), ("going", B, []), ("done", F, [None, side, side])]
    none = g.const(np.zeros((0, side, side)), np.float32)
    images = g.op("Loop", n, "", none, body=g.body("paste", inputs, body))
    g.output(g.op("Unsqueeze", images, g.const([1])), F)


@newest
def attention_over_kept_keys(g):
    _, _, rows = positive_rows(g, seed=31, n=9, c=4)
    keys = g.op("Unsqueeze", rows, g.const([0]))
    q = g.input("q", rng(32).normal(size=(1, 3, 4)).astype(np.float32))
    g.output(g.op("Attention", q, keys, keys, q_num_heads=2, kv_num_heads=2), F)


@newest
def attention_of_kept_queries(g):
    _, _, rows = positive_rows(g, seed=33, n=9, c=4)
    q = g.op("Unsqueeze", rows, g.const([0]))
    keys = g.input("keys", rng(34).normal(size=(1, 5, 2)).astype(np.float32))
    g.output(g.op("Attention", q, keys, keys, q_num_heads=4, kv_num_heads=2, is_causal=1), F)


@newest
def attention_behind_a_kept_past(g):
    _, _, rows = positive_rows(g, seed=35, n=9, c=4)
    past = g.op("Unsqueeze", rows, g.const([0, 1]))
    q = g.input("q", rng(36).normal(size=(1, 2, 3, 4)).astype(np.float32))
    k = g.input("k", rng(37).normal(size=(1, 1, 3, 4)).astype(np.float32))
    y, present, _ = g.op("Attention", q, k, k, "", past, past, is_causal=1, outputs=3)
    g.output(y, F)
    g.output(present, F)


def write(name, build):
    g = Graph()
    build(g)
    inputs = [helper.make_tensor_value_info(k, TYPES[v.dtype], v.shape) for k, v in g.inputs.items()]
    graph = helper.make_graph(g.nodes, name, inputs, g.outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", getattr(build, "opset", 17))], producer_name="fusion",
                              ir_version=8 if not hasattr(build, "opset") else 10)
    folder = os.path.join(HERE, name)
    os.makedirs(os.path.join(folder, "test_data_set_0"), exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(None, g.inputs)
    def put(kind, i, value):
        with open(os.path.join(folder, "test_data_set_0", f"{kind}_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(value.copy(order="C")).SerializeToString())
    for i, value in enumerate(g.inputs.values()):
        put("input", i, value)
    for i, value in enumerate(results):
        put("output", i, np.asarray(value))
    print(name, [np.asarray(r).shape for r in results])


if __name__ == "__main__":
    for name, build in CASES.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            write(name, build)
