#!/usr/bin/env python3
"""What a server returns beside what fusion-compile makes offline, for each model: is it at most 1.01 of its time?

usage: server_plans.py [--prepare-only] [--each-threads] [--submit FLAG] [--again] --out DIR MODEL.onnx|FOLDER …
       server_plans.py --time-only DIR [--threads 1,2] [--processes 6] [--json FILE] [NAME …]

Preparing submits each model to a fusiond of this script's own, whose state lies in DIR and whose local worker measures
(default options; checks of the finished bundle are left out), and compiles it with fusion-compile. A busy machine makes
the server's measurements worse. Both bundles and the server's report stay in DIR. A model that is there already is
skipped, so that preparing may be interrupted and go on; a submission that was cut off is answered from the store when
it is repeated. --each-threads submits once for each number of --threads, and runs the bundle of that number; otherwise
the one bundle runs on all of them.

Timing wants a quiet machine. `fusionctl bench` runs the two bundles in turns, in several processes one after another,
every other one with the bundles exchanged. A row's ratio is the median of the processes' ratios server / offline. Its
interval is their range: it holds the median of what processes measure with a confidence of 1 - 2^(1 - processes), 97%
of six, whatever their distribution. Where the offline plan is returned, both bundles have the same kernels and
launches: such a row says how far two runs of one program differ here. FUSION_BIN names the folder of the programs.
Needs Python's standard library only.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("FUSION_BIN", str(ROOT / "build/release/bin"))
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tests/bench")]

LIMIT = 1.01
EQUAL = 0.005  # plans this near the fastest count as equally fast (kEqualPlans)
SECONDS_A_STEP = 7200


class Failure(Exception):
    pass


def write_json(path, value):
    """A reader finds the whole file or none."""
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(value, indent=1) + "\n")
    whole.replace(path)


def program(name):
    return pathlib.Path(os.environ["FUSION_BIN"]) / name


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS_A_STEP)
    if done.returncode:
        raise Failure("%s: exit %d: %s" % (" ".join(map(str, command[:2])), done.returncode,
                                           done.stderr.strip()[-300:]))
    return done.stdout


def models_of(paths):
    """The .onnx files among the paths and in the folders, the small ones first."""
    files = []
    for path in map(pathlib.Path, paths):
        files += sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    absent = [str(file) for file in files if not file.is_file()]
    if absent or not files:
        sys.exit("no such model: %s" % ", ".join(absent or map(str, paths)))
    return sorted((file.resolve() for file in files), key=lambda file: file.stat().st_size)


def digest(path):
    content = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            content.update(piece)
    return content.hexdigest()


def choice(alternatives, not_compared=""):
    """(the plan that the server returned, why), from the plans in its report."""
    plans = [plan for plan in alternatives if plan["rounds"] > 0]
    if not plans:
        chosen = [plan["plan"] for plan in alternatives if plan["chosen"]]
        return (chosen[0], not_compared or "not compared") if chosen else ("offline", "the only plan")
    chosen = next(plan for plan in plans if plan["chosen"])
    fastest = min(plans, key=lambda plan: plan["ratio"])
    if chosen is fastest:
        second = min((plan for plan in plans if plan is not chosen), key=lambda plan: plan["ratio"])
        return chosen["plan"], "fastest; %s takes %.3f of it" % (second["plan"], second["ratio"] / chosen["ratio"])
    said = "%.3f of %s, the fastest" % (chosen["ratio"] / fastest["ratio"], fastest["plan"])
    if chosen["ratio"] * (1 - EQUAL) <= fastest["ratio"]:
        return chosen["plan"], "equal: " + said
    if fastest["ratio_high"] >= chosen["ratio_low"]:
        return chosen["plan"], "not certain: %s (%.3f–%.3f)" % (said, fastest["ratio_low"], fastest["ratio_high"])
    return chosen["plan"], "NOT the fastest: " + said


def interval(ratios):
    """(median, least, greatest, confidence that the range holds the median)"""
    return statistics.median(ratios), min(ratios), max(ratios), 1 - 2.0 ** (1 - len(ratios))


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def above_limit(rows):
    """Sentences about the rows above LIMIT."""
    return ["%s on %d thread%s takes %.3f of the offline bundle's time (%.3f–%.3f%s)%s" % (
        row["model"], row["threads"], "s" if row["threads"] > 1 else "", row["ratio"], row["low"], row["high"],
        "" if row["low"] > LIMIT else ", which allows %.2f" % LIMIT,
        ", but both bundles have the same kernels and launches" if row["same"] else "")
        for row in rows if row["ratio"] > LIMIT]


def submission_name(threads, each_threads):
    return "server-%d" % threads if each_threads else "server"


def submit(server, model, folder, name, flags):
    """Seconds of the submission, and the server's report."""
    bundle, report = folder / (name + ".fusion"), folder / (name + ".json")
    start = time.monotonic()
    done = server.ctl("submit", model, "-o", bundle, "--json", report, *flags, timeout=SECONDS_A_STEP)
    seconds = time.monotonic() - start
    if done.code:
        raise Failure("fusionctl submit: exit %d: %s" % (done.code, done.err.strip()[-300:]))
    return {"seconds": seconds, "report": json.loads(report.read_text())}


