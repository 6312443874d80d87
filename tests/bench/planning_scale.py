#!/usr/bin/env python3
"""How planning time grows with the number of operators.

usage: planning_scale.py [--nodes 100,1000,10000] [--repeat 3] [--planner dnnfusion]
                         [--compiler build/release/bin/fusion-compile]

Chains of transformer-like layers of 12 operators are planned without measuring (fusion-compile --plan; the cost model
answers). In "repeated" models all layers have one structure, as in real models; in "distinct" ones no two layers do.
Prints a Markdown table of the medians. Needs Python's standard library only.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import onnx_model as onnx

OPERATORS_A_LAYER = 12
ROWS, WIDTH = 32, 64


def chain(layers, distinct):
    nodes, weights = [], []

    def add(op, inputs, **attributes):
        result = "v%d" % len(nodes)
        nodes.append(onnx.node(op, inputs, [result], "n%d" % len(nodes), **attributes))
        return result

    def weight(*dims):
        name = "w%d" % len(weights)
        count = 1
        for dim in dims:
            count *= dim
        weights.append(onnx.tensor(name, dims, raw=bytes(4 * count)))
        return name

    x = "x"
    for layer in range(layers):
        inner = WIDTH + layer if distinct else WIDTH
        norm = add("LayerNormalization", [x, weight(WIDTH), weight(WIDTH)], axis=-1)
        up = add("Add", [add("MatMul", [norm, weight(WIDTH, inner)]), weight(inner)])
        gate = add("Mul", [up, add("Sigmoid", [up])])
        turned = add("Transpose", [add("Softmax", [gate], axis=-1)], perm=[1, 0])
        back = add("Transpose", [add("Tanh", [turned])], perm=[1, 0])
        down = add("Add", [add("MatMul", [back, weight(inner, WIDTH)]), weight(WIDTH)])
        x = add("Add", [x, down])
    return onnx.model(nodes, [onnx.value("x", [ROWS, WIDTH])], [onnx.value(x, [ROWS, WIDTH])], weights, opset=17)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--nodes", default="100,1000,10000")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--planner", default="dnnfusion")
    parser.add_argument("--compiler", default=ROOT / "build/release/bin/fusion-compile")
    options = parser.parse_args()
    print("| layers | operators | kernels | import s | simplify, rewrite s | layout, plan s | all s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        model, report = pathlib.Path(folder) / "m.onnx", pathlib.Path(folder) / "m.json"
        for distinct in (False, True):
            for nodes in map(int, options.nodes.split(",")):
                model.write_bytes(chain(max(nodes // OPERATORS_A_LAYER, 1), distinct))
                runs = []
                for _ in range(options.repeat):
                    subprocess.run([options.compiler, model, "--plan", "--planner", options.planner, "--json", report],
                                   check=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    runs.append(json.loads(report.read_text()))

                def median(*stages):
                    return statistics.median(sum(run["stages"].get(s, 0) for s in stages) for run in runs)

                print("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f |" % (
                    "distinct" if distinct else "repeated", runs[0]["nodes"], runs[0]["kernels"], median("import"),
                    median("simplify", "rewrite"), median("layout", "plan"),
                    statistics.median(run["seconds"] for run in runs)), flush=True)


if __name__ == "__main__":
    main()
