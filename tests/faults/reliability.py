"""Runs the faults and writes docs/reliability.md: `tests/faults/reliability.py --seeds 100000 --faults 2000`.

Each part keeps its result in --results, so that `--only simulation` runs one part again and the page has the others as
they were run last."""
import argparse
import json
import os
import pathlib
import platform
import re
import sqlite3
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "faults")]
PARTS = ("simulation", "faults", "synchronous_off", "machine", "restart")
OLD_JOBS = 100000


SUMS = ("submissions", "deaths", "leases", "measurements", "steps", "simulated hours")


def simulation(options, save):
    """In pieces, so that a long run that is interrupted leaves the number of seeds that ran."""
    sums = dict({name: 0.0 for name in SUMS}, first_seed=options.first_seed, seeds=0, seconds=0.0, violations=[])
    while sums["seeds"] < options.seeds and not sums["violations"]:
        count = min(10000, options.seeds - sums["seeds"])
        done = subprocess.run([options.build / "test-bin" / "simulation_test", "--gtest_filter=*AnySeed"],
                              capture_output=True, text=True,
                              env=dict(os.environ, FUSION_SIMULATION_FIRST=str(options.first_seed + sums["seeds"]),
                                       FUSION_SIMULATION_COUNT=str(count)))
        [line] = re.findall(r"^\d+ seeds in .*$", done.stdout, re.M)
        sums["seeds"] += count
        sums["seconds"] += float(re.search(r"in (\S+) s", line).group(1))
        for name in SUMS:
            sums[name] += float(re.search(r"([\d.e+]+) %s" % name, line).group(1))
        sums["violations"] = re.findall(r"^seed \d+: .*$", done.stdout, re.M)
        save(sums)


def faults(options, save):
    import random_faults
    run = random_faults.Run(options.fault_seed, log=lambda words: print(time.strftime("%H:%M:%S"), words, flush=True))
    try:
        run.faults(options.faults, judged=save)
    finally:
        run.close()


def synchronous_off(options, save):
    import random_faults
    for seed in range(1, 11):
        run = random_faults.Run(seed, synchronous_off=True, workers=1)
        try:
            if not run.faults(10):
                return save({"seed": seed, "faults": sum(run.counts.values()), "problems": run.problems})
        finally:
            run.close()
    save({"seed": 10, "faults": 100, "problems": []})


def machine(options, save):
    import test_failing_machine
    suite = unittest.defaultTestLoader.loadTestsFromModule(test_failing_machine)
    names = [test.id().rsplit(".", 1)[1] for case in suite for test in case]
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    bad = {test.id().rsplit(".", 1)[1] for test, _ in result.failures + result.errors}
    save({name[5:].replace("_", " "): "failed" if name in bad else "nothing lost" for name in names})


def restart(options, save):
    """Starts on a database of many jobs that ended long ago."""
    import random_faults
    run = random_faults.Run(1, power=False)
    run.server.variables = {}
    try:
        run.start_server()
        run.start_worker(0)
        run.server.wait_until(run.server.workers, "the worker is attached")
        name = run.submit_one()
        run.server.wait_until(lambda: not run.unfinished(), "the job ends")
        run.server.kill()
        with sqlite3.connect(run.server.state / "fusion.db") as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(jobs)") if row[1] not in ("number", "id", "key")]
            for table, own in (("jobs", "id, key"), ("job_events", "job_id")):
                others = columns if table == "jobs" else ["seq", "event"]
                new = "id || '-' || n, key || '-' || n" if table == "jobs" else "job_id || '-' || n"
                db.execute("WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < %d) "
                           "INSERT INTO %s (%s, %s) SELECT %s, %s FROM %s, counter WHERE %s = ?"
                           % (OLD_JOBS, table, own, ", ".join(others), new, ", ".join(others), table, own.split(",")[0]), [name])
            [[jobs], [events]] = db.execute("SELECT COUNT(*) FROM jobs UNION ALL SELECT COUNT(*) FROM job_events").fetchall()
        db.close()
        seconds = []
        for _ in range(20):
            seconds.append(run.start_server())
            run.server.kill()
        size = (run.server.state / "fusion.db").stat().st_size
        save({"jobs": jobs, "events": events, "bytes": size, "seconds": sorted(seconds)})
    finally:
        run.close()


