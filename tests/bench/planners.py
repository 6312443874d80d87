#!/usr/bin/env python3
"""Planners side by side on models: launches, memory-bound kernels, barriers, bytes, estimates, planning time, latency.

usage: planners.py [--planners none,dnnfusion,…] [--target cpu]… [--against xla_like] [--json FILE]
                   [--compiler build/release/bin/fusion-compile] [--device MODEL.json]
                   [--measure 1,2 --bundles DIR] [--prepare] [--rounds N] [--turn-ms N] MODEL.onnx …

Without --measure nothing is built, and the cost model answers all questions. Kernels are those of plan.json;
"memory-bound" are kernels without a product or a routine, and the bytes of their column are what these move between
kernels: everything but what stays in the nearest level. Needs Python's standard library only.

--measure takes numbers of threads: bundles of all planners are compiled into --bundles (what is there for this compiler
stays), and those of one model run in turns, each in a process of its own, with numpy's random inputs. A ratio is the
median over rounds of the planner's latency by that of dnnfusion in the same round. Bundles with the same kernels are
timed once. --prepare compiles and stops, so that a busy machine can prepare what a quiet one times. Targets whose
devices this machine does not have are counted only. The last tables have, for each number of threads, a row for each
model: what each planner takes of dnnfusion's time, which is the fastest, what `auto` takes of that one's time, and the
geometric means.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANNERS = "none,tvm_like,xla_like,dnnfusion,fusion_stitching"
BASE = "dnnfusion"
# A value that stays in a task's own memory is handed over inside a kernel.
NEAREST = ("L1", "shared", "local")


def account(plan, report):
    """What one planner made of a model: plan.json, and the account of the compilation."""
    iterations = [1] * len(plan["fusion_blocks"])  # of the loop that a block is in
    for loop in plan.get("loops", []):
        for block in loop["fusion_blocks"]:
            iterations[block] = loop["iterations"]
    blocks = [dict(block, trips=trips) for block, trips in zip(plan["fusion_blocks"], iterations)]
    kernels = [block for block in blocks if block.get("kernel", True)]
    memory_bound = [block for block in kernels if block["memory_intensive"]]

    def levels(blocks):
        total = {}
        for block in blocks:
            for level, count in block["bytes"].items():
                total[level] = total.get(level, 0) + count * block["trips"]
        return total

    # One launch holds a loop's iterations where it is joined; else each is as many launches as it has kernels.
    joined = plan.get("joined_launches", [])
    in_launch = {block for launch in joined for block in launch["fusion_blocks"]}
    apart = [block for number, block in enumerate(blocks) if block.get("kernel", True) and number not in in_launch]
    return {
        "launches": report["kernels"] + sum(block["trips"] - 1 for block in apart),
        "kernels": len(kernels),
        "memory_bound": len(memory_bound),
        "barriers": sum(launch["barriers"] for launch in joined) +
                    sum((block["phases"] - 1) * block["trips"] for block in apart),
        "bytes": levels(kernels),
        "memory_bound_bytes": levels(memory_bound),
        "estimate_ms": sum(block["estimate_ns"] * block["trips"] for block in kernels) / 1e6,
        "plan_seconds": report["stages"].get("plan", 0),
    }


def beyond(levels):
    """Bytes that kernels read and write beyond a task's own memory."""
    return sum(count for level, count in levels.items() if level not in NEAREST)


class Failed(Exception):
    pass


def compile_model(options, model, target, planner, out, report, *flags):
    command = [options.compiler, model, out, "--planner", planner, "--target", target, "--json", report, *flags]
    if options.device and target == options.target[0]:
        command += ["--device", options.device]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if run.returncode != 0:
        raise Failed(run.stderr.strip().splitlines()[-1])


def plan_only(options, model, target, planner):
    with tempfile.TemporaryDirectory() as folder:
        plan, report = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "report.json")
        compile_model(options, model, target, planner, plan, report, "--plan")
        return account(json.loads(plan.read_text()), json.loads(report.read_text()))


