#!/usr/bin/env python3
"""Where depth-first schedules could pay on a CPU: what each kernel of a model takes beside its arithmetic at the
machine's peak, and what it moves past the second-level cache beside what the model has to move at least.

usage: headroom.py [--compiler build/release/bin/fusion-compile] [--ctl build/release/bin/fusionctl]
                   [--device MODEL.json] [--threads 1] [--l2-kib N] [--bundles DIR] [--kernels N]
                   [--cachegrind build/release/bin/run_bundle_example] [--rounds 3]
                   [--out docs/benchmarks/headroom.md] MODEL.onnx …

For each model it compiles a bundle (kept in --bundles), times its kernels (the median of --rounds runs of `fusionctl
bench --per-kernel`), and prints a row:

- time, and the share of it in kernels below 85% of the multiply-add peak, which is measured before each model
  (machine_probe.cc);
- MB past L2 now: the arguments of each launch that an L2 which keeps what was used last does not hold. What a kernel
  reads again beyond its L2 is not in it. With --cachegrind a second column has all misses of a simulated cache of that
  size, in one run of the bundle; that needs valgrind and a bundle without AVX-512 (--device of an AVX2 processor);
- MB past L2 at least: the model's inputs, outputs and weights, once each;
- the most that depth first could gain: in kernels below 85% of the peak, the time beyond the arithmetic, but no more
  than the bytes that need not move take at the rate of copies beyond the caches.

--kernels N also prints the N kernels of each model with the most to gain. Times mean something on a quiet machine only:
about 3 s a round for each model, and what it takes to compile it. Needs Python's standard library and clang or g++.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from machine import Probe, describe

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLOW = 0.85  # of the peak, below which a kernel is looked at
LINE_BYTES = 64

Kernel = collections.namedtuple("Kernel", "label us flops now least")


def past_l2(program, l2_bytes):
    """By launch: bytes of arguments that come from, or go, beyond the L2, and those that must. The cache holds whole
    buffers, the ones that were used last; a result goes past it when it is pushed out, which counts for the launch that
    made it."""
    buffers, launches = program["buffers"], program["launches"]
    now, least = [0] * len(launches), [0] * len(launches)
    writer, held, seen = {}, collections.OrderedDict(), set()
    outputs = {binding["buffer"] for binding in program["outputs"]}

    def push_out(limit):
        while sum(held.values()) > limit:
            buffer, size = held.popitem(last=False)
            if buffer in writer:
                now[writer.pop(buffer)] += size

    for number, launch in enumerate(launches):
        arguments = [launch["buffers"], *launch.get("others", [])]
        for buffer in dict.fromkeys(buffer for set_ in arguments for buffer in set_):
            size, kind = buffers[buffer]["size_bytes"], buffers[buffer]["kind"]
            made = buffer not in seen and kind in ("arena", "output")
            if not made and buffer not in held:
                now[number] += size
            if buffer not in seen and kind != "arena":
                least[number] += size
            seen.add(buffer)
            held.pop(buffer, None)
            held[buffer] = size
            if made:
                writer[buffer] = number
            push_out(l2_bytes)
    for buffer, number in writer.items():
        if buffer in outputs:
            now[number] += buffers[buffer]["size_bytes"]
    return now, least


def gain_us(kernel, peak_flops, copy_bytes):
    """Microseconds that a kernel could lose if it moved no more than it must."""
    arithmetic = kernel.flops / peak_flops * 1e6
    if kernel.us <= 0 or arithmetic > SLOW * kernel.us:
        return 0
    return min(kernel.us - arithmetic, max(0, kernel.now - kernel.least) / copy_bytes * 1e6)


def misses(options, bundle):
    """Bytes that one run of the bundle misses in a simulated cache of the L2's size; less what loading it misses."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "cachegrind.out")
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--LL={options.l2_kib << 10},16,{LINE_BYTES}",
                   f"--cachegrind-out-file={out}", options.cachegrind, bundle]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              env={**os.environ, "FUSION_THREADS": "1"})
        if done.returncode != 0:
            return None
        return kernel_misses(out.read_text(), bundle) * LINE_BYTES


def kernel_misses(text, bundle):
    """Last-level data misses of the functions that are kernels of the bundle."""
    with zipfile.ZipFile(bundle) as entries:
        manifest = json.loads(entries.read("manifest.json"))
    symbols = {phase["symbol"] for kernel in manifest["kernels"] for phase in kernel["phases"]}
    events, wanted, total = [], False, 0
    for line in text.splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fn="):
            wanted = line[3:].split("(")[0] in symbols
        elif wanted and line[:1].isdigit():
            counts = dict(zip(events, map(int, line.split()[1:])))
            total += counts.get("DLmr", 0) + counts.get("DLmw", 0)
    return total


def l2_kib():
    path = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    return int(path.read_text().strip().rstrip("K")) if path.is_file() else 1024


