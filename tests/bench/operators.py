#!/usr/bin/env python3
"""Single operators, this project against onnxruntime: finds those that are far slower than they should be.

usage: operators.py [options] [NAME-REGEX]

Each case of operator_cases.py becomes a model of its own. Each engine has a process of its own, and its buffers are
bound before the clock starts: this project uses the session's own memory, so that the time is that of the kernels and
their launches, without the copies of fusion_run; onnxruntime uses its IO binding. Both count subnormals as zero and use
the same number of threads. They take turns, and each round begins with the other one. A ratio is the median over rounds
of theirs / ours (above 1: ours is faster). The ratio of the fastest runs shows what a busy machine hides; --by-fastest
judges by it. Operators that are faster than --least-us in both engines are timed but do not count, because their times
compare the clock and the callers. Outputs are compared, too.

Bundles are compiled before anything is timed, with --jobs processes, and kept in --bundles; those that are newer than
the compiler are used again.

--avx2 compares both on AVX2, on a machine that has AVX-512, too: bundles are made for avx2.json with the caches of
this machine, and onnxruntime's process is told that the processor has no more than that (hide_avx512.c, built on the
spot; Linux on x86-64).

--exact lets onnxruntime compute products of bytes exactly (session.x64quantprecision). Without VNNI its default adds
two products in 16 bits and cuts off what does not fit, which is a wrong result, and faster.

Needs:  pip install numpy onnx onnxruntime
"""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
try:
    import numpy as np
    import onnx
except ImportError:
    sys.exit("numpy and onnx are needed: pip install numpy onnx onnxruntime")
import avx2
import machine
from fusion_runtime import FusionError, Session
from operator_cases import all_cases

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build/release"
PAUSE_S = 0.05  # until threads of the previous engine stop spinning: onnxruntime's spin for some 20 ms
EXACT = "OPERATORS_EXACT"  # in the environment of onnxruntime's process
TOLERANCE = 1e-3  # of the largest value; sums are taken in other orders


class Ours:
    def __init__(self, _model, bundle, threads, feeds):
        self._session = Session(bundle, threads)
        self.run, self.outputs = self._session.bind(feeds, in_place=True)
        self.names = [tensor.name for tensor in self._session.outputs]

    def made(self):
        return self._session.made(self.outputs)

    def close(self):
        self.outputs = []
        self._session.close()


def apart(arrays):
    """Copies of the arrays in one block of memory, placed as the runtime places a session's buffers: at multiples of 64
    bytes, and large ones not at the same place within a page, where stores would delay loads of other arrays."""
    page, stagger, large = 4096, 1600, 64 << 10
    begins, end = [], 0
    for array in arrays:
        begins.append(end)
        size = array.nbytes + 64
        end += -(-size // 64) * 64 if size < large else -(-(size - stagger) // page) * page + stagger
    block = np.empty(end + page, np.uint8)
    first = -block.ctypes.data % page
    placed = []
    for array, begin in zip(arrays, begins):
        room = block[first + begin:first + begin + array.nbytes].view(array.dtype).reshape(array.shape)
        room[...] = array
        placed.append(room)
    return placed


class OnnxRuntime:
    def __init__(self, model, _bundle, threads, feeds):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        if os.environ.get(EXACT):
            options.add_session_config_entry("session.x64quantprecision", "1")
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.names = [value.name for value in session.get_outputs()]
        # Outputs live in memory that is bound once.
        arrays = apart([*feeds.values(), *session.run(None, feeds)])
        self.outputs = arrays[len(feeds):]
        self._values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in arrays]
        binding = session.io_binding()
        for name, value in zip(feeds, self._values):
            binding.bind_ortvalue_input(name, value)
        for name, value in zip(self.names, self._values[len(feeds):]):
            binding.bind_ortvalue_output(name, value)
        self.run = lambda: session.run_with_iobinding(binding)

    def made(self):
        return self.outputs

    def close(self):
        self.run = None


def serve(engine_class, pipe):
    """Answers (what, argument) until the pipe closes: open a case, time its runs, give its outputs."""
    engine = None
    while True:
        try:
            what, argument = pipe.recv()
        except EOFError:
            return
        try:
            if what == "open":
                if engine is not None:
                    engine.close()
                engine = None
                engine = engine_class(*argument)
                engine.run()
                answer = None
            elif what == "outputs":
                answer = {name: np.array(value) for name, value in zip(engine.names, engine.made())}
            else:
                answer = []
                for _ in range(argument + 1):
                    start = time.perf_counter_ns()
                    engine.run()
                    answer.append(time.perf_counter_ns() - start)
                answer = answer[1:]
            pipe.send((True, answer))
        except Exception as error:  # the parent reports it, whatever it is
            pipe.send((False, str(error)))


