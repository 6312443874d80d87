#!/usr/bin/env python3
"""How long a submission takes: with an empty profile database, with one that knows the model's kernels, and repeated.

usage: compile_time.py [options] MODEL.onnx ...

The output has the form of DNNFusion's Figure 9b. Each model is submitted to a fusiond with an empty state and its local
worker ("cold"); its measurements are imported by a second fusiond with an empty state, to which the model is submitted
("database", 0 measurement tasks) and submitted again with the bundle removed ("identical"). Seconds are those of the
whole `fusionctl submit`, upload and download included, checks of the finished bundle left out. Needs Python's standard library only.
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

STAGES = ["import", "simplify", "rewrite", "layout", "plan", "tune", "lower", "build", "write"]


def submit(server, model, folder, options):
    """(seconds, report)"""
    bundle, report = folder / "out.fusion", folder / "report.json"
    bundle.unlink(missing_ok=True)
    start = time.monotonic()
    done = server.ctl("submit", model, "-o", bundle, "--json", report, *options.submit, timeout=options.timeout)
    seconds = time.monotonic() - start
    if done.code:
        sys.exit(f"{model}: {done}\n{server.log_text()}")
    return seconds, json.loads(report.read_text())


def with_server(folder, work):
    import harness
    folder.mkdir()
    server = harness.Server(folder)
    try:
        server.start()
        return work(server)
    finally:
        server.stop()


def examine(model, options):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-compile-time-"))
    profile = folder / "profile.json"

    def first(server):
        row = submit(server, model, folder, options)
        done = server.ctl("profile", "export", profile)
        if done.code:
            sys.exit(str(done))
        return row

    def second(server):
        done = server.ctl("profile", "import", profile)
        if done.code:
            sys.exit(str(done))
        return submit(server, model, folder, options), submit(server, model, folder, options)

    try:
        cold = with_server(folder / "first", first)
        known, identical = with_server(folder / "second", second)
        return {"model": model.stem, "cold": cold[0], "known": known[0], "identical": identical[0],
                "measured": cold[1]["measurement_tasks"], "measured_again": known[1]["measurement_tasks"],
                "nodes": cold[1]["nodes"], "kernels": cold[1]["kernels"], "kernels_distinct": cold[1]["kernels_distinct"],
                "stages": cold[1]["stages"], "stages_known": known[1]["stages"]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--submit", action="append", default=[], metavar="FLAG", help="for fusionctl submit: --submit=--tune=off")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one submission")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    rows = []
    print("| model | nodes → kernels | measured | cold s | database s | identical s | " +
          " | ".join(STAGES) + " |\n|---|---|---:|---:|---:|---:|" + "---:|" * len(STAGES), flush=True)
    for model in options.models:
        row = examine(model.resolve(), options)
        rows.append(row)
        if row["measured_again"]:
            print(f"{model}: {row['measured_again']} measurements in spite of the database", file=sys.stderr)
        stages = " | ".join(f"{row['stages'].get(stage, 0):.1f}" for stage in STAGES)
        print("| {model} | {nodes} → {kernels} ({kernels_distinct}) | {measured} | {cold:.1f} | {known:.1f} | {identical:.3f} | "
              .format(**row) + stages + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