def compiled(options, model):
    bundle = options.bundles / f"{model.stem}.fusion"
    if bundle.is_file() and bundle.stat().st_mtime > max(model.stat().st_mtime, options.compiler.stat().st_mtime):
        return bundle
    command = [options.compiler, model, bundle, *(["--device", options.device] if options.device else [])]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return bundle


def timed(options, bundle):
    """The report of `fusionctl bench` with the least time, of several rounds."""
    best = None
    for _ in range(options.rounds):
        command = [options.ctl, "bench", bundle, "--threads", options.threads, "--per-kernel", "-o", "json"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        report = json.loads(done.stdout)
        if best is None or report["median_ms"] < best["median_ms"]:
            best = report
    return best


def kernels_of(options, bundle):
    report = timed(options, bundle)
    with zipfile.ZipFile(bundle) as entries:
        manifest = json.loads(entries.read("manifest.json"))
    now, least = past_l2(manifest, options.l2_kib << 10)
    return [Kernel(one["label"], one["median_us"], one["gflops_per_s"] * 1e3 * one["median_us"], now[n], least[n])
            for n, one in enumerate(report["per_kernel"])]


def row(name, kernels, peak_flops, copy_bytes, missed):
    total = sum(kernel.us for kernel in kernels)
    slow = sum(kernel.us for kernel in kernels if kernel.flops / peak_flops * 1e6 <= SLOW * kernel.us)
    gain = sum(gain_us(kernel, peak_flops, copy_bytes) for kernel in kernels)
    share = sum(kernel.flops for kernel in kernels) / peak_flops * 1e6 / total
    simulated = "" if missed is None else f"{missed / 1e6:.1f}"
    return (f"| {name} | {total / 1e3:.2f} | {len(kernels)} | {share:.2f} | {slow / total:.0%} | "
            f"{sum(kernel.now for kernel in kernels) / 1e6:.1f} | {simulated} | "
            f"{sum(kernel.least for kernel in kernels) / 1e6:.1f} | {gain / total:.1%} |")


def details(kernels, peak_flops, copy_bytes, count):
    lines = ["", "| kernel | µs | of the peak | MB past L2 | at least | could gain, µs |",
             "|---|---:|---:|---:|---:|---:|"]
    for kernel in sorted(kernels, key=lambda k: -gain_us(k, peak_flops, copy_bytes))[:count]:
        share = kernel.flops / peak_flops * 1e6 / kernel.us
        lines.append(f"| {kernel.label} | {kernel.us:.1f} | {share:.2f} | {kernel.now / 1e6:.2f} | "
                     f"{kernel.least / 1e6:.2f} | {gain_us(kernel, peak_flops, copy_bytes):.1f} |")
    return lines + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--compiler", type=pathlib.Path, default=ROOT / "build/release/bin/fusion-compile")
    parser.add_argument("--ctl", type=pathlib.Path, default=ROOT / "build/release/bin/fusionctl")
    parser.add_argument("--device", help="a device model, instead of this machine's")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--l2-kib", type=int, default=l2_kib(), help="by default the L2 of processor 0")
    parser.add_argument("--bundles", type=pathlib.Path, help="where bundles are kept; by default they are not")
    parser.add_argument("--kernels", type=int, default=0, help="print this many kernels of each model")
    parser.add_argument("--cachegrind", help="run_bundle_example, with which misses are counted too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="a page in which the text between two marks `<!-- headroom -->` is replaced")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.bundles = options.bundles or pathlib.Path(folder)
        options.bundles.mkdir(parents=True, exist_ok=True)
        probe = Probe(folder)
        machine = describe()
        text = [f"{machine['cpu']}, {options.threads} thread(s), L2 of {options.l2_kib} KiB, "
                f"load {machine['load_average']:.1f}", "",
                "| model | ms | kernels | of the peak | time below 85% | MB past L2 | misses, MB | at least, MB | "
                "could gain at most |",
                "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
        print("\n".join(text), flush=True)
        more = []
        for model in options.models:
            try:
                bundle = compiled(options, model)
                rates = probe.sample(options.threads, fma_ms=200, copy_ms=200)
                peak_flops, copy_bytes = rates["fma_gflops"] * 1e9, rates["copy_gb_per_s"] * 1e9
                kernels = kernels_of(options, bundle)
                missed = misses(options, bundle) if options.cachegrind else None
                text.append(row(model.stem, kernels, peak_flops, copy_bytes, missed))
                if options.kernels:
                    more += ["", f"{model.stem}:", *details(kernels, peak_flops, copy_bytes, options.kernels)]
            except RuntimeError as error:
                text.append(f"| {model.stem} | {error} |")
            print(text[-1], flush=True)
    text += more
    print("\n".join(more))
    if options.out:
        page = pathlib.Path(options.out)
        begin, _, end = page.read_text().split("<!-- headroom -->")
        page.write_text(f"{begin}<!-- headroom -->\n" + "\n".join(text) + f"\n<!-- headroom -->{end}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