def with_bundle(options, model, target, planner):
    """Compiles unless a bundle of this compiler is there."""
    stem = options.bundles / f"{model.stem}.{target.replace(':', '_')}.{planner}"
    bundle, report, refusal = (stem.with_name(stem.name + end) for end in (".fusion", ".json", ".failed"))
    made_after = max(os.stat(path).st_mtime for path in (model, options.compiler))
    if refusal.is_file() and refusal.stat().st_mtime > made_after:
        raise Failed(refusal.read_text())
    if not (bundle.is_file() and report.is_file() and bundle.stat().st_mtime > made_after):
        try:
            compile_model(options, model, target, planner, bundle, report)
        except Failed as error:
            refusal.write_text(str(error))
            raise
    with zipfile.ZipFile(bundle) as entries:
        plan = json.loads(entries.read("plan.json"))
    return {**account(plan, json.loads(report.read_text())), "bundle": str(bundle), "code": code_of(bundle)}


def code_of(bundle):
    """What a run of the bundle executes: equal for planners that came to the same plan. The file of the weights also
    depends on what stands before it, and the buffers name its tensors."""
    with zipfile.ZipFile(bundle) as entries:
        manifest = json.loads(entries.read("manifest.json"))
    digests = {name: digest for name, digest in manifest["digests"].items() if name.startswith("kernels/")}
    return [digests, manifest["launches"], manifest["buffers"], manifest["kernels"]]


def time_bundles(options, model, rows, threads):
    """Adds {threads: {ms, ratio, lowest, highest}} to each row that has a bundle."""
    from compare_peers import quantile, random_feeds
    from engines import EngineError, EngineProcess, Job
    from fusion_runtime import Session
    distinct, owner = {}, {}
    for planner, row in rows.items():
        owner[planner] = next((other for other, code in distinct.items() if code == row["code"]), planner)
        distinct.setdefault(owner[planner], row["code"])
    base = owner.get(BASE, next(iter(distinct)))
    with Session(rows[base]["bundle"], threads) as session:
        options.seed, options.int_max = 0, 1000
        feeds = random_feeds(session.inputs, options)
        names = tuple(tensor.name for tensor in session.outputs)
    processes, rounds = {}, {}
    try:
        for planner in distinct:
            try:
                job = Job(str(model), rows[planner]["bundle"], threads, feeds, names)
                processes[planner] = EngineProcess("ours", job)
            except EngineError as error:
                rows[planner].setdefault("not_run", {})[threads] = str(error)
        runs = {}
        for planner, process in processes.items():
            runs[planner] = max(1, min(1000, round(options.turn_ms * 1e6 / min(process.time(2)))))
            rounds[planner] = []
        order = list(processes)
        for turn in range(options.rounds):
            for planner in order[turn % len(order):] + order[:turn % len(order)]:
                time.sleep(0.01)  # the one before may still be spinning
                rounds[planner].append(statistics.median(processes[planner].time(runs[planner])) / 1e6)
    finally:
        for process in processes.values():
            process.close()
    for planner, row in rows.items():
        mine = rounds.get(owner[planner])
        if mine and rounds.get(base):
            ratios = [a / b for a, b in zip(mine, rounds[base])]
            row.setdefault("measured", {})[threads] = {
                "ms": statistics.median(mine), "ratio": statistics.median(ratios), "lowest": quantile(ratios, 0.25),
                "highest": quantile(ratios, 0.75), "same_as": owner[planner]}


def row_text(name, planner, target, row, threads):
    cells = [name, planner, target, row["launches"], row["memory_bound"], row["barriers"],
             "%.1f" % (beyond(row["bytes"]) / 1e6), "%.1f" % (beyond(row["memory_bound_bytes"]) / 1e6),
             "%.3f" % row["estimate_ms"], "%.2f" % row["plan_seconds"]]
    for number in threads:
        found = row.get("measured", {}).get(number)
        cells.append("%.3f: %.2f (%.2f–%.2f)" % (found["ms"], found["ratio"], found["lowest"], found["highest"])
                     if found else "–")
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def print_ratios(results, against):
    print("\n| model | target | planner | memory-bound kernels | their bytes | (both as parts of %s) |" % against)
    print("|---|---|---|---:|---:|---|")
    ratios = {}
    for (name, target), rows in results.items():
        base = rows.get(against)
        for planner, row in rows.items():
            if base is None or planner == against or not base["memory_bound"]:
                continue
            ratio = row["memory_bound"] / base["memory_bound"]
            ratios.setdefault((target, planner), []).append(ratio)
            print("| %s | %s | %s | %.3f | %.3f | |" % (
                name, target, planner, ratio,
                beyond(row["memory_bound_bytes"]) / max(beyond(base["memory_bound_bytes"]), 1)))
    for (target, planner), all_of in ratios.items():
        print("| mean | %s | %s | %.3f | | worst %.3f |" % (target, planner, sum(all_of) / len(all_of), max(all_of)))


