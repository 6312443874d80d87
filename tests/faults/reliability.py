"""Runs the faults and writes docs/reliability.md: `tests/faults/reliability.py --seeds 100000 --faults 2000`.

Each part keeps its result in --results, so that `--only simulation` runs one part again and the page has the others as
they were run last."""
import argparse
import json
import os
import pathlib
import platform
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "faults")]
import history_check  # noqa: E402
PARTS = ("simulation", "faults", "synchronous_off", "machine", "restart", "submits", "queue", "dispatches", "lost_worker",
         "profile")
OLD_JOBS = 100000


SUMS = ("submissions", "deaths", "leases", "measurements", "steps", "simulated hours")


def simulation(options, save):
    """In pieces, so that a long run that is interrupted leaves the number of seeds that ran."""
    sums = dict({name: 0.0 for name in SUMS}, first_seed=options.first_seed, seeds=0, seconds=0.0, processor_s=0.0, violations=[])
    while sums["seeds"] < options.seeds and not sums["violations"]:
        count = min(10000, options.seeds - sums["seeds"])
        done = subprocess.run([options.build / "test-bin" / "simulation_test", "--gtest_filter=*AnySeed"],
                              capture_output=True, text=True,
                              env=dict(os.environ, FUSION_SIMULATION_FIRST=str(options.first_seed + sums["seeds"]),
                                       FUSION_SIMULATION_COUNT=str(count)))
        [line] = re.findall(r"^\d+ seeds in .*$", done.stdout, re.M)
        sums["seeds"] += count
        sums["seconds"] += float(re.search(r"in (\S+) s", line).group(1))
        sums["processor_s"] += float(re.search(r"(\S+) s of processor time", line).group(1))
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
            columns = [row[1] for row in db.execute("PRAGMA table_info(jobs)") if row[1] not in ("number", "id", "key", "request_id")]
            for table, own in (("jobs", "id, key"), ("job_events", "job_id")):
                others = columns if table == "jobs" else ["seq", "event"]
                new = "id || '-' || n, key || '-' || n" if table == "jobs" else "job_id || '-' || n"
                db.execute("WITH RECURSIVE counter(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counter WHERE n < %d) "
                           "INSERT INTO %s (%s, %s) SELECT %s, %s FROM %s, counter WHERE %s = ?"
                           % (OLD_JOBS, table, own, ", ".join(others), new, ", ".join(others), table, own.split(",")[0]), [name])
            [[jobs], [events]] = db.execute("SELECT COUNT(*) FROM jobs UNION ALL SELECT COUNT(*) FROM job_events").fetchall()
        db.close()
        seconds, dispatched = [], []
        for _ in range(20):
            began = time.monotonic()
            seconds.append(run.start_server())
            dispatched.append(first_dispatch(run, began))
            run.server.kill()
        size = (run.server.state / "fusion.db").stat().st_size
        save({"jobs": jobs, "events": events, "bytes": size, "seconds": sorted(seconds), "dispatched": sorted(dispatched)})
    finally:
        run.close()


def fence(db):
    """It rises with each lease of a task."""
    return db.execute("SELECT value FROM counters WHERE name = 'fence'").fetchone()[0]


def first_dispatch(run, began):
    """Submits a job that needs a worker, and starts one. Returns the seconds from `began` to the first lease."""
    import onnx_model
    with history_check.database(run.server.state) as db:
        before = fence(db)
        run.start_worker(0)
        run.submitted += 1
        (run.folder / "next.onnx").write_bytes(onnx_model.mlp(seed=1000 + run.submitted, widths=(16, 24, 8 * run.submitted)))
        done = run.server.ctl("submit", "next.onnx", "--target", "sim", "--tune", "4", "--detach")
        assert done.code == 0, done
        while fence(db) == before:
            time.sleep(0.01)
        seconds = time.monotonic() - began
    run.server.wait_until(lambda: not run.unfinished(), "the job ends")  # else the next start waits for this worker's lease
    run.workers[0].kill()
    run.workers[0].wait()
    return seconds


