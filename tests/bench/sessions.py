#!/usr/bin/env python3
"""Several models, and several callers, in one process: this project and onnxruntime.

usage: sessions.py [options] MODEL.onnx OTHER.onnx

It prints two tables. In the first, one caller runs the two models in turns, each in a session of its own. The table
gives the time of such a run relative to that of the model alone: 1.05 means that the other session makes it 5% slower.
Runs alone and in turns alternate, so that drift of the machine affects both. The same figures of onnxruntime are beside
them. The caches are shared in any case: models whose weights do not fit together take longer in turns with any runtime.

In the second, 1, 2 and 8 threads call one session of the first model as fast as they can, each with inputs and outputs
of its own. The table gives the runs per second of all callers, the median latency that a caller sees, the longest
latency, and the runs of the busiest caller divided by those of the least busy one (fairness: 1 is best).

Both bind inputs and outputs once and run on the caller's memory (fusion_run; onnxruntime's IO binding), with the same
number of threads. Each runtime is in a process of its own. Needs numpy and onnxruntime.
"""
import argparse
import importlib.util
import json
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
if importlib.util.find_spec("numpy") is None:
    sys.exit("numpy is missing: pip install numpy onnxruntime")
import machine
from compare_peers import add_compiler_arguments, compile_model, random_feeds
from engines import EngineError
from fusion_runtime import FusionError, Session

RUNTIMES = ("ours", "onnxruntime")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs=2, type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, default=2, help="of each session (default 2)")
    parser.add_argument("--callers", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2, 8],
                        metavar="N,N", help="numbers of concurrent callers (default 1,2,8)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-ms", type=float, default=300, help="how long each figure is taken in a round (default 300)")
    add_compiler_arguments(parser)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="binds a symbolic dimension")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--int-max", type=int, default=1000, help="random integers stay below (default 1000)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything here as well")
    return parser.parse_args()


class OursModel:
    def __init__(self, model, bundle, threads, feeds):
        self._session, self._feeds = Session(bundle, threads), feeds

    def caller(self):
        """A function that runs once, on memory that no other caller has."""
        return self._session.bind(self._feeds)[0]


class OnnxRuntimeModel:
    def __init__(self, model, bundle, threads, feeds):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        known = {value.name for value in self._session.get_inputs()}
        self._feeds = {name: value for name, value in feeds.items() if name in known}

    def caller(self):
        import onnxruntime
        binding = self._session.io_binding()
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in self._feeds.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        for output in self._session.get_outputs():
            binding.bind_output(output.name)
        self._session.run_with_iobinding(binding)
        for name, value in zip([o.name for o in self._session.get_outputs()], binding.get_outputs()):
            binding.bind_ortvalue_output(name, value)
        return lambda: self._session.run_with_iobinding(binding)


def timed(run):
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e6


def paired(callers, seconds):
    """[latencies in ms of each], the callers in turns."""
    latencies, end = [[] for _ in callers], time.monotonic() + seconds
    while time.monotonic() < end or not latencies[0]:
        for of_caller, run in zip(latencies, callers):
            of_caller.append(timed(run))
    return latencies


