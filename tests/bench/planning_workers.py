#!/usr/bin/env python3
"""Planning time with 1, 2, 4 simulated devices.

usage: planning_workers.py [options] MODEL.onnx ...

For each number of devices, this starts a fusiond with an empty state and without its local worker, and as many
simulated accelerators (worker/simulated), which take a fixed time for a measurement. The plan must be the same for all
numbers.
Needs Python's standard library only.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def plan_with(model, workers, options):
    import harness
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-planning-"))
    server = harness.Server(folder, "--no-local-worker")
    processes = []
    try:
        server.start()
        for n in range(workers):
            processes.append(server.start_worker("--name", f"sim{n}", "--kinds=sim",
                                                 f"--simulated-measurement={options.measurement}"))
        server.wait_until(lambda: len(server.workers()) == workers, "all workers are attached")
        bundle, report = folder / "out.fusion", folder / "report.json"
        arguments = [flag for dim in options.dim for flag in ("--dim", dim)]
        done = server.ctl("submit", model.resolve(), "-o", bundle, "--target", "sim", "--json", report, *arguments,
                          timeout=options.timeout)
        if done.code != 0:
            sys.exit(f"{model}: {done}\n{server.log_text()}")
        report = json.loads(report.read_text())
        with zipfile.ZipFile(bundle) as entries:
            plan = entries.read("plan.json")
        return {"workers": workers, "seconds": report["stages"]["plan"], "measured": report["measurement_tasks"],
                "nodes": report["nodes"], "kernels": report["kernels"]}, plan
    finally:
        for process in processes:
            process.terminate()
            process.wait()
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--bin", default=ROOT / "build/release/bin", help="where fusiond, fusion-worker, fusionctl lie")
    parser.add_argument("--workers", default="1,2,4", help="numbers of devices, the first is compared with")
    parser.add_argument("--measurement", default="200ms", help="what each takes")
    parser.add_argument("--dim", action="append", default=[], help="as for fusionctl submit")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one compilation")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    os.environ["FUSION_BIN"] = str(options.bin)
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    counts = [int(count) for count in options.workers.split(",")]
    figures = {}
    print("| model | nodes | " + " | ".join(f"{n}: measured, s" for n in counts) + " | "
          + " | ".join(f"{counts[0]} / {n}" for n in counts[1:]) + " |")
    print("|---|---:|" + "---:|" * (2 * len(counts) - 1))
    for model in options.models:
        runs, plans = zip(*(plan_with(model, n, options) for n in counts))
        if any(plan != plans[0] for plan in plans):
            sys.exit(f"{model}: the plans of {counts} devices differ")
        figures[model.stem] = runs
        print(f"| {model.stem} | {runs[0]['nodes']} | "
              + " | ".join(f"{run['measured']}, {run['seconds']:.1f}" for run in runs) + " | "
              + " | ".join(f"{runs[0]['seconds'] / run['seconds']:.2f}" for run in runs[1:]) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"measurement": options.measurement, "models": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