class Engine:
    """A child process that runs case after case; one that dies is started again."""

    def __init__(self, engine_class, environment=None):
        self._class, self.name, self._environment = engine_class, engine_class.__name__, environment or {}
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=serve, args=(self._class, theirs), daemon=True)
        with avx2.applied(self._environment):
            self._child.start()
        theirs.close()

    def ask(self, what, argument=None, timeout_s=120):
        try:
            self._pipe.send((what, argument))
            if not self._pipe.poll(timeout_s):
                raise EOFError
            ok, value = self._pipe.recv()
        except (EOFError, OSError):
            self._child.kill()
            self._child.join()
            self._start()
            raise RuntimeError(f"{self.name} died or hung") from None
        if not ok:
            raise RuntimeError(f"{self.name}: {value[:300]}")
        return value


def environment_of_onnxruntime(options, folder):
    environment = {EXACT: "1"} if options.exact else {}
    return environment | avx2.environment(folder, ["onnxruntime"]) if options.avx2 else environment


def compile_case(case, folder, options):
    """(.onnx, .fusion), or raises RuntimeError with what the compiler said."""
    stem = re.sub(r"[^\w.-]+", "_", case.name)
    model, bundle = folder / f"{stem}.onnx", folder / f"{stem}.fusion"
    content = case.model().SerializeToString()
    if not model.is_file() or model.read_bytes() != content:
        model.write_bytes(content)
        bundle.unlink(missing_ok=True)
    if not bundle.is_file() or bundle.stat().st_mtime < options.compiler.stat().st_mtime:
        device = ["--device", str(options.device)] if options.device else []
        done = subprocess.run([str(options.compiler), str(model), str(bundle), *device], capture_output=True, text=True)
        if done.returncode:
            bundle.unlink(missing_ok=True)
            raise RuntimeError(f"{options.compiler.name}: {(done.stderr or done.stdout).strip()[-300:]}")
    return model, bundle


def compare(case, model, bundle, engines, options):
    """One row."""
    feeds = case.feeds(options.seed)
    for engine in engines.values():
        engine.ask("open", (str(model), str(bundle), options.threads, feeds))
    ours, theirs = (engine.ask("outputs") for engine in engines.values())
    gap = max((relative_gap(ours[name], theirs[name]) for name in theirs), default=0)
    runs = {}
    for name, engine in engines.items():
        first = statistics.median(engine.ask("time", 3))
        runs[name] = max(1, min(2000, round(options.turn_ms * 1e6 / first)))
    rounds, names, fastest = {name: [] for name in engines}, list(engines), dict.fromkeys(engines, float("inf"))
    for turn in range(options.rounds):
        for name in names[turn % 2:] + names[:turn % 2]:
            time.sleep(PAUSE_S)
            latencies = engines[name].ask("time", runs[name])
            rounds[name].append(statistics.median(latencies))
            fastest[name] = min(fastest[name], *latencies)
    ratios = [their / our for our, their in zip(rounds["ours"], rounds["onnxruntime"])]
    return {"name": case.name, "family": case.family, "ours_us": statistics.median(rounds["ours"]) / 1e3,
            "onnxruntime_us": statistics.median(rounds["onnxruntime"]) / 1e3, "ratio": statistics.median(ratios),
            "lowest": min(ratios), "highest": max(ratios),
            "fastest_ratio": fastest["onnxruntime"] / fastest["ours"], "gap": gap, "wrong": not gap <= TOLERANCE}


def relative_gap(ours, theirs):
    """Largest difference over the largest finite magnitude; infinite where kinds or shapes differ."""
    if ours.shape != theirs.shape:
        return float("inf")
    if theirs.dtype == np.uint8 and ours.dtype == np.uint8 or theirs.dtype == np.int8:
        return 0.0 if np.abs(ours.astype(int) - theirs.astype(int)).max(initial=0) <= 1 else float("inf")
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True) or not np.isfinite(ours[finite]).all():
        return float("inf")
    largest = np.abs(theirs[finite]).max(initial=0)
    return float(np.abs(ours[finite] - theirs[finite]).max(initial=0) / (largest or 1))