def at_once(callers, seconds):
    """[latencies in ms of each], each caller on a thread of its own until the time is over."""
    latencies, start = [[] for _ in callers], threading.Barrier(len(callers) + 1)

    def call(of_caller, run):
        start.wait()
        while time.monotonic() < end or not of_caller:
            of_caller.append(timed(run))

    threads = [threading.Thread(target=call, args=pair) for pair in zip(latencies, callers)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    start.wait()
    for thread in threads:
        thread.join()
    return latencies


def serve(runtime, jobs, options, pipe):
    try:
        kind = OursModel if runtime == "ours" else OnnxRuntimeModel
        models = [kind(*job) for job in jobs]
        callers = [model.caller() for model in models]
        many = [models[0].caller() for _ in range(max(options.callers))]
        for run in [*callers, *many]:
            run()
        while True:
            what, count = pipe.recv()
            seconds = options.turn_ms / 1e3
            if what == "alone":
                pipe.send([paired([run], seconds)[0] for run in callers])
            elif what == "turns":
                pipe.send(paired(callers, 2 * seconds))
            else:
                pipe.send(at_once(many[:count], seconds))
    except EOFError:
        pass


def measure(jobs, options):
    """{runtime: {"alone": [[ms] of a model], "turns": [[ms] of a model], "callers": {count: [[[ms] of a caller] of a round]}}}"""
    context, pipes, children = multiprocessing.get_context("spawn"), {}, []
    for runtime in RUNTIMES:
        pipes[runtime], theirs = context.Pipe()
        children.append(context.Process(target=serve, args=(runtime, jobs, options, theirs), daemon=True))
        children[-1].start()
        theirs.close()

    def ask(runtime, what, count=0):
        time.sleep(0.05)  # threads of the other runtime may still be spinning
        pipes[runtime].send((what, count))
        return pipes[runtime].recv()

    results = {runtime: {"ratios": [[], []], "alone": [[], []], "turns": [[], []],
                         "callers": {count: [] for count in options.callers}} for runtime in RUNTIMES}
    for turn in range(options.rounds):
        for runtime in RUNTIMES if turn % 2 == 0 else RUNTIMES[::-1]:
            result = results[runtime]
            alone, turns = ask(runtime, "alone"), ask(runtime, "turns")
            for model in range(2):
                result["alone"][model].append(statistics.median(alone[model]))
                result["turns"][model].append(statistics.median(turns[model]))
                result["ratios"][model].append(result["turns"][model][-1] / result["alone"][model][-1])
            for count in options.callers:
                result["callers"][count].append(ask(runtime, "callers", count))
    for child in children:
        child.kill()
    return results


def print_tables(names, results, options):
    print("| model | runtime | alone ms | in turns ms | in turns / alone (lowest–highest round) |\n|---|---|---:|---:|---:|")
    for model, name in enumerate(names):
        for runtime, result in results.items():
            ratios = result["ratios"][model]
            print(f"| {name} | {runtime} | {statistics.median(result['alone'][model]):.3f} | "
                  f"{statistics.median(result['turns'][model]):.3f} | {statistics.median(ratios):.2f} "
                  f"({min(ratios):.2f}–{max(ratios):.2f}) |")
    print(f"\n| callers of {names[0]} | runtime | runs/s | median ms | longest ms | busiest / least busy caller |\n"
          "|---:|---|---:|---:|---:|---:|")
    for count in options.callers:
        for runtime, result in results.items():
            rounds = result["callers"][count]
            rates = [1e3 * sum(len(ms) for ms in callers) / max(sum(ms) for ms in callers) for callers in rounds]
            every = [value for callers in rounds for ms in callers for value in ms]
            shares = [max(map(len, callers)) / min(map(len, callers)) for callers in rounds]
            print(f"| {count} | {runtime} | {statistics.median(rates):.0f} | {statistics.median(every):.3f} | "
                  f"{max(every):.3f} | {statistics.median(shares):.2f} |")


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        jobs = []
        try:
            for model in options.models:
                bundle = compile_model(model, pathlib.Path(scratch), options)
                with Session(bundle, 1) as session:
                    jobs.append((str(model), str(bundle), options.threads, random_feeds(session.inputs, options)))
            results = measure(jobs, options)
        except (EngineError, FusionError, EOFError) as error:
            sys.exit(f"sessions.py: {error or 'a runtime died'}")
    about = machine.describe()
    print(f"{about['cpu']}, {about['cpus_usable']} CPUs, load {about['load_average']:.1f}; {options.threads} threads\n")
    print_tables([model.stem for model in options.models], results, options)
    if options.json:
        options.json.write_text(json.dumps({"machine": about, "threads": options.threads, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