def prepare(server, model, options):
    """Leaves the bundles and account.json in the model's folder. Does nothing if they are there already."""
    folder = options.out / model.stem
    folder.mkdir(parents=True, exist_ok=True)
    account = folder / "account.json"
    threads = list(options.threads) if options.each_threads else [1]
    done = json.loads(account.read_text()) if account.exists() and not options.again else {}
    content = digest(model)
    if done.get("sha256") != content or done.get("flags") != options.submit:
        done = {"model": str(model), "sha256": content, "flags": options.submit, "submissions": {}}
    if "offline_kernels" not in done:
        offline = folder / "offline.json"
        start = time.monotonic()
        run(program("fusion-compile"), model, folder / "offline.fusion", "--json", offline)
        done["offline_seconds"] = time.monotonic() - start
        done["offline_kernels"] = json.loads(offline.read_text())["kernels"]
        write_json(account, done)
    for count in threads:
        name = submission_name(count, options.each_threads)
        if name in done["submissions"]:
            continue
        flags = (["--threads", count] if options.each_threads else []) + options.submit
        done["submissions"][name] = {"load": os.getloadavg()[0], **submit(server, model, folder, name, flags)}
        write_json(account, done)
        report = done["submissions"][name]["report"]
        plan, why = choice(report.get("alternatives", []), report.get("not_compared", ""))
        print("%s %s: %d kernels (offline %d), %s, %s; %.0f s" % (
            model.stem, name, report["kernels"], done["offline_kernels"], plan, why,
            done["submissions"][name]["seconds"]), flush=True)


def prepare_all(options):
    """Returns the number of models that could not be prepared."""
    import harness
    models = models_of(options.models)
    names = [model.stem for model in models]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit("two models of one name: %s; prepare them into two folders" % ", ".join(twice))
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    (options.out / "server").mkdir(mode=0o700, exist_ok=True)  # whoever reaches the socket may do everything
    server = harness.Server(options.out / "server")
    try:
        server.start()
        for model in models:
            try:
                prepare(server, model, options)
            except (Failure, subprocess.TimeoutExpired) as error:
                failed += 1
                print("%s: not prepared: %s" % (model.stem, error), file=sys.stderr, flush=True)
    finally:
        server.stop()
    return failed


def bench(offline, returned, threads, exchanged):
    """(ratio server / offline, the offline bundle's ms) of one process."""
    first, second = (returned, offline) if exchanged else (offline, returned)
    said = json.loads(run(program("fusionctl"), "bench", first, "--against", second,
                          "--threads", threads, "-o", "json"))
    ratio = said["speedup"]  # time of the second bundle over that of the first
    return (1 / ratio, said["against_median_ms"]) if exchanged else (ratio, said["median_ms"])


def program_of(bundle):
    """What a run of the bundle executes: launches, memory and the digests of the kernels."""
    said = json.loads(run(program("fusionctl"), "bundle", "inspect", bundle, "-o", "json"))
    digests = {name: value for name, value in said.get("digests", {}).items() if name.startswith(("kernels/", "src/"))}
    return [said.get("launches"), said.get("buffers"), said.get("arena_bytes"), digests]