def summary(rows, options):
    counted = [row for row in rows if max(row["ours_us"], row["onnxruntime_us"]) >= options.least_us]
    lines = ["| family | cases | geometric mean | below 0.8 | below 1.0 | lowest |", "|---|---:|---:|---:|---:|---|"]
    for family in [*dict.fromkeys(row["family"] for row in rows), "all"]:
        chosen = [row for row in counted if family in (row["family"], "all")]
        if chosen:
            worst = min(chosen, key=lambda row: row[options.judge])
            below = lambda bound: sum(row[options.judge] < bound for row in chosen)
            lines.append(f"| {family} | {len(chosen)} | {statistics.geometric_mean(row[options.judge] for row in chosen):.2f} | {below(0.8)} | "
                         f"{below(1.0)} | {worst[options.judge]:.2f} {worst['name']} |")
    if len(counted) < len(rows):
        lines.append(f"\n{len(rows) - len(counted)} cases take less than {options.least_us} µs in both engines and are not counted")
    return "\n".join(lines)


def table(rows, judge):
    lines = ["| case | ours µs | onnxruntime µs | onnxruntime / ours | of fastest runs | difference |", "|---|---:|---:|---:|---:|---:|"]
    for row in sorted(rows, key=lambda row: row[judge]):
        lines.append(f"| {row['name']} | {row['ours_us']:.1f} | {row['onnxruntime_us']:.1f} | {row['ratio']:.2f} "
                     f"({row['lowest']:.2f}–{row['highest']:.2f}) | {row['fastest_ratio']:.2f} | {'WRONG ' if row['wrong'] else ''}{row['gap']:.0e} |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="?", type=re.compile, default=re.compile(""), metavar="NAME-REGEX",
                        help="cases whose family and name match: '^pooling', 'Softmax.*×5', 'between$'")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--compile-only", action="store_true", help="fill --bundles and stop")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compiler", type=pathlib.Path, default=BUILD / "bin/fusion-compile")
    parser.add_argument("--device", type=pathlib.Path, metavar="MODEL.json", help="device model for the compiler")
    parser.add_argument("--avx2", action="store_true", help="both on AVX2, whatever more the processor has")
    parser.add_argument("--exact", action="store_true", help="onnxruntime's products of bytes exact, too")
    parser.add_argument("--bundles", type=pathlib.Path, metavar="DIR", help="keep models and bundles here")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time (default 2)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn-ms", type=float, default=15, help="about how long an engine runs in a round")
    parser.add_argument("--least-us", type=float, default=10, help="cases faster than this in both do not count (default 10)")
    parser.add_argument("--by-fastest", action="store_true", help="sort and count by the fastest runs: for a busy machine")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every row here as well")
    options = parser.parse_args()
    options.judge = "fastest_ratio" if options.by_fastest else "ratio"
    return options


def main():
    options = parse_arguments()
    cases = [case for case in all_cases() if options.only.search(f"{case.family} {case.name}")]
    if options.list or not cases:
        print("\n".join(f"{case.family}: {case.name}" for case in cases) or "no case matches")
        return 0 if cases else 1
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.bundles or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.avx2 and not options.device:
            options.device = avx2.device(folder)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            made = [(case, pool.submit(compile_case, case, folder, options)) for case in cases]
        engines = {} if options.compile_only else {
            "ours": Engine(Ours), "onnxruntime": Engine(OnnxRuntime, environment_of_onnxruntime(options, scratch))}
        for number, (case, paths) in enumerate(made):
            try:
                model, bundle = paths.result()
                if engines:
                    if sys.stderr.isatty():
                        print(f"\r{number + 1} of {len(cases)}", end="", file=sys.stderr, flush=True)
                    rows.append(compare(case, model, bundle, engines, options))
            except (RuntimeError, FusionError) as error:
                failures.append(f"{case.name}: {error}")
    if rows:
        about = machine.describe()
        print(f"{about['cpu']}, {about['cpus_usable']} CPUs, load {about['load_average']:.1f}; {options.threads} threads\n\n"
              f"{table(rows, options.judge)}\n\n{summary(rows, options)}")
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine.describe(), "results": rows, "failures": failures}, indent=1) + "\n")
    return 1 if failures or any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
