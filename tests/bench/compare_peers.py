#!/usr/bin/env python3
"""Compares this project with onnxruntime, OpenVINO, PyTorch Inductor and TVM: same models, inputs, machine and threads.

usage: compare_peers.py [options] MODEL.onnx ...

Engines run in processes of their own and take turns: in each round every engine runs for --turn-ms, and each round
begins with another one. Latencies are medians over all runs; a ratio is the median over rounds of ours / theirs within
the round, so it is below 1 if ours is faster, and drift of the machine cancels. Each round also samples the
multiply-add rate: if its mean is far below its peak, something else was running, and the figures mean little. A peer
that takes longer than --slow-s for a run gets five turns of one run. Models that this project runs in less than 0.1 ms
are in a table of their own, outside of the geometric mean, because a good part of such a run is Python. All bundles of
a table have one generator; bundles of another are an error. The text beneath the tables has load times and memory, and
for each peer the models that were not run and those whose outputs differ from the reference's.

Every engine reads and writes memory that is bound once (fusion_run on the caller's arrays, onnxruntime's IO binding,
OpenVINO with shared inputs and outputs), and counts subnormal numbers as zero (except TVM, which has no such setting).

--avx2 compares on AVX2, on a machine that has AVX-512, too: bundles are made for avx2.json with this machine's caches,
and the peers are told that the processor has no more than that (avx2.py).

Needs numpy and at least one peer:  pip install numpy onnxruntime openvino
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
try:
    import numpy as np
except ImportError:
    sys.exit("numpy is missing: pip install numpy onnxruntime openvino (onnxruntime and openvino are the peers)")
import avx2
import machine
from engines import ENGINES, EngineError, EngineProcess, Job
from fusion_runtime import FusionError, Session

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build/release"
SLOW_ROUNDS = 5
SHORT_MS = 0.1
PEERS = [name for name in ENGINES if name != "ours"]


def add_compiler_arguments(parser, compilers="fusion-compile, or fusionctl with a server running"):
    """What compile_model reads of the options."""
    parser.add_argument("--compiler", type=pathlib.Path, default=BUILD / "bin/fusion-compile",
                        help=f"{compilers} (default: build/release/bin/fusion-compile)")
    parser.add_argument("--planner", default="dnnfusion", help="for the compiler (default dnnfusion)")
    parser.add_argument("--device", type=pathlib.Path, metavar="MODEL.json", help="device model for fusion-compile")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2],
                        metavar="N,N", help="numbers of threads (default 1,2)")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=PEERS, metavar="NAME,NAME",
                        help=f"of {', '.join(PEERS)} (default: all that are installed)")
    add_compiler_arguments(parser)
    parser.add_argument("--avx2", action="store_true", help="all engines on AVX2, whatever more the processor has")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="binds a symbolic dimension")
    parser.add_argument("--bundles", type=pathlib.Path, metavar="DIR",
                        help="keep bundles here, and take those that are newer than model and compiler")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-ms", type=float, default=300, help="about how long an engine runs in a round")
    parser.add_argument("--slow-s", type=float, default=2, help="a peer slower than this a run takes five turns of one run (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--weights-seed", type=int, default=0, help="given to export.py; inductor needs it")
    parser.add_argument("--int-max", type=int, default=1000, help="random integers stay below (default 1000)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything here as well")
    options = parser.parse_args()
    unknown = [name for name in options.peers if name not in PEERS]
    if unknown:
        parser.error(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    absent = [str(path) for path in [*options.models, options.compiler] if not path.is_file()]
    if absent:
        parser.error(f"no file {', '.join(absent)}")
    if options.rounds < 1 or min(options.threads) < 1:
        parser.error("--rounds and --threads are at least 1")
    options.hidden = {}  # the peers' environment; set by --avx2
    return options


def compile_model(model, folder, options, more=()):
    bundle = folder / f"{model.stem}.{options.planner}.fusion"
    sources = max(model.stat().st_mtime, options.compiler.stat().st_mtime)
    if bundle.is_file() and bundle.stat().st_mtime > sources:
        return bundle
    command = [str(options.compiler)]
    if options.compiler.name == "fusionctl":
        command += ["submit", str(model), "-o", str(bundle), "--no-measure", "--no-verify"]
    else:
        command += [str(model), str(bundle)]
    command += ["--planner", options.planner, *more]
    if options.device:
        command += ["--device", str(options.device)]
    for binding in options.dim:
        command += ["--dim", binding]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise EngineError(f"{options.compiler.name}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return bundle


def random_feeds(inputs, options):
    """Masks let everything through, token types are 0 or 1, other integers lie below --int-max."""
    rng = np.random.default_rng(options.seed)
    feeds = {}
    for tensor in inputs:
        if tensor.dtype.kind == "f":
            feeds[tensor.name] = rng.standard_normal(tensor.shape).astype(tensor.dtype)
        elif "mask" in tensor.name or tensor.dtype.kind == "b":
            feeds[tensor.name] = np.ones(tensor.shape, tensor.dtype)
        else:
            top = 2 if "type" in tensor.name else min(options.int_max, np.iinfo(tensor.dtype).max)
            feeds[tensor.name] = rng.integers(0, top, tensor.shape).astype(tensor.dtype)
    return feeds


def difference(outputs, reference):
    """Largest absolute difference over all outputs and the largest absolute value of the reference."""
    worst, scale = 0.0, 0.0
    for ours, theirs in zip(outputs, reference):
        ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        if ours.shape != theirs.shape:
            return {"max_abs": None, "max_reference": None, "note": f"shapes {ours.shape} and {theirs.shape}"}
        if ours.size:
            gap = np.abs(ours - theirs)
            worst = max(worst, float(np.where(np.isnan(gap) & ~(np.isnan(ours) & np.isnan(theirs)), np.inf,
                                              np.nan_to_num(gap)).max()))
            scale = max(scale, float(np.nan_to_num(np.abs(theirs)).max()))
    return {"max_abs": worst, "max_reference": scale}


def quantile(values, q):
    return sorted(values)[round(q * (len(values) - 1))]


def summary(rounds_ns):
    every = [ns / 1e6 for ns_of_round in rounds_ns for ns in ns_of_round]
    return {"median_ms": statistics.median(every), "p10_ms": quantile(every, 0.1), "p90_ms": quantile(every, 0.9),
            "min_ms": min(every), "runs": len(every),
            "round_medians_ms": [statistics.median(ns) / 1e6 for ns in rounds_ns]}


def take_turns(processes, options, sample, slow_s=math.inf):
    """{name: [[ns of a run] of a round]}, and the machine's samples. Peers slower than `slow_s` take SLOW_ROUNDS turns of
    one run."""
    runs, slow = {}, set()
    for name, process in processes.items():
        fastest = min(process.time(2))
        runs[name] = max(1, min(1000, round(options.turn_ms * 1e6 / fastest)))
        if name != "ours" and fastest > slow_s * 1e9:
            slow.add(name)
            runs[name] = 1
    latencies, samples = {name: [] for name in processes}, []
    names = list(processes)
    for turn in range(options.rounds):
        samples.append(sample())
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            if turn >= SLOW_ROUNDS and name in slow:
                continue
            time.sleep(0.05)  # the previous engine may still be spinning
            latencies[name].append(processes[name].time(runs[name]))
    return latencies, samples


def compare(model, bundle, threads, options, probe):
    """One row: a model at a number of threads."""
    with Session(bundle, threads) as session:
        feeds = random_feeds(session.inputs, options)
        manifest = json.loads(session.describe())
        launches = manifest.get("launches", [])
        job = Job(str(model), str(bundle), threads, feeds, tuple(t.name for t in session.outputs), options.weights_seed)
    row = {"model": model.stem, "threads": threads, "kernels": len(launches),
           "gflop": sum(launch.get("flops", 0) for launch in launches) / 1e9,
           "generator": manifest.get("generator"), "engines": {}, "ratios": {}, "differences": {}, "not_run": {},
           "load": {}}
    processes = {}
    try:
        for name in ["ours", *options.peers]:
            reason = ENGINES[name].available(job)
            if reason is None:
                try:
                    processes[name] = EngineProcess(name, job, options.hidden if name != "ours" else {})
                except EngineError as error:
                    reason = str(error)
            if reason is not None:
                row["not_run"][name] = reason
        if "ours" not in processes:
            return row
        outputs = {name: process.outputs() for name, process in processes.items()}
        reference = "onnxruntime" if "onnxruntime" in outputs else next((name for name in outputs if name != "ours"), None)
        row["reference"] = reference
        if reference is not None:
            row["differences"] = {name: difference(values, outputs[reference]) for name, values in outputs.items()
                                  if name != reference}
        latencies, row["machine"] = take_turns(processes, options, lambda: probe.sample(threads), options.slow_s)
        row["load"] = {name: {"load_s": process.load_s, "peak_bytes": process.peak_bytes()}
                       for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.close()
    row["engines"] = {name: summary(rounds) for name, rounds in latencies.items()}
    ours = row["engines"]["ours"]["round_medians_ms"]
    for name, engine in row["engines"].items():
        if name != "ours":
            ratios = [mine / theirs for mine, theirs in zip(ours, engine["round_medians_ms"])]
            row["ratios"][name] = {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}
    return row


def table(rows, peers, peak):
    """Markdown. `peak`: {threads: sample of the machine}."""
    heads = ["model", "threads", "kernels", "ours ms"]
    heads += [head for peer in peers for head in (f"{peer} ms", f"ours / {peer}")]
    heads += ["best peer / ours", "ours GFLOP/s (of peak)", "max difference (of max)", "machine"]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in rows:
        cells = [row["model"], str(row["threads"]), str(row["kernels"])]
        ours = row["engines"].get("ours")
        cells.append(f"{ours['median_ms']:.3f}" if ours else "failed")
        for peer in peers:
            engine, ratio = row["engines"].get(peer), row["ratios"].get(peer)
            cells.append(f"{engine['median_ms']:.3f}" if engine else "–")
            cells.append(f"{ratio['median']:.2f} ({ratio['lowest']:.2f}–{ratio['highest']:.2f})" if ratio else "–")
        cells.append(f"{best_peer(row):.2f}" if row["ratios"] else "–")
        if ours:
            rate = row["gflop"] / ours["median_ms"] * 1e3
            cells.append(f"{rate:.0f} ({100 * rate / peak[row['threads']]['fma_gflops']:.0f}%)")
            share = statistics.median(s["fma_gflops_mean"] / s["fma_gflops"] for s in row["machine"])
            gap = row["differences"].get("ours", {})
            cells.append(f"{gap['max_abs']:.1e} ({gap['max_reference']:.1e})" if gap.get("max_abs") is not None else "–")
            cells.append(f"{100 * share:.0f}%")
        else:
            cells += ["–"] * 3
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def load_table(rows, peers):
    """Markdown: seconds to the first result, and the most memory that was resident for the model, in MiB."""
    names = ["ours", *peers]
    heads = ["model", "threads"] + [f"{name} load s" for name in names] + [f"{name} MiB" for name in names]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in rows:
        loads = [row["load"].get(name) for name in names]
        cells = [row["model"], str(row["threads"])]
        cells += [f"{load['load_s']:.2f}" if load else "–" for load in loads]
        cells += [f"{load['peak_bytes'] / 2**20:.0f}" if load else "–" for load in loads]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def is_short(row):
    return "ours" in row["engines"] and row["engines"]["ours"]["median_ms"] < SHORT_MS


def best_peer(row):
    """How many times as long as ours the fastest peer takes; None without peers."""
    return 1 / max(ratio["median"] for ratio in row["ratios"].values()) if row["ratios"] else None


def verdict(rows):
    """A line for each number of threads: ours beside the fastest peer of each model."""
    lines = []
    for threads in dict.fromkeys(row["threads"] for row in rows):
        found = {row["model"]: best_peer(row) for row in rows if row["threads"] == threads and row["ratios"]}
        if found:
            lowest = min(found, key=found.get)
            lines.append(f"{threads} threads: best peer / ours has the geometric mean "
                         f"{statistics.geometric_mean(found.values()):.2f} over {len(found)} models, lowest "
                         f"{found[lowest]:.2f} ({lowest})")
    return "\n".join(lines)


def remarks(rows):
    """Lines about peers that were not run, and about outputs that are not the reference's."""
    absent, other = {}, {}
    for row in rows:
        for name, reason in row["not_run"].items():
            models = absent.setdefault((name, reason), [])
            models += [row["model"]] if row["model"] not in models else []
        for name, gap in row["differences"].items():
            if gap["max_abs"] is None or gap["max_abs"] > 1e-2 * gap["max_reference"]:
                other[f"{row['model']}: {name}'s outputs are not {row['reference']}'s: " +
                      (gap.get("note") or f"they differ by {gap['max_abs']:.1e} of {gap['max_reference']:.1e}")] = None
    return [f"{name} not run on {', '.join(models)}: {' '.join(reason.split())[:300]}"
            for (name, reason), models in absent.items()] + list(other)