def time_row(folder, account, threads, processes):
    own = submission_name(threads, True)
    name = own if own in account["submissions"] else "server"
    if name not in account["submissions"]:
        raise Failure("no bundle for %d threads; prepare it by --each-threads --threads %d" % (threads, threads))
    runs = [bench(folder / "offline.fusion", folder / (name + ".fusion"), threads, process % 2 == 1)
            for process in range(processes)]
    ratio, low, high, confidence = interval([one for one, _ in runs])
    submission = account["submissions"][name]
    report = submission["report"]
    plan, why = choice(report.get("alternatives", []), report.get("not_compared", ""))
    same = program_of(folder / "offline.fusion") == program_of(folder / (name + ".fusion"))
    return {"model": folder.name, "threads": threads, "same": same, "kernels": report["kernels"],
            "offline_kernels": account["offline_kernels"], "offline_ms": statistics.median(ms for _, ms in runs),
            "ratio": ratio, "low": low, "high": high, "confidence": confidence, "ratios": [one for one, _ in runs],
            "plan": plan, "why": why, "submission": name, "submission_seconds": submission["seconds"],
            "stored": report.get("from_store", False),
            "measured": report["measurement_tasks"], "load": os.getloadavg()[0]}


def time_all(folder, options):
    """Prints the table. Returns the number of rows that could not be timed."""
    import machine
    named = options.names
    accounts = sorted(path for path in folder.glob("*/account.json") if not named or path.parent.name in named)
    absent = sorted(set(named) - {path.parent.name for path in accounts})
    if absent or not accounts:
        sys.exit("not prepared in %s: %s" % (folder, ", ".join(absent) or "any model"))
    about = machine.describe()
    print("%(cpu)s, %(cpus_usable)d CPUs, load %(load_average).1f\n" % about)
    print("| model | threads | launches: server (offline) | offline ms | server / offline | interval | returned | why | "
          "submission s |")
    print("|---|---:|---:|---:|---:|---|---|---|---:|", flush=True)
    rows, failed = [], 0
    for path in accounts:
        account = json.loads(path.read_text())
        for threads in options.threads:
            try:
                row = time_row(path.parent, account, threads, options.processes)
            except Failure as error:
                failed += 1
                print("%s on %d threads: not timed: %s" % (path.parent.name, threads, error), file=sys.stderr,
                      flush=True)
                continue
            rows.append(row)
            print("| {model} | {threads} | {kernels} ({offline_kernels}) | {offline_ms:.2f} | {ratio:.3f} | "
                  "{low:.3f}–{high:.3f} | {plan}{0} | {why} | {submission_seconds:.0f}{1} |".format(
                      " (the same kernels)" if row["same"] else "", " (stored)" if row["stored"] else "", **row),
                  flush=True)
            if options.json:
                write_json(options.json, {"machine": about, "rows": rows})
    print()
    for threads in options.threads:
        ratios = [row["ratio"] for row in rows if row["threads"] == threads]
        if ratios:
            print("%d thread%s: geometric mean %.3f of %d models, worst %.3f, %d above %.2f" % (
                threads, "s" if threads > 1 else "", geometric_mean(ratios), len(ratios), max(ratios),
                sum(ratio > LIMIT for ratio in ratios), LIMIT))
    if rows:
        print("intervals hold the median with a confidence of %.0f%%" % (100 * rows[0]["confidence"]))
    for sentence in above_limit(rows):
        print("above %.2f: %s" % (LIMIT, sentence))
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="files and folders to prepare, or names to time")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="where bundles and the server's state go")
    parser.add_argument("--prepare-only", action="store_true", help="time later, by --time-only")
    parser.add_argument("--time-only", type=pathlib.Path, metavar="DIR", help="time what was prepared there")
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--each-threads", action="store_true", help="submit once for each number of threads")
    parser.add_argument("--submit", action="append", default=[], metavar="FLAG",
                        help="for fusionctl submit: --submit=--tune=off")
    parser.add_argument("--again", action="store_true", help="prepare models again that are there")
    parser.add_argument("--processes", type=int, default=6, help="of `fusionctl bench` for each row, four seconds each")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the rows here")
    options = parser.parse_args()
    options.out = options.out and options.out.resolve()  # the client runs in a folder of its own
    if (options.out is None) == (options.time_only is None):
        parser.error("name either --out DIR, to prepare, or --time-only DIR")
    if options.processes < 2:
        parser.error("an interval takes two processes or more")
    failed = 0
    if options.out:
        options.models, options.names = options.names, []
        failed = prepare_all(options)
    if not options.prepare_only:
        failed += time_all(options.time_only or options.out, options)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
