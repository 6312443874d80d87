#!/usr/bin/env python3
"""A float model and its quantised form, ours and onnxruntime's, in one interleaved run.

usage: compare_quantized.py [options] MODEL.onnx ...

Each model is quantised statically (QDQ format, 8 bits, weights per channel) by onnxruntime.quantization, calibrated
with random inputs: the figures are about speed, not accuracy. The engines take turns as in compare_peers.py. `quanta`
is the largest difference of our int8 outputs from onnxruntime's int8 outputs, in steps of the output's own range over
255.

Needs:  pip install numpy onnx onnxruntime
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
try:
    import numpy as np
    from onnxruntime import quantization
except ImportError:
    sys.exit("onnxruntime is missing: pip install numpy onnx onnxruntime")
import machine
from compare_peers import BUILD, compile_model, difference, random_feeds, summary, take_turns
from engines import EngineProcess, Job
from fusion_runtime import Session


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, inputs, samples=4):
        rng = np.random.default_rng(0)
        self._samples = iter([{tensor.name: rng.standard_normal(tensor.shape).astype(tensor.dtype) for tensor in inputs}
                              for _ in range(samples)])

    def get_next(self):
        return next(self._samples, None)


def quantize(model, target, inputs, options):
    kinds = {"u8": quantization.QuantType.QUInt8, "s8": quantization.QuantType.QInt8}
    quantization.quantize_static(str(model), str(target), Calibration(inputs), quant_format=quantization.QuantFormat.QDQ,
                                 per_channel=options.per_channel, activation_type=kinds[options.activations],
                                 weight_type=quantization.QuantType.QInt8)


def compare(model, folder, options, probe):
    bundle = compile_model(model, folder, options)
    with Session(bundle, options.threads) as session:
        inputs, names = list(session.inputs), tuple(tensor.name for tensor in session.outputs)
        flops = sum(launch.get("flops", 0) for launch in json.loads(session.describe()).get("launches", []))
    feeds = random_feeds(inputs, options)
    narrow = folder / f"{model.stem}.int8.onnx"
    quantize(model, narrow, inputs, options)
    narrow_bundle = compile_model(narrow, folder, options)
    processes = {}
    try:
        for kind, path, built in (("f32", model, bundle), ("int8", narrow, narrow_bundle)):
            job = Job(str(path), str(built), options.threads, feeds, names)
            for engine in ("ours", "onnxruntime"):
                processes[f"{engine} {kind}"] = EngineProcess(engine, job)
        outputs = {name: process.outputs() for name, process in processes.items()}
        latencies, samples = take_turns(processes, options, lambda: probe.sample(options.threads))
    finally:
        for process in processes.values():
            process.close()
    theirs = outputs["onnxruntime int8"]
    gap = difference(outputs["ours int8"], theirs)
    quantum = max(float(np.max(value) - np.min(value)) for value in theirs) / 255
    return {"model": model.stem, "gflop": flops / 1e9, "quanta": gap["max_abs"] / quantum, "machine": samples,
            "engines": {name: summary(rounds) for name, rounds in latencies.items()}}


def ratio(row, a, b):
    pairs = zip(row["engines"][a]["round_medians_ms"], row["engines"][b]["round_medians_ms"])
    return statistics.median(x / y for x, y in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--activations", choices=["u8", "s8"], default="u8")
    parser.add_argument("--per-tensor", dest="per_channel", action="store_false", help="one scale for each weight")
    parser.add_argument("--compiler", type=pathlib.Path, default=BUILD / "bin/fusion-compile")
    parser.add_argument("--planner", default="dnnfusion")
    parser.add_argument("--device", type=pathlib.Path, metavar="MODEL.json",
                        help="device model for fusion-compile: one whose isa is avx512vnni where the machine has that")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-ms", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--int-max", type=int, default=1000)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    heads = ["model", "ours f32 ms", "ours int8 ms", "onnxruntime f32 ms", "onnxruntime int8 ms", "ours int8 / f32",
             "int8, ours / onnxruntime", "ours f32, int8 Gop/s", "quanta", "machine"]
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        probe = machine.Probe(scratch)
        peak = probe.sample(options.threads, fma_ms=200, copy_ms=500)
        for model in options.models:
            rows.append(compare(model, pathlib.Path(scratch), options, probe))
    about = machine.describe()
    print(f"{about['cpu']}, {options.threads} threads, load {about['load_average']:.1f}; {peak['fma_gflops']:.0f} GFLOP/s of "
          f"f32 multiply-adds, copies {peak['copy_gb_per_s']:.1f} GB/s\n")
    print("| " + " | ".join(heads) + " |\n|---" + "|---:" * (len(heads) - 1) + "|")
    for row in rows:
        ms = {name: engine["median_ms"] for name, engine in row["engines"].items()}
        share = statistics.median(s["fma_gflops_mean"] / s["fma_gflops"] for s in row["machine"])
        cells = [row["model"], *(f"{ms[name]:.3f}" for name in ("ours f32", "ours int8", "onnxruntime f32", "onnxruntime int8")),
                 f"{ratio(row, 'ours int8', 'ours f32'):.2f}", f"{ratio(row, 'ours int8', 'onnxruntime int8'):.2f}",
                 f"{row['gflop'] / ms['ours f32'] * 1e3:.0f}, {row['gflop'] / ms['ours int8'] * 1e3:.0f}",
                 f"{row['quanta']:.1f}", f"{100 * share:.0f}%"]
        print("| " + " | ".join(cells) + " |")
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "peak": peak, "results": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