def versions(peers):
    from importlib import metadata
    found = {"python": sys.version.split()[0], "numpy": np.__version__}
    for package in [ENGINES[peer].package for peer in peers]:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return found


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            if options.avx2:
                options.hidden = avx2.environment(scratch, [ENGINES[peer].package for peer in options.peers])
                options.device = options.device or avx2.device(scratch)
            probe = machine.Probe(scratch, level="x86-64-v3" if options.avx2 else "native")
        except (RuntimeError, subprocess.CalledProcessError) as error:
            sys.exit(str(error))
        folder = options.bundles or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        peak = {threads: probe.sample(threads, fma_ms=200, copy_ms=500) for threads in options.threads}
        rows, failures = [], []
        for model in options.models:
            for threads in options.threads:
                print(f"{model.stem}, {threads} threads …", file=sys.stderr, flush=True)
                try:
                    rows.append(compare(model, compile_model(model, folder, options), threads, options, probe))
                except (EngineError, FusionError) as error:
                    failures.append(f"{model.stem}, {threads} threads: {error}")
    used = [peer for peer in options.peers if any(peer in row["engines"] for row in rows)]
    about = {**machine.describe(), "peak": list(peak.values()), "versions": versions(used), "planner": options.planner}
    print(f"{about['cpu']}, {about['cpus_usable']} CPUs, load {about['load_average']:.1f}; " + "; ".join(
        f"{s['threads']} threads: {s['fma_gflops']:.0f} GFLOP/s, copies {s['copy_gb_per_s']:.1f} GB/s" for s in peak.values()))
    print(", ".join(f"{name} {version}" for name, version in about["versions"].items()) + f"; planner {options.planner}\n")
    generators = sorted({str(row["generator"]) for row in rows})
    if len(generators) > 1:
        failures.append(f"bundles of several generators, {', '.join(generators)}: compile all with one (an empty --bundles)")
    print(f"generator: {', '.join(generators)}\n")
    rest = [row for row in rows if not is_short(row)]
    if rest:
        print(f"{table(rest, used, peak)}\n\n{verdict(rest)}")
    short = [row for row in rows if is_short(row)]
    if short:
        print(f"\nBelow {SHORT_MS} ms, where interpreters are compared:\n\n{table(short, used, peak)}")
    print(f"\n{load_table(rows, used)}")
    for remark in remarks(rows):
        print(f"\n{remark}")
    for name in dict.fromkeys(name for row in rows for name, reason in row["not_run"].items() if "missing" in reason):
        print(f"\nfor {name}: {ENGINES[name].install}", file=sys.stderr)
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "results": rows, "failures": failures}, indent=1) + "\n")
    return 1 if failures or any("ours" in row["not_run"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
