#!/usr/bin/env python3
"""Compares this project with oneDNN on the convolutions and matrix products of models, layer by layer in one process.

usage: layers.py [options] MODEL.onnx ...

Each distinct layer becomes a model of its own, with the operators that follow it (bias, residual sum, activation).
Neither side converts layouts while it is timed: oneDNN's operands have the layouts that oneDNN wants; the time of this
project is that of the launches that hold the layer's nodes, and a convolution is placed between two small ones, so that
it gets the layouts that it would get in a network. A network's first convolution reads row-major input on both sides.
Outputs are compared. oneDNN's time is the fastest of its primitives for the layer: direct or Winograd, matmul or inner
product. A ratio is the median over rounds of theirs / ours: above 1 ours is faster. The ratio of the fastest rounds
shows what a busy machine hides.

Needs:  pip install numpy onnx, and Debian's libdnnl-dev
"""
import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
try:
    import numpy as np
    import onnx
except ImportError:
    sys.exit("numpy and onnx are needed: pip install numpy onnx")
import machine
from compare_peers import add_compiler_arguments, compile_model, difference
from engines import EngineError
from fusion_runtime import FusionError, Session
from model_layers import distinct_layers
from onednn import OneDnn, OneDnnError

ALONE = ["--disable-pass", "beyond-table"]  # otherwise the convolutions around a layer may share its kernel
TOLERANCE = 1e-3  # of the largest value; Winograd's sums differ
PAUSE_S = 0.03  # until the threads of the previous run stop spinning


class Ours:
    """Times the launches of a bundle that hold nodes of the layer."""

    def __init__(self, session, feeds):
        self._session = session
        self._run, self.outputs = session.bind(feeds, in_place=True)
        self.launches = [number for number, launch in enumerate(json.loads(session.describe())["launches"])
                         if any(node.startswith("layer") for node in launch["nodes"])]
        self.shared = [node for number, launch in enumerate(json.loads(session.describe())["launches"])
                       if number in self.launches for node in launch["nodes"] if not node.startswith("layer")]

    def time(self, runs):
        return [sum(launches[number] for number in self.launches) for launches in self._session.profile(self._run, runs)]


def take_turns(engines, options, sample):
    """{name: [median ns of a round]}, and samples of the machine. Those far behind at once take no part."""
    first = {name: statistics.median(engine.time(4)[1:]) for name, engine in engines.items()}
    theirs = min(ns for name, ns in first.items() if name != "ours")
    engines = {name: engine for name, engine in engines.items() if name == "ours" or first[name] < 1.5 * theirs}
    runs = {name: max(1, min(2000, round(options.turn_ms * 1e6 / first[name]))) for name in engines}
    rounds, samples, names = {name: [] for name in engines}, [], list(engines)
    for turn in range(options.rounds):
        samples.append(sample())
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            time.sleep(PAUSE_S)
            rounds[name].append(statistics.median(engines[name].time(1 + runs[name])[1:]))
    return rounds, samples


def compare(layer, bundle, made, threads, library, probe):
    """One row: a layer at a number of threads."""
    parameters, (_, operands, to_output), feeds, options = made
    library.set_threads(threads)
    theirs = library.candidates(layer, parameters)
    try:
        with Session(bundle, threads) as session:
            ours = Ours(session, feeds)
            ours.time(1)
            gaps = {}
            for name, run in theirs.items():
                for operand, values in operands(feeds).items():
                    run.write(operand, values)
                run.time(1)
                gaps[name] = difference([ours.outputs[0]], [to_output(run.read())])
            rounds, samples = take_turns({"ours": ours, **theirs}, options,
                                         lambda: probe.sample(threads, fma_ms=options.probe_ms))
            best = min((name for name in rounds if name != "ours"), key=lambda name: statistics.median(rounds[name]))
            ratios = [their / our for their, our in zip(rounds[best], rounds["ours"])]
            gap = gaps[best]
            return {"kind": layer.kind, "layer": layer.describe(), "threads": threads, "gflop": layer.flops / 1e9,
                    "ours_ms": statistics.median(rounds["ours"]) / 1e6, "launches": len(ours.launches),
                    "shared_with": ours.shared, "onednn_ms": statistics.median(rounds[best]) / 1e6, "algorithm": best,
                    "implementation": theirs[best].implementation, "ratio": statistics.median(ratios),
                    "fastest_ratio": min(rounds[best]) / min(rounds["ours"]), "lowest": min(ratios), "highest": max(ratios), "rounds_ns": rounds, "machine": samples,
                    "difference": gap, "wrong": gap["max_abs"] is None or gap["max_abs"] > TOLERANCE * gap["max_reference"]}
    finally:
        for run in theirs.values():
            run.close()


