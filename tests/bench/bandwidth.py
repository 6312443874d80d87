#!/usr/bin/env python3
"""How close memory-bound fusion blocks come to copying: bytes over time, as a share of memcpy's in the same rounds.

usage: bandwidth.py [options] [BLOCK ...]

Each block of memory_blocks.py is compiled at two sizes: one that fits into a core's second-level cache, and one far
beyond all caches. Bytes are counted from the graph: each input element that is needed counts once, and so does each
output element. In every round the kernels (their launches, without the call around them) and a copy of as many bytes on
as many threads take turns; a share is the median over rounds of the kernels' rate divided by the copy's. A block that
writes less than it reads may exceed 1. Copies are timed as loops on independent threads without a barrier.

Needs:  pip install numpy onnx
"""
import argparse
import json
import pathlib
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
from compare_peers import add_compiler_arguments, compile_model
from engines import EngineError
from fusion_runtime import FusionError, Session
from memory_blocks import BLOCKS

PAUSE_S = 0.02  # until the threads of the previous run stop spinning


def measure(bundle, moved_bytes, threads, probe, options):
    with Session(bundle, threads) as session:
        rng = np.random.default_rng(options.seed)
        some = rng.standard_normal(1 << 16, np.float32)  # many random numbers would take longer than the rest
        run, _ = session.bind({tensor.name: np.resize(some, tensor.shape) for tensor in session.inputs}, in_place=True)
        total_ns = lambda runs: [sum(launches) for launches in session.profile(run, runs)]
        runs = max(2, min(2000, round(options.turn_ms * 1e6 / min(total_ns(3)))))
        rates, copies = [], []
        for turn in range(options.rounds):
            def kernels():
                time.sleep(PAUSE_S)
                rates.append(moved_bytes / statistics.median(total_ns(1 + runs)[1:]))

            def copy():
                sample = probe.sample(threads, fma_ms=0, copy_ms=options.turn_ms, copy_bytes=moved_bytes)
                copies.append(2 * sample["copy_gb_per_s_median"])  # read and written

            for step in (kernels, copy)[::1 if turn % 2 else -1]:
                step()
        shares = [rate / copied for rate, copied in zip(rates, copies)]
        return {"threads": threads, "mbytes": moved_bytes / 1e6, "kernels": len(json.loads(session.describe())["launches"]),
                "us": moved_bytes / statistics.median(rates) / 1e3, "gb_per_s": statistics.median(rates),
                "copy_gb_per_s": statistics.median(copies), "share": statistics.median(shares), "lowest": min(shares),
                "highest": max(shares)}


def table(rows):
    lines = ["| block | size | MB moved | threads | kernels | µs | GB/s | copy GB/s | share of copy |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        lines.append("| {block} | {size} | {mbytes:.2f} | {threads} | {kernels} | {us:.1f} | {gb_per_s:.1f} | "
                     "{copy_gb_per_s:.1f} | {share:.2f} ({lowest:.2f}–{highest:.2f}) |".format(**row))
    return "\n".join(lines)


def summary(rows):
    lines = ["| size | threads | blocks | geometric mean | lowest |", "|---|---:|---:|---:|---:|"]
    for size, threads in dict.fromkeys((row["size"], row["threads"]) for row in rows):
        chosen = [row for row in rows if (row["size"], row["threads"]) == (size, threads)]
        worst = min(chosen, key=lambda row: row["share"])
        mean = statistics.geometric_mean(row["share"] for row in chosen)
        lines.append(f"| {size} | {threads} | {len(chosen)} | {mean:.2f} | {worst['share']:.2f} ({worst['block']}) |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="*", metavar="BLOCK", help=f"of {'; '.join(BLOCKS)} (default: all)")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2],
                        metavar="N,N", help="numbers of threads (default 1,2)")
    parser.add_argument("--cache-bytes", type=int, default=512 << 10,
                        help="moved by blocks that stay in the second-level cache (default 512 KiB)")
    parser.add_argument("--memory-bytes", type=int, default=192 << 20,
                        help="moved by blocks far beyond the caches (default 192 MiB)")
    add_compiler_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn-ms", type=int, default=50, help="about how long each runs in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything here as well")
    options = parser.parse_args()
    options.dim = []
    unknown = [name for name in options.blocks if name not in BLOCKS]
    if unknown:
        parser.error(f"no block {', '.join(unknown)}; there are {', '.join(BLOCKS)}")
    if not options.compiler.is_file():
        parser.error(f"no file {options.compiler}")
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        probe = machine.Probe(folder)
        for size, wanted_bytes in (("cache", options.cache_bytes), ("memory", options.memory_bytes)):
            for name in options.blocks or BLOCKS:
                print(f"{name}, {size} …", file=sys.stderr, flush=True)
                block = BLOCKS[name]
                count = block.rows_for(wanted_bytes)
                path = folder / f"{size}.onnx"
                onnx.save(block.model(count), path)
                try:
                    bundle = compile_model(path, folder, options)
                    rows += [{"block": name, "size": size, **measure(bundle, block.bytes(count), threads, probe, options)}
                             for threads in options.threads]
                    bundle.unlink()
                except (EngineError, FusionError) as error:
                    failures.append(f"{name}, {size}: {error}")
    about = machine.describe()
    print(f"{about['cpu']}, {about['cpus_usable']} CPUs, load {about['load_average']:.1f}; planner {options.planner}\n\n"
          f"{table(rows)}\n\n{summary(rows)}")
    for failure in failures:
        print(f"\nfailed: {failure}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "results": rows, "failures": failures}, indent=1) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