def print_measured(results, threads):
    """A row for each model: parts of dnnfusion's time, and what dnnfusion and `auto` take of the fastest planner's."""
    planners = list(dict.fromkeys(planner for rows in results.values() for planner in rows if planner != BASE))
    for number in threads:
        print("\n%d threads, parts of dnnfusion's time:\n" % number)
        heads = ["model", "target", "dnnfusion, ms", *planners, "fastest", "dnnfusion / fastest", "auto / fastest"]
        print("| " + " | ".join(heads) + " |")
        print("|---|---|---:|" + "---:|" * len(planners) + "---|---:|---:|")
        gains = {}
        for (name, target), rows in results.items():
            found = {planner: row["measured"][number] for planner, row in rows.items()
                     if number in row.get("measured", {})}
            if BASE not in found:
                continue
            ratio = {planner: one["ratio"] for planner, one in found.items()}
            fastest = min((planner for planner in ratio if planner != "auto"), key=ratio.get)
            cells = [name, target, "%.3f" % found[BASE]["ms"]]
            cells += ["%.2f" % ratio[planner] if planner in ratio else "–" for planner in planners]
            cells += [fastest, "%.3f" % (1 / ratio[fastest])]
            cells.append("%.3f" % (ratio["auto"] / ratio[fastest]) if "auto" in ratio else "–")
            print("| " + " | ".join(cells) + " |")
            for planner in ratio:
                gains.setdefault(planner, []).append(1 / ratio[planner])
            gains.setdefault("the fastest of each model", []).append(1 / ratio[fastest])
        for planner, all_of in gains.items():
            print("\n%s: dnnfusion's time by its own, geometric mean over %d models: %.3f, lowest %.3f" % (
                planner, len(all_of), statistics.geometric_mean(all_of), min(all_of)))


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--planners", default=PLANNERS)
    parser.add_argument("--target", action="append")
    parser.add_argument("--against", default="xla_like")
    parser.add_argument("--json")
    parser.add_argument("--compiler", type=pathlib.Path, default=ROOT / "build/release/bin/fusion-compile")
    parser.add_argument("--device", help="a device model, for the first target")
    parser.add_argument("--measure", type=lambda text: [int(word) for word in text.split(",")], default=[])
    parser.add_argument("--bundles", type=pathlib.Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-ms", type=float, default=100)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    options.target = options.target or ["cpu"]
    if options.measure and not options.bundles:
        parser.error("--measure keeps its bundles: name a folder with --bundles")
    if options.bundles:
        options.bundles.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse_arguments()
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    heads = ["model", "planner", "target", "launches", "memory-bound kernels", "barriers", "bytes, MB",
             "memory-bound bytes, MB", "estimate, ms", "planned in, s"]
    heads += [f"ms, {number} threads: of dnnfusion's" for number in options.measure]
    print("| " + " | ".join(heads) + " |")
    print("|---|---|---|" + "---:|" * (7 + len(options.measure)))
    results = {}
    for model in options.models:
        for target in options.target:
            measured = options.measure and ":" not in target
            rows = {}
            for planner in options.planners.split(","):
                try:
                    rows[planner] = (with_bundle if measured else plan_only)(options, model, target, planner)
                except Failed as error:
                    print("%s, %s, %s: %s" % (model.stem, target, planner, error), file=sys.stderr)
            if measured and not options.prepare and rows:
                for threads in options.measure:
                    time_bundles(options, model, rows, threads)
            for planner, row in rows.items():
                print(row_text(model.stem, planner, target, row, options.measure), flush=True)
            results[model.stem, target] = rows
    print_ratios(results, options.against)
    print_measured(results, options.measure)
    if options.json:
        plain = [{"model": name, "target": target, "planners": {
            planner: {key: value for key, value in row.items() if key not in ("code", "bundle")}
            for planner, row in rows.items()}} for (name, target), rows in results.items()]
        pathlib.Path(options.json).write_text(json.dumps(plain, indent=1) + "\n")


if __name__ == "__main__":
    main()