def make(layer, options):
    rng = np.random.default_rng(options.seed)
    parameters = layer.parameters(rng)
    model = layer.model(parameters, rng)
    feeds = {info.name: rng.standard_normal([axis.dim_value for axis in info.type.tensor_type.shape.dim]).astype(np.float32)
             for info in model[0].graph.input}
    return parameters, model, feeds, options


def table(rows, peak):
    heads = ["class", "layer", "times", "GFLOP", "ours ms", "oneDNN ms", "oneDNN / ours", "of fastest rounds", "ours of peak", "oneDNN of peak",
             "oneDNN's", "notes"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---" + "|---:" * 8 + "|---|---|"]
    for row in sorted(rows, key=lambda row: row["kind"]):
        share = lambda ms: f"{100 * row['gflop'] / ms * 1e3 / peak:.0f}%"
        notes = ["WRONG: differs by {max_abs} of {max_reference}".format(**row["difference"])] if row["wrong"] else []
        notes += [f"{row['launches']} kernels"] if row["launches"] != 1 else []
        notes += [f"with {', '.join(row['shared_with'])}"] if row["shared_with"] else []
        lines.append("| " + " | ".join([
            row["kind"], row["layer"], str(row["times"]), f"{row['gflop']:.3f}", f"{row['ours_ms']:.3f}",
            f"{row['onednn_ms']:.3f}", f"{row['ratio']:.2f} ({row['lowest']:.2f}–{row['highest']:.2f})",
            f"{row['fastest_ratio']:.2f}",
            share(row["ours_ms"]), share(row["onednn_ms"]), f"{row['algorithm']}, {row['implementation']}",
            "; ".join(notes)]) + " |")
    return "\n".join(lines)


def summary(rows):
    lines = ["| class | layers | geometric mean of oneDNN / ours | lowest |", "|---|---:|---:|---:|"]
    for kind in [*sorted({row["kind"] for row in rows}), "all"]:
        chosen = [row for row in rows if kind in (row["kind"], "all")]
        worst = min(chosen, key=lambda row: row["ratio"])
        mean = statistics.geometric_mean(row["ratio"] for row in chosen)
        lines.append(f"| {kind} | {len(chosen)} | {mean:.2f} | {worst['ratio']:.2f} ({worst['layer']}) |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2],
                        metavar="N,N", help="numbers of threads (default 1,2)")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), metavar="REGEX",
                        help="layers whose class and description match: '^3x3', '1×1, 64 → 256'")
    add_compiler_arguments(parser, "fusion-compile, which can keep a layer alone")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-ms", type=float, default=40, help="about how long each runs in a round")
    parser.add_argument("--probe-ms", type=int, default=10, help="how long the multiply-add rate is sampled in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything here as well")
    options = parser.parse_args()
    options.dim = []
    absent = [str(path) for path in [*options.models, options.compiler] if not path.is_file()]
    if absent:
        parser.error(f"no file {', '.join(absent)}")
    return options


def main():
    options = parse_arguments()
    layers, rows, failures = {}, [], []
    for model in options.models:
        found, strange = distinct_layers(model)
        failures += [f"{model.stem}: '{name}' is of no form that layers.py knows" for name in strange]
        for layer, times in found.items():
            layers[layer] = layers.get(layer, 0) + times
    layers = {layer: times for layer, times in layers.items() if options.only.search(f"{layer.kind} {layer.describe()}")}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        try:
            library, probe = OneDnn(folder), machine.Probe(folder)
        except (OneDnnError, RuntimeError) as error:
            sys.exit(str(error))
        for number, (layer, times) in enumerate(layers.items()):
            print(f"{number + 1} of {len(layers)}: {layer.kind}, {layer.describe()} …", file=sys.stderr, flush=True)
            try:
                made = make(layer, options)
                path = folder / f"{number}.onnx"
                onnx.save(made[1][0], path)
                bundle = compile_model(path, folder, options, ALONE)
                rows += [{**compare(layer, bundle, made, threads, library, probe), "times": times}
                         for threads in options.threads]
                bundle.unlink()
            except (EngineError, FusionError, OneDnnError) as error:
                failures.append(f"{layer.describe()}: {error}")
    about = machine.describe()
    print(f"{about['cpu']}, {about['cpus_usable']} CPUs, load {about['load_average']:.1f}; oneDNN {library.version}; "
          f"planner {options.planner}")
    for threads in options.threads:
        chosen = [row for row in rows if row["threads"] == threads]
        if not chosen:
            continue
        samples = [sample for row in chosen for sample in row["machine"]]
        peak = max(sample["fma_gflops"] for sample in samples)
        mean = statistics.median(sample["fma_gflops_mean"] for sample in samples)
        print(f"\nthreads: {threads}; multiply-adds reach {peak:.0f} GFLOP/s, {100 * mean / peak:.0f}% of it to be had "
              f"meanwhile\n\n{table(chosen, peak)}\n\n{summary(chosen)}")
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "results": rows, "failures": failures}, indent=1) + "\n")
    return 1 if failures or any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
