#!/usr/bin/env python3
"""How far the cost model is from what kernels take in the models that they belong to, and where it errs most.

usage: cost_model.py [--ctl build/release/bin/fusionctl] [--threads 1] [--least-us 20] [--kernels N] BUNDLE.fusion …

Times each bundle's kernels (`fusionctl bench --per-kernel`) and compares them with the estimates of its plan. Prints, over
all kernels and over whole models: the rank correlation (Spearman's), the median of measured / estimated, the median
error that is left after this calibration, and the factor within which nine of ten calibrated estimates lie; once for all
kernels, and once for those that take --least-us or more. Then it prints the N groups of equal kernels that lose most of
their model's time beside the calibrated estimate: a kernel that takes much longer is one that the planner did not see
coming, or one that could be faster.

Bundles whose launches are not one for each fusion block (loops, batches) are left out, and named. Times mean something on
a quiet machine only. Needs Python's standard library.
"""
import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import sys
import zipfile

from machine import describe

ROOT = pathlib.Path(__file__).resolve().parents[2]

Kernel = collections.namedtuple("Kernel", "model label us estimate_us gflops tasks scratch share")


def ranks(values):
    """The rank of each value, ties at their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for at in order[first:last + 1]:
            rank[at] = (first + last) / 2
        first = last + 1
    return rank


def rank_correlation(a, b):
    """Spearman's; 0 where one side has no order."""
    return statistics.correlation(ranks(a), ranks(b)) if len(set(a)) > 1 and len(set(b)) > 1 else 0.0


def summary(pairs):
    """(estimated, measured) times -> (rank correlation, median ratio, median error, factor of nine of ten)."""
    ratios = [measured / estimated for estimated, measured in pairs]
    median = statistics.median(ratios)
    errors = sorted(abs(median / ratio - 1) for ratio in ratios)
    factors = sorted(max(ratio / median, median / ratio) for ratio in ratios)
    correlation = rank_correlation([e for e, _ in pairs], [m for _, m in pairs])
    return correlation, median, statistics.median(errors), factors[min(len(factors) - 1, math.ceil(0.9 * len(factors)) - 1)]


def kernels_of(bundle, ctl, threads):
    """The kernels of a bundle, or None where launches and fusion blocks differ in number."""
    with zipfile.ZipFile(bundle) as archive:
        blocks = json.loads(archive.read("plan.json"))["fusion_blocks"]
    command = [ctl, "bench", bundle, "--threads", str(threads), "--per-kernel", "-o", "json"]
    launches = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["per_kernel"]
    if len(launches) != len(blocks):
        return None
    total = sum(launch["median_us"] for launch in launches)
    return [
        Kernel(bundle.name.split(".")[0], launch["label"], launch["median_us"], block["estimate_ns"] / 1e3,
               launch["gflops_per_s"], block["tasks"], block["scratch_bytes"], launch["median_us"] / total)
        for launch, block in zip(launches, blocks) if launch["median_us"] > 0 and block["estimate_ns"] > 0
    ]


def print_summary(kernels, least_us):
    models = collections.defaultdict(lambda: [0.0, 0.0])
    for kernel in kernels:
        models[kernel.model][0] += kernel.estimate_us
        models[kernel.model][1] += kernel.us
    long = [kernel for kernel in kernels if kernel.us >= least_us]
    print("| of | number | rank correlation | measured / estimated | median error then | nine of ten within |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, pairs in (("kernels", [(k.estimate_us, k.us) for k in kernels]),
                        (f"kernels of {least_us:g} µs and more", [(k.estimate_us, k.us) for k in long]),
                        ("models", [tuple(times) for times in models.values()])):
        if not pairs:
            continue
        correlation, median, error, factor = summary(pairs)
        print(f"| {name} | {len(pairs)} | {correlation:.3f} | {median:.2f} | {100 * error:.1f}% | {factor:.2f} |")


def print_worst(kernels, count):
    median = statistics.median(kernel.us / kernel.estimate_us for kernel in kernels)
    groups = collections.defaultdict(list)
    for kernel in kernels:
        groups[(kernel.model, kernel.label, kernel.tasks, kernel.scratch)].append(kernel)

    def lost(group):
        return sum(kernel.share * (1 - median * kernel.estimate_us / kernel.us) for kernel in group)

    print("\n| model | kernels | share of the model lost | measured / calibrated | µs each | GFLOP/s | tasks | scratch | what |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for group in sorted(groups.values(), key=lost, reverse=True)[:count]:
        one = group[0]
        us = statistics.mean(kernel.us for kernel in group)
        ratio = us / (median * statistics.mean(kernel.estimate_us for kernel in group))
        gflops = statistics.median(kernel.gflops for kernel in group)
        print(f"| {one.model} | {len(group)} | {100 * lost(group):.1f}% | {ratio:.2f} | {us:.1f} | {gflops:.1f} | "
              f"{one.tasks} | {one.scratch} | {one.label} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", type=pathlib.Path, metavar="BUNDLE.fusion")
    parser.add_argument("--ctl", default=ROOT / "build/release/bin/fusionctl", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--least-us", type=float, default=20)
    parser.add_argument("--kernels", type=int, default=0, metavar="N")
    args = parser.parse_args()
    kernels, left_out = [], []
    for bundle in args.bundles:
        print(bundle.name, file=sys.stderr, flush=True)
        found = kernels_of(bundle, args.ctl, args.threads)
        if found is None:
            left_out.append(bundle.name)
        else:
            kernels += found
    machine = describe()
    print(f"{machine['cpu']}, {machine['cpus_usable']} CPUs, load {machine['load_average']:.1f}; {args.threads} threads\n")
    print_summary(kernels, args.least_us)
    if args.kernels and kernels:
        print_worst(kernels, args.kernels)
    if left_out:
        print("\nLeft out: " + ", ".join(left_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