def memory_mb(process, which="VmRSS"):
    """`which`: VmRSS is what it has now, VmHWM the most that it had."""
    [kb] = re.findall(which + r":\s+(\d+)", pathlib.Path("/proc/%d/status" % process.pid).read_text())
    return int(kb) / 1024


def processor_s(process):
    fields = pathlib.Path("/proc/%d/stat" % process.pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Quiet:
    """A server without faults, on the disk of --results, with one model that was compiled for a simulated device."""

    def __init__(self, options, *args):
        import harness
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-scale-", dir=options.results))
        self.options, self.model = options, ROOT / "tests" / "models" / "small" / "tiny_encoder.onnx"
        self.server = harness.Server(self.folder, "--no-local-worker", *args)
        self.server.start()
        self.worker = None
        self.attach()
        done = self.server.ctl("submit", self.model, "--target", "sim", "-o", "out.fusion")
        assert done.code == 0, done

    def attach(self):
        self.worker = self.server.start_worker("--kinds=sim", "--simulated-measurement=1ms")
        self.server.wait_until(self.server.workers, "the worker is attached")

    def detach(self):
        self.worker.kill()
        self.worker.wait()

    def submit(self, count, *args):
        done = subprocess.run([self.options.build / "bin" / "submit_latency", self.server.address, self.model, "--target", "sim",
                               "--count", str(count), *args], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def memory_mb(self):
        return memory_mb(self.server.process)

    def processor_s(self):
        return processor_s(self.server.process)

    def sync_ms(self):
        """What the disk takes for a small write and its sync: (median, 99th percentile)."""
        took = []
        with open(self.folder / "synced", "wb") as file:
            for _ in range(300):
                file.write(b"x" * 4096)
                file.flush()
                began = time.monotonic()
                os.fdatasync(file.fileno())
                took.append(1000 * (time.monotonic() - began))
        return sorted(took)[150], sorted(took)[297]

    def close(self):
        self.detach()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def submits(options, save):
    """Submissions that are answered from the store, one after another."""
    quiet = Quiet(options)
    try:
        before = quiet.sync_ms()
        began, processor = time.monotonic(), quiet.processor_s()
        result = quiet.submit(options.submits)
        result.update(seconds=time.monotonic() - began, processor_s=quiet.processor_s() - processor, memory_mb=quiet.memory_mb(),
                      sync_ms=before, sync_after_ms=quiet.sync_ms())
        save(result)
    finally:
        quiet.close()


def queue(options, save):
    """Jobs that wait for a worker that is not there: the server idles, and is started on them again. They ask for a worker
    by name. Jobs for just any worker would be done without one: the profile, the cost model and stored binaries suffice."""
    quiet = Quiet(options, "--jobs-per-caller", "100000")
    try:
        quiet.detach()
        result = quiet.submit(options.queued, "--distinct", "--require", "name=late")
        time.sleep(5)
        began, processor = time.monotonic(), quiet.processor_s()
        time.sleep(60)
        result.update(memory_mb=quiet.memory_mb(), idle=(quiet.processor_s() - processor) / (time.monotonic() - began))
        quiet.server.kill()
        began = time.monotonic()
        quiet.server.start(wait_for_worker=False)
        result.update(restart_s=time.monotonic() - began, memory_after_mb=quiet.memory_mb())
        with history_check.database(quiet.server.state) as db:
            result["unfinished"] = db.execute("SELECT COUNT(*) FROM jobs WHERE state < 3").fetchone()[0]
            before = fence(db)
            quiet.worker = quiet.server.start_worker("--kinds=sim", "--simulated-measurement=1ms", "--name=late")
            quiet.server.wait_until(lambda: fence(db) > before, "the first task of them is leased")
            result["dispatched_s"] = time.monotonic() - began
            quiet.server.wait_until(lambda: db.execute("SELECT COUNT(*) FROM jobs WHERE state < 3").fetchone()[0] < result["unfinished"],
                                    "the first of them ends")
            result["first_end_s"] = time.monotonic() - began
        assert result["unfinished"] == options.queued, result
        save(result)
    finally:
        quiet.close()


def lines_of(path):
    return path.read_bytes().count(b"\n")


def dispatches(options, save):
    """A thousand workers with a connection each, and ten thousand jobs of twenty questions. The compiler only asks
    (farm_load.cc): all else of the server is fusiond's."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-scale-", dir=options.results))
    load, syncs, address = options.build / "bin" / "farm_load", folder / "syncs", "unix:%s/state/fusion.sock" % folder
    [counter] = options.build.rglob("libsync_counter.so")
    processes = []

    def start(*args, **variables):
        processes.append(subprocess.Popen([load, *map(str, args)], stdout=subprocess.PIPE, text=True, env=dict(os.environ, **variables)))
        return processes[-1]

    def attached():
        listed = subprocess.run([options.build / "bin" / "fusionctl", "--server", address, "worker", "list", "-o", "json"],
                                capture_output=True, text=True)
        return sum(w["state"] != "lost" for w in json.loads(listed.stdout).get("workers", [])) if listed.returncode == 0 else 0

    def unfinished(db):
        return db.execute("SELECT COUNT(*) FROM jobs WHERE state < 3").fetchone()[0]

    def wait_until(holds, limit_s=1800):
        deadline = time.monotonic() + limit_s
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    try:
        server = start("serve", folder / "state", LD_PRELOAD=str(counter), FUSION_SYNC_LOG=str(syncs))
        assert server.stdout.readline() == "ready\n"
        work = start("work", address, "--workers", options.workers)
        wait_until(lambda: attached() == options.workers)
        # They ask for workers with a label, which these do not have.
        done = subprocess.run([options.build / "bin" / "submit_latency", address, ROOT / "tests/models/small/tiny_encoder.onnx", "--target", "sim",
                               "--distinct", "--count", str(options.queued), "--require", "go=1"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        result = {"workers": options.workers, "jobs": options.queued, "waiting": json.loads(done.stdout)}
        time.sleep(30)
        began, processor, others = time.monotonic(), processor_s(server), processor_s(work)
        time.sleep(60)
        result.update(idle=(processor_s(server) - processor) / (time.monotonic() - began), idle_memory_mb=memory_mb(server),
                      idle_clients=(processor_s(work) - others) / (time.monotonic() - began))
        work.kill()
        work.wait()
        with history_check.database(folder / "state") as db:
            before, synced, processor = fence(db), lines_of(syncs), processor_s(server)
            work = start("work", address, "--workers", options.workers, "--label", "go=1")
            wait_until(lambda: fence(db) > before)
            began = time.monotonic()
            wait_until(lambda: unfinished(db) == 0)
            leased, seconds = fence(db) - before, time.monotonic() - began
            ended = dict(db.execute("SELECT state, COUNT(*) FROM jobs GROUP BY state").fetchall())
            rows = db.execute("SELECT COUNT(*) FROM measurements").fetchone()[0]
        assert ended == {3: options.queued} and rows == 20 * options.queued, (ended, rows)
        result.update(dispatches=leased, seconds=seconds, processor_s=processor_s(server) - processor, syncs=lines_of(syncs) - synced,
                      clients_s=processor_s(work), memory_mb=memory_mb(server, "VmHWM"), measurements=rows)
        save(result)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def lost_worker(options, save):
    """A worker is killed at some moment of a task, and an idle one of its kind is there."""
    import onnx_model
    quiet = Quiet(options)
    chosen, took = random.Random(1), []
    try:
        quiet.detach()
        for number in range(options.lost_workers):
            lost = quiet.server.start_worker("--kinds=sim", "--simulated-measurement=1h", "--name=lost")
            named = lambda name: [w["worker_id"] for w in quiet.server.workers() if w["info"]["name"] == name]
            quiet.server.wait_until(lambda: named("lost"), "the worker is attached")
            (quiet.folder / "lost.onnx").write_bytes(onnx_model.mlp(seed=2000 + number, widths=(16, 24, 8 * (number + 1))))
            job = quiet.server.ctl("submit", "lost.onnx", "--target", "sim", "--tune", "4", "--detach")
            assert job.code == 0, job
            with history_check.database(quiet.server.state) as db:
                held = lambda: db.execute("SELECT id, fence FROM tasks WHERE state = 2 AND kind = 2 AND worker = ?", named("lost")[:1]).fetchone()
                quiet.server.wait_until(held, "it has a task")
                task, fence_before = held()
                quiet.worker = quiet.server.start_worker("--kinds=sim", "--simulated-measurement=1ms")
                time.sleep(5 + 10 * chosen.random())  # somewhere between two heartbeats
                lost.kill()
                began = time.monotonic()
                lost.wait()
                now = lambda: db.execute("SELECT fence, state FROM tasks WHERE id = ?", [task]).fetchone()
                assert now() == (fence_before, 2), now()
                quiet.server.wait_until(lambda: now()[0] > fence_before, "the other worker has the task")
                took.append(time.monotonic() - began)
                quiet.server.wait_until(lambda: db.execute("SELECT COUNT(*) FROM jobs WHERE state < 3").fetchone()[0] == 0, "the job ends")
            quiet.detach()
        save({"times": len(took), "seconds": sorted(took)})
    finally:
        quiet.close()


def profile(options, save):
    """A batch of 1,000 questions to a large profile database, and submissions beside it."""
    quiet = Quiet(options)
    try:
        result = {"submits_before": quiet.submit(2000)}
        quiet.server.kill()
        path = quiet.server.state / "fusion.db"
        began = time.monotonic()
        with sqlite3.connect(path, isolation_level=None) as db:
            # Without a log, which would be as large as the rows, and with indices that are built at the end: in the order of
            # the rows nearly each insertion would write a page of every index.
            db.execute("PRAGMA journal_mode=OFF")
            db.execute("PRAGMA synchronous=OFF")
            indices = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'measurements' AND sql IS NOT NULL").fetchall()
            for name, _ in indices:
                db.execute("DROP INDEX " + name)
            # Rows as long as real ones, three for each question, in an order that has nothing to do with their keys.
            db.execute("WITH RECURSIVE counter(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counter WHERE n < ?) "
                       "INSERT INTO measurements (question_key, measurement_key, device_fingerprint, description, samples, min_ns, median_ns, "
                       "p90_ns, samples_ns, worker, toolchain, time_ms, model_ns, workload, structure, choices, origin, task, fence, item) "
                       "SELECT printf('%032x%032x', (n / 3 * 2654435761) % 4294967296, n / 3), hex(randomblob(32)), 'devfingerprint', "
                       "hex(randomblob(40)), 20, 900.0 + n % 100, 1000.0 + n % 100, 1100.0 + n % 100, randomblob(512), 'worker', 'clang 14', n, 1000.0, "
                       "hex(randomblob(32)), hex(randomblob(32)), hex(randomblob(40)), hex(randomblob(16)), 't' || n, n, 0 FROM counter",
                       (options.rows - 1,))
            for _, sql in indices:
                db.execute(sql)
            db.execute("PRAGMA journal_mode=WAL")
        db.close()
        result.update(rows=options.rows, fill_s=time.monotonic() - began, bytes=path.stat().st_size)
        done = subprocess.run([options.build / "test-bin" / "profile_scale_test"], capture_output=True, text=True,
                              env=dict(os.environ, FUSION_PROFILE_DATABASE=str(path)))
        assert done.returncode == 0, done.stdout
        result.update(json.loads(re.search(r"^\{.*\}$", done.stdout, re.M).group(0)))
        began = time.monotonic()
        quiet.server.start(wait_for_worker=False)
        result["start_s"] = time.monotonic() - began
        result["submits"] = quiet.submit(2000)
        # The second start's: the first one had nothing to read.
        checked = lambda: re.findall(r"checked the database.*seconds=(\S+)", (quiet.server.folder / "fusiond.log").read_text())
        quiet.server.wait_until(lambda: len(checked()) == 2, "the check behind the start has ended", 1800)
        result["checked_s"] = float(checked()[1])
        result["submits_checked"] = quiet.submit(2000)
        save(result)
    finally:
        quiet.close()


def sections(text):
    """The parts of a page by their headings; the first one has none."""
    parts = re.split(r"^(?=## )", text, flags=re.M)
    return {part.split("\n", 1)[0]: part.rstrip("\n") for part in parts}


def page(results, before):
    """The page, with what is not among the results as it was on the page before."""
    made, kept = sections(new_page(results)), sections(before)
    order = list(kept) + [heading for heading in made if heading not in kept]
    return "\n\n".join(made.get(heading, kept.get(heading)) for heading in order) + "\n"


def machine_of():
    [cpu] = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[:1] or [platform.machine()]
    return "Measured on %s, %d cores, while other programs ran." % (cpu, os.cpu_count())


def measured_on(done):
    return [done["measured_on"], ""] if done else []


def new_page(results):
    lines = ["# Reliability", "",
             "What was done to the service, and what it lost. `tests/faults/reliability.py` runs the faults and writes this page; [tests/faults](../tests/faults/README.md) and",
             "[server/simulation](../server/simulation/README.md) say how they work, [decision 61](decisions/0061-faults-from-seeds.md) why. Shorter runs are part of `./check`.", ""]
    done = results.get("simulation")
    if done:
        lines += ["## The service logic, simulated from seeds", "",
                  "| seeds | ms of processor time a seed | submissions | deaths of the server | leases | measurements | simulated hours | violations |", "|---|---|---|---|---|---|---|---|",
                  "| %s from %d | %.2f | %s | %s | %s | %s | %s | %d |" % (
                      format(done["seeds"], ","), done["first_seed"], 1000 * done.get("processor_s", done["seconds"]) / max(1, done["seeds"]), *(format(int(done[n]), ",") for n in (
                          "submissions", "deaths", "leases", "measurements", "simulated hours")), len(done["violations"])), ""]
    lines += measured_on(done)
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
    lines += measured_on(done)
    done = results.get("machine")
    if done:
        lines += ["## A machine that fails", "", "| fault, while a job runs | result |", "|---|---|"] + ["| %s | %s |" % item for item in done.items() if item[0] != "measured_on"] + [""]
    lines += measured_on(done)
    done = results.get("restart")
    if done:
        lines += ["## Restart with old jobs", "",
                  "%s jobs that have ended, %s events, a database of %.0f MB: from the start of the program to its first answer %.2f s (median of %d after `kill -9`), %.2f s at most; the bar is 5 s." % (
                      format(done["jobs"], ","), format(done["events"], ","), done["bytes"] / 1e6, done["seconds"][len(done["seconds"]) // 2],
                      len(done["seconds"]), done["seconds"][-1]), ""]
        if "dispatched" in done:
            lines += ["The first task of a new job is leased, by a worker that is started after that answer, %.2f s after the start of the program (median), %.2f s at most." % (
                done["dispatched"][len(done["dispatched"]) // 2], done["dispatched"][-1]), ""]
    lines += measured_on(done)
    done = results.get("submits")
    if done:
        lines += ["## Submissions that the store answers", "",
                  "%s of one model, one after another over one connection: p50 %.2f ms, p99 %.2f ms, longest %.0f ms (the bars are 2 and 10 ms); %.2f ms of the server's processor time each. The disk takes %.2f ms for a write of 4 KiB and its sync (p99 %.2f ms), %.2f ms (%.2f ms) afterwards." % (
                      format(done["submissions"], ","), done["p50_ms"], done["p99_ms"], done["max_ms"], 1000 * done["processor_s"] / done["submissions"],
                      *done["sync_ms"], *done["sync_after_ms"]), ""]
    lines += measured_on(done)
    done = results.get("queue")
    if done:
        lines += ["## Jobs that wait", "",
                  "%s jobs for a worker that is not there: each is acknowledged within %.2f ms (p50; p99 %.2f ms), the server has %.0f MB (the bar is 500 MB) and takes %.1f%% of a core while nothing happens (3%%). After `kill -9` all of them wait again, and the server answers within %.2f s; the first task of one is leased, by a worker that is started then, %.2f s after the start of the program (the bar is 5 s), and the first of them ends after %.2f s." % (
                      format(done["submissions"], ","), done["p50_ms"], done["p99_ms"], done["memory_mb"], 100 * done["idle"], done["restart_s"],
                      done["dispatched_s"], done["first_end_s"]), ""]
    lines += measured_on(done)
    done = results.get("dispatches")
    if done:
        n = done["dispatches"]
        lines += ["## A thousand workers", "",
                  "%s workers, each with a connection of its own, and %s jobs that wait for workers with a label that these lack: the server has %.0f MB (the bar is 500 MB) and takes %.1f%% of a core (3%%); the workers' process takes %.1f%%." % (
                      format(done["workers"], ","), format(done["jobs"], ","), done["idle_memory_mb"], 100 * done["idle"], 100 * done["idle_clients"]), "",
                  "Workers with that label come in their place and do the jobs' %s tasks in %.0f s: %s dispatches a second (the bar is 500), at most %.0f MB. A dispatch takes %.2f ms of the server's processor time, all of a job and of a transfer included, and %.2f syncs; the workers' process takes %.2f ms for each, on the same cores." % (
                      format(n, ","), done["seconds"], format(round(n / done["seconds"]), ","), done["memory_mb"], 1000 * done["processor_s"] / n, done["syncs"] / n,
                      1000 * done["clients_s"] / n), "",
                  "A job asks 20 questions and nothing else (`tests/faults/farm_load.cc`); 32 run at a time. All else is fusiond's: calls, payloads, leases, rows, bundles. Of one trial alone the syncs are counted by `trial_syncs_test`: three at most.", ""]
    lines += measured_on(done)
    done = results.get("lost_worker")
    if done:
        lines += ["## A lost worker", "",
                  "A worker is killed %d times while it has a task, and an idle one is there: that one is given the task %.1f s later (median), %.1f s at most; the bar is the lease, 30 s, and 5 s." % (
                      done["times"], done["seconds"][len(done["seconds"]) // 2], done["seconds"][-1]), ""]
    lines += measured_on(done)
    done = results.get("profile")
    if done:
        lines += ["## A large profile", "",
                  "%s measurements, a database of %.1f GB: 1,000 questions at once take %.1f ms (median of %d, warm; %.1f ms at most; the bar is 20 ms). fusiond starts on it in %.2f s. Submissions that the store answers take %.2f ms (p50; p99 %.2f ms); they took %.2f ms (%.2f ms) before the rows were there, and take %.2f ms (%.2f ms) while the server reads the whole database, as it does behind a start (decision 64), for %.0f s." % (
                      format(done["rows"], ","), done["bytes"] / 1e9, done["batch_p50_ms"], done["batches"], done["batch_max_ms"], done["start_s"],
                      *(done[when][share] for when in ("submits_checked", "submits_before", "submits") for share in ("p50_ms", "p99_ms")), done["checked_s"]), ""]
    lines += measured_on(done)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(), default=ROOT / "build" / "release")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page from what is kept")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10000)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--fault-seed", type=int, default=1)
    parser.add_argument("--submits", type=int, default=60000)
    parser.add_argument("--queued", type=int, default=10000)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--lost-workers", type=int, default=10)
    parser.add_argument("--rows", type=int, default=5000000)
    options = parser.parse_args()
    options.results = options.results or options.build / "reliability"
    options.results.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("FUSION_BIN", str(options.build / "bin"))
    for shim in options.build.rglob("libfault_shim.so"):
        os.environ.setdefault("FUSION_FAULT_SHIM", str(shim))
    for name in [] if options.page else options.only or PARTS:
        save = lambda result, name=name: (options.results / (name + ".json")).write_text(
            json.dumps({**result, "measured_on": machine_of()}, indent=1))
        globals()[name](options, save)
    results = {path.stem: json.loads(path.read_text()) for path in options.results.glob("*.json")}
    path = ROOT / "docs" / "reliability.md"
    path.write_text(page(results, path.read_text()))


if __name__ == "__main__":
    main()
