#!/usr/bin/env python3
"""Whole models on this machine's GPU: are the numbers right, how long is a run, how long does PyTorch take?

usage: gpu_models.py [--target cuda:sm_90] [--planners P,...] [--flags F] [--peers eager,compile] [--rounds N] [--json F]
                     MODEL.onnx ...

For each model, bundles of the planners are compiled offline (for several models at once); their outputs are compared
with onnxruntime's on the CPU; then all engines run in turns in one process. A run begins with inputs in pinned memory
of the host and ends with outputs there, for every engine. Peers: PyTorch on the module that tests/models/export.py exports
(whose weights are others of the same sizes), its operators as they are (`eager`) or compiled by inductor (`compile`),
both captured as one CUDA graph (where they can be), in f32 without tf32, with cuDNN's benchmark of algorithms. `kernels` is the sum of our
launches, timed by events between them, so that it holds what a launch of its own costs.

A model runs in a process of its own. The exit code is 1 if outputs are wrong or a model fails.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "models"))
ALLOWED = 1e-3  # of the largest value of an output: sums of products in another order, through a whole model


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--compiler", default=str(HERE.parents[1] / "build/release/bin/fusion-compile"))
    parser.add_argument("--target", default="cuda:sm_90")
    parser.add_argument("--planners", default="dnnfusion", help="separated by commas")
    parser.add_argument("--flags", default="", help="more flags of the compiler, separated by spaces")
    parser.add_argument("--peers", default="eager", help="separated by commas, of eager and compile; may be empty")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn-ms", type=float, default=40)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="models that are compiled at once")
    parser.add_argument("--timeout-s", type=int, default=120, help="of one model's runs")
    parser.add_argument("--kernels", type=int, default=0, help="print so many of the slowest launches of each bundle")
    parser.add_argument("--bundles", type=pathlib.Path, help="keep bundles here, and use those that are here")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--int-max", type=int, default=1000)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # {planner: bundle} of the only model, as JSON
    return parser.parse_args()


def compile_one(options, model, planner, folder):
    bundle = folder / f"{model.stem}.{planner}.fusion"
    if bundle.exists():
        return model, planner, bundle, ""
    start = time.monotonic()
    done = subprocess.run([options.compiler, str(model), str(bundle), "--target", options.target, "--planner", planner,
                           *options.flags.split()], capture_output=True, text=True)
    error = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]
    print(f"; {model.stem} {planner}: compiled in {time.monotonic() - start:.1f} s {error}", flush=True)
    return model, planner, bundle, error


class Ours:
    def __init__(self, bundle, feeds):
        import fusion_runtime
        self.session = fusion_runtime.Session(bundle)
        self.run, self.bound = self.session.bind({t.name: feeds[t.name] for t in self.session.inputs}, in_place=True)

    def outputs(self):
        self.run()
        return {t.name: value for t, value in zip(self.session.outputs, self.session.made(self.bound))}

    def launches(self, runs=5):
        import fusion_runtime
        labels = [fusion_runtime.load().fusion_bundle_launch_label(self.session._bundle, i).decode()
                  for i in range(fusion_runtime.load().fusion_bundle_launch_count(self.session._bundle))]
        times = zip(*self.session.profile(self.run, runs))
        return [(label, statistics.median(one)) for label, one in zip(labels, times)]


class Torch:
    """A module on the GPU as one CUDA graph, with copies of inputs and outputs around it."""

    def __init__(self, name, feeds, compiled):
        import export
        import torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        module, _ = export.build(name)
        self.module = module = module.cuda()
        if compiled:
            import torch._inductor.config
            torch._inductor.config.freezing = True
            self.module = module = torch.compile(module)
        self.torch = torch
        self.given = [torch.from_numpy(feeds[key]).pin_memory() for key in export.RECIPES[name].inputs]
        self.inputs = [value.cuda() for value in self.given]
        with torch.no_grad():
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(4):
                    module(*self.inputs)
            torch.cuda.current_stream().wait_stream(side)
            try:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph), torch.device("cuda"):
                    self.results = export.flat(module(*self.inputs))
                self.replay = self.graph.replay
            except RuntimeError:  # it copies from the host in between: its kernels are launched one by one
                torch.cuda.synchronize()
                self.replay = self.call
                self.call()
        self.there = [torch.empty_like(value, device="cpu", pin_memory=True) for value in self.results]

    def call(self):
        import export
        with self.torch.no_grad():
            self.results = export.flat(self.module(*self.inputs))

    def run(self):
        for to, value in zip(self.inputs, self.given):
            to.copy_(value, non_blocking=True)
        self.replay()
        for to, value in zip(self.there, self.results):
            to.copy_(value, non_blocking=True)
        self.torch.cuda.synchronize()

    def on_device_us(self, runs=20):
        start, end = self.torch.cuda.Event(enable_timing=True), self.torch.cuda.Event(enable_timing=True)
        self.replay()
        start.record()
        for _ in range(runs):
            self.replay()
        end.record()
        self.torch.cuda.synchronize()
        return 1e3 * start.elapsed_time(end) / runs


def reference(model, feeds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    values = session.run(None, {name: value for name, value in feeds.items() if name in known})
    return {o.name: value for o, value in zip(session.get_outputs(), values)}


def distance(outputs, expected):
    """The largest difference, as a share of the largest value of its output; infinite if it is none."""
    import numpy as np
    worst = 0.0
    for name, value in outputs.items():
        a, b = np.asarray(value, np.float64), np.asarray(expected[name], np.float64)
        if a.shape != b.shape:
            return float("inf")
        if a.size:
            gap = np.abs(a - b).max() / max(1e-30, np.abs(b[np.isfinite(b)]).max(initial=0))
            worst = max(worst, gap if np.isfinite(gap) else float("inf"))
    return worst


def time_in_turns(engines, options):
    """{name: median ns}: a turn of each engine a round, at least three runs long."""
    samples = {name: [] for name in engines}
    for round_ in range(options.rounds + 1):
        for name, engine in engines.items():
            runs, end = [], time.perf_counter_ns() + 1e6 * options.turn_ms
            while len(runs) < 3 or time.perf_counter_ns() < end:
                start = time.perf_counter_ns()
                engine.run()
                runs.append(time.perf_counter_ns() - start)
            if round_ > 0:  # the first warms up
                samples[name].append(statistics.median(runs))
    return {name: statistics.median(turns) for name, turns in samples.items()}


def run_model(options, model, bundles):
    import compare_peers
    row = {"model": model.stem, "errors": {}, "distance": {}, "us": {}, "kernels_us": {}, "launches": {}}
    ours = {}
    for planner, bundle in bundles.items():
        import fusion_runtime
        try:
            with fusion_runtime.Session(bundle) as probe:
                inputs = probe.inputs
            feeds = compare_peers.random_feeds(inputs, options)
            ours[planner] = Ours(bundle, feeds)
            ours[planner].run()
        except fusion_runtime.FusionError as error:
            row["errors"][planner] = str(error)
            ours.pop(planner, None)
    if not ours:
        return row
    try:
        expected = reference(model, feeds)
        for planner, engine in ours.items():
            row["distance"][planner] = distance(engine.outputs(), expected)
    except Exception as error:
        row["errors"]["onnxruntime"] = str(error).splitlines()[0][:300]
    engines = dict(ours)
    for peer in filter(None, options.peers.split(",")):
        try:
            engines[peer] = Torch(model.stem, feeds, peer == "compile")
            row["kernels_us"][peer] = engines[peer].on_device_us()
        except Exception as error:
            row["errors"][peer] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            engines.pop(peer, None)
    row["us"] = {name: ns / 1e3 for name, ns in time_in_turns(engines, options).items()}
    for planner, engine in ours.items():
        launches = engine.launches()
        row["launches"][planner] = len(launches)
        row["kernels_us"][planner] = sum(ns for _, ns in launches) / 1e3
        slowest = sorted(launches, key=lambda launch: -launch[1])[:options.kernels]
        row.setdefault("slowest", {})[planner] = [[label, ns / 1e3] for label, ns in slowest]
    return row


def print_row(row, options):
    def column(values, name, text):
        return text % values[name] if name in values else "-"
    for name in dict.fromkeys([*options.planners.split(","), *filter(None, options.peers.split(","))]):
        print("%-26s %-16s %10s %10s %6s %10s %s" % (
            row["model"], name, column(row["us"], name, "%.1f"), column(row["kernels_us"], name, "%.1f"),
            column(row["launches"], name, "%d"), column(row["distance"], name, "%.1e"), row["errors"].get(name, "")))
        for label, us in row.get("slowest", {}).get(name, []):
            print("    %10.1f  %s" % (us, label))
    if "onnxruntime" in row["errors"]:
        print("    not compared: " + row["errors"]["onnxruntime"])
    sys.stdout.flush()


def main():
    options = parse_arguments()
    if options.one:
        print(json.dumps(run_model(options, options.models[0], json.loads(options.one))))
        return 0
    folder = options.bundles or pathlib.Path(tempfile.mkdtemp(prefix="fusion-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows, failed = [], False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(compile_one, options, model, planner, folder)
                for model in options.models for planner in options.planners.split(",")]
        compiled = [job.result() for job in jobs]
    print("%-26s %-16s %10s %10s %6s %10s" % ("MODEL", "ENGINE", "µs", "kernels", "LAUNCH", "DISTANCE"))
    for model in options.models:
        bundles = {planner: str(bundle) for m, planner, bundle, error in compiled if m == model and not error}
        passed = [argument for argument in sys.argv[1:] if not argument.endswith(".onnx")]
        try:
            done = subprocess.run([sys.executable, __file__, *passed, "--one", json.dumps(bundles), str(model)],
                                  capture_output=True, text=True, timeout=options.timeout_s)
            row = json.loads(done.stdout.strip().splitlines()[-1])
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            why = "timed out" if isinstance(error, subprocess.TimeoutExpired) else (done.stderr.strip() or "died")[-400:]
            print(f"{model.stem}: {why}", flush=True)
            failed = True
            continue
        failed |= bool(row["errors"]) or any(not gap <= ALLOWED for gap in row["distance"].values())
        rows.append(row)
        print_row(row, options)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
