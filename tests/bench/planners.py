#!/usr/bin/env python3
"""Planners side by side on models, without a device: kernels, barriers, bytes, estimates and planning time.

usage: planners.py [--planners none,dnnfusion,…] [--target cpu] [--against xla_like] [--json FILE]
                   [--compiler build/release/bin/fusion-compile] MODEL.onnx …

The cost model answers what planners would measure. Kernels are those of plan.json; "memory-bound" are kernels without a
product or a routine, and the bytes of the last but one column are what these move between kernels: everything but what stays
in the nearest level. Prints a Markdown table, and the ratios of memory-bound kernels and of their bytes to one planner. Needs
Python's standard library only.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANNERS = "none,tvm_like,xla_like,dnnfusion,fusion_stitching"


def account(plan, report):
    """What one planner made of a model: plan.json, and the account of the compilation."""
    kernels = [block for block in plan["fusion_blocks"] if block.get("kernel", True)]
    memory_bound = [block for block in kernels if block["memory_intensive"]]
    levels = {}
    for block in kernels:
        for level, count in block["bytes"].items():
            levels[level] = levels.get(level, 0) + count
    return {
        "launches": report["kernels"],
        "kernels": len(kernels),
        "memory_bound": len(memory_bound),
        "barriers": sum(block["phases"] - 1 for block in kernels),
        "bytes": levels,
        "memory_bound_bytes": {level: sum(block["bytes"].get(level, 0) for block in memory_bound) for level in levels},
        "estimate_ms": sum(block["estimate_ns"] for block in kernels) / 1e6,
        "plan_seconds": report["stages"].get("plan", 0),
    }


def between(row, nearest):
    """Bytes that memory-bound kernels read and write beyond a task's own memory."""
    return sum(count for level, count in row["memory_bound_bytes"].items() if level not in nearest)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--planners", default=PLANNERS)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--against", default="xla_like")
    parser.add_argument("--json")
    parser.add_argument("--compiler", default=ROOT / "build/release/bin/fusion-compile")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    # A value that stays in a task's own memory is handed over inside a kernel.
    nearest = ("L1", "shared", "local")
    print("| model | planner | launches | memory-bound kernels | barriers | their bytes, MB | estimate, ms | planned in, s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        plan_file, report_file = pathlib.Path(folder) / "plan.json", pathlib.Path(folder) / "report.json"
        for model in options.models:
            name = pathlib.Path(model).stem
            for planner in options.planners.split(","):
                run = subprocess.run([options.compiler, model, plan_file, "--plan", "--planner", planner, "--target",
                                      options.target, "--json", report_file], capture_output=True, text=True)
                if run.returncode != 0:
                    print("%s, %s: %s" % (name, planner, run.stderr.strip().splitlines()[-1]), file=sys.stderr)
                    continue
                row = account(json.loads(plan_file.read_text()), json.loads(report_file.read_text()))
                results.setdefault(name, {})[planner] = row
                print("| %s | %s | %d | %d | %d | %.1f | %.3f | %.2f |" % (
                    name, planner, row["launches"], row["memory_bound"], row["barriers"], between(row, nearest) / 1e6,
                    row["estimate_ms"], row["plan_seconds"]), flush=True)
    print("\n| model | planner | memory-bound kernels | their bytes | (both as parts of %s) |" % options.against)
    print("|---|---|---:|---:|---|")
    ratios = {}
    for name, rows in results.items():
        base = rows.get(options.against)
        for planner, row in rows.items():
            if base is None or planner == options.against or not base["memory_bound"]:
                continue
            ratio = row["memory_bound"] / base["memory_bound"]
            ratios.setdefault(planner, []).append(ratio)
            print("| %s | %s | %.3f | %.3f | |" % (name, planner, ratio, between(row, nearest) / max(between(base, nearest), 1)))
    for planner, all_of in ratios.items():
        print("| mean | %s | %.3f | | worst %.3f |" % (planner, sum(all_of) / len(all_of), max(all_of)))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