def page(results):
    lines = ["# Reliability", "",
             "What was done to the service, and what it lost. `tests/faults/reliability.py` runs the faults and writes this page; [tests/faults](../tests/faults/README.md) and",
             "[server/simulation](../server/simulation/README.md) say how they work, [decision 61](decisions/0061-faults-from-seeds.md) why. Shorter runs are part of `./check`.", ""]
    done = results.get("simulation")
    if done:
        lines += ["## The service logic, simulated from seeds", "",
                  "| seeds | ms a seed | submissions | deaths of the server | leases | measurements | simulated hours | violations |", "|---|---|---|---|---|---|---|---|",
                  "| %s from %d | %.2f | %s | %s | %s | %s | %s | %d |" % (
                      format(done["seeds"], ","), done["first_seed"], 1000 * done["seconds"] / max(1, done["seeds"]), *(format(int(done[n]), ",") for n in (
                          "submissions", "deaths", "leases", "measurements", "simulated hours")), len(done["violations"])), ""]
    done = results.get("faults")
    if done:
        words = {"server": "`kill -9` of fusiond at a random instant", "server_before_sync": "`kill -9` of fusiond just before a sync",
                 "server_after_sync": "`kill -9` of fusiond just after a sync", "worker": "`kill -9` of a worker",
                 "compilation": "`kill -9` of a compilation", "client": "`kill -9` of a client that submits"}
        lines += ["## Real processes, killed", "",
                  "A farm of two workers under two clients, seed %d. At each kill of fusiond all, some or none of what it had not synced is taken back, SQLite's files included (%s writes)." % (
                      done["seed"], format(done["lost_writes"], ",")), "", "| fault | times | lost |", "|---|---|---|"]
        lost = "; ".join(done["problems"]) or "nothing"
        lines += ["| %s | %d | %s |" % (words[kind], count, lost) for kind, count in done["faults"].items()]
        lines += ["", "%s jobs were acknowledged, and each ended exactly once; %s jobs had been seen to end, and stayed as they were seen. Recovery, from the start of the program to its first answer, over %d starts: p50 %.2f s, p99 %.2f s, longest %.2f s (the bar is 5 s)." % (
            format(done["acknowledged"], ","), format(done["seen_to_end"], ","), done["recoveries"], done["recovery_p50_s"], done["recovery_p99_s"], done["recovery_max_s"]), ""]
    done = results.get("synchronous_off")
    if done:
        lines += ["With `synchronous=OFF` the same faults must lose something, else they show nothing: found out after %d faults (seed %d): %s." % (
            done["faults"], done["seed"], "; ".join(done["problems"][:1]) or "NOTHING WAS LOST"), ""]
    done = results.get("machine")
    if done:
        lines += ["## A machine that fails", "", "| fault, while a job runs | result |", "|---|---|"] + ["| %s | %s |" % item for item in done.items()] + [""]
    done = results.get("restart")
    if done:
        lines += ["## Restart with old jobs", "",
                  "%s jobs that have ended, %s events, a database of %.0f MB: from the start of the program to its first answer %.2f s (median of %d after `kill -9`), %.2f s at most; the bar is 5 s." % (
                      format(done["jobs"], ","), format(done["events"], ","), done["bytes"] / 1e6, done["seconds"][len(done["seconds"]) // 2],
                      len(done["seconds"]), done["seconds"][-1]), ""]
    [cpu] = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[:1] or [platform.machine()]
    lines += ["Measured on %s, %d cores, while other programs ran." % (cpu, os.cpu_count())]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page from what is kept")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10000)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--fault-seed", type=int, default=1)
    options = parser.parse_args()
    options.results = options.results or options.build / "reliability"
    options.results.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("FUSION_BIN", str(options.build / "bin"))
    for shim in options.build.rglob("libfault_shim.so"):
        os.environ.setdefault("FUSION_FAULT_SHIM", str(shim))
    for name in [] if options.page else options.only or PARTS:
        save = lambda result, name=name: (options.results / (name + ".json")).write_text(json.dumps(result, indent=1))
        globals()[name](options, save)
    results = {path.stem: json.loads(path.read_text()) for path in options.results.glob("*.json")}
    (ROOT / "docs" / "reliability.md").write_text(page(results))


if __name__ == "__main__":
    main()
