#!/usr/bin/env python3
"""What each part of the compiler gains: a model compiled without rewriting, fusion and layouts, and with them.

usage: breakdown.py [options] MODEL.onnx ...

The output has the form of DNNFusion's Figure 7. Bundles run in turns in one process, and each round begins with another
one; a speedup is the median over rounds of the time without any of the parts divided by the bundle's own. "measured" is
a compilation by a server with an empty profile database, which measures the yellow cases and tries kernel variants
(--tune quick).
Needs numpy.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "tests/e2e")]
try:
    import numpy as np
except ImportError:
    sys.exit("numpy is missing: pip install numpy")
from compare_peers import random_feeds
from fusion_runtime import Session

BIN = ROOT / "build/release/bin"
NO_REWRITE, NO_LAYOUT, NO_FUSION = ["--disable-pass", "rewrite"], ["--disable-pass", "layout"], ["--planner", "none"]
FORMS = {"none": NO_REWRITE + NO_LAYOUT + NO_FUSION, "rewriting": NO_LAYOUT + NO_FUSION,
         "fusion": NO_REWRITE + NO_LAYOUT, "rewriting + fusion": NO_LAYOUT, "+ layouts": []}
MEASURED = "+ measured"


def compile_forms(model, folder):
    """{form: (bundle, report)}"""
    bundles = {}
    for number, (form, flags) in enumerate(FORMS.items()):
        bundle, report = folder / f"{number}.fusion", folder / f"{number}.json"
        subprocess.run([BIN / "fusion-compile", model, bundle, "--json", report, *flags], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        bundles[form] = bundle, json.loads(report.read_text())
    return bundles


def compile_measured(model, folder):
    import harness
    server = harness.Server(folder / "server")
    bundle, report = folder / "measured.fusion", folder / "measured.json"
    try:
        server.start()
        done = server.ctl("submit", model, "-o", bundle, "--tune", "quick", "--json", report, timeout=3600)
        if done.code:
            sys.exit(f"{model}: {done}")
    finally:
        server.stop()
    return bundle, json.loads(report.read_text())


def take_turns(sessions, options):
    """{form: [median seconds of a round]}"""
    runs, rounds = {}, {form: [] for form in sessions}
    for form, run in sessions.items():
        run()
        start = time.perf_counter()
        run()
        runs[form] = max(1, round(options.turn_ms / 1e3 / (time.perf_counter() - start)))
    forms = list(sessions)
    for turn in range(options.rounds):
        first = turn % len(forms)
        for form in forms[first:] + forms[:first]:
            times = []
            for _ in range(runs[form]):
                start = time.perf_counter()
                sessions[form]()
                times.append(time.perf_counter() - start)
            rounds[form].append(statistics.median(times))
    return rounds


def examine(model, options):
    """One row a form."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-breakdown-"))
    opened = []
    try:
        bundles = compile_forms(model, folder)
        if options.measured:
            (folder / "server").mkdir()
            bundles[MEASURED] = compile_measured(model, folder)
        sessions, feeds = {}, None
        for form, (bundle, _) in bundles.items():
            opened.append(Session(bundle, threads=options.threads))
            feeds = feeds or random_feeds(opened[-1].inputs, options)
            sessions[form], _ = opened[-1].bind(feeds)
        rounds = take_turns(sessions, options)
        rows = []
        for form, times in rounds.items():
            ratios = [base / own for base, own in zip(rounds["none"], times)]
            rows.append({"model": model.stem, "form": form, "kernels": bundles[form][1]["kernels"],
                         "ms": 1e3 * statistics.median(times), "speedup": statistics.median(ratios),
                         "lowest": min(ratios), "highest": max(ratios)})
        return rows
    finally:
        for session in opened:
            session.close()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn-ms", type=float, default=200, help="about how long a bundle runs in a round")
    parser.add_argument("--no-measured", dest="measured", action="store_false", help="without the server")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--int-max", type=int, default=1000, help="random integers stay below")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    rows = []
    print("| model | form | kernels | ms | speedup over none |\n|---|---|---:|---:|---:|")
    for model in options.models:
        for row in examine(model.resolve(), options):
            rows.append(row)
            print("| {model} | {form} | {kernels} | {ms:.3f} | {speedup:.2f} ({lowest:.2f}–{highest:.2f}) |".format(**row),
                  flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
