"""Random faults against real processes: fusiond, workers, compilations and clients are killed at moments that a seed
chooses, and what the server left behind is judged. A program and a module; README.md says how it is run."""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import fault_shim
import harness
import history_check
import onnx_model

COMPILER = "fusion-compile-job"[:15]
# Kinds of faults, and how often each is drawn.
KINDS = {"server": 8, "server_before_sync": 3, "server_after_sync": 3, "worker": 4, "compilation": 4, "client": 3}


class Run:
    """One farm under faults. `power`: a server that is killed also loses what it has not synced."""

    def __init__(self, seed, power=True, synchronous_off=False, workers=2, log=lambda words: None):
        self.seed, self.random, self.log, self.power = seed, random.Random(seed), log, power
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-", dir=self.memory()))
        self.shim = fault_shim.Shim(self.folder, self.folder / "state")
        self.shim.set("synchronous_off", int(synchronous_off))
        self.server = harness.Server(self.folder, "--no-local-worker", variables=self.shim.variables())
        self.workers = [None] * workers
        self.acknowledged, self.ended, self.problems = set(), {}, []
        self.counts = {kind: 0 for kind in KINDS}
        self.recoveries, self.lost_writes, self.submitted = [], 0, 0
        # Held by whoever reads the database, and from a kill of fusiond to its restart: a power cut ends readers, too. One
        # that lived on would keep SQLite's index of a log that is no longer what it was.
        self.reading = threading.Lock()
        self.lock, self.over, self.clients = threading.Lock(), threading.Event(), []

    @staticmethod
    def memory():
        """The shim is the disk, so that the real one needs not be waited for."""
        return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

    # Processes.

    def start_server(self):
        """Returns the seconds from exec to the first answer."""
        began = time.monotonic()
        self.server.process = subprocess.Popen(
            [harness.BIN / "fusiond", "--state", self.server.state, "--listen", self.server.address, *self.server.args],
            stdout=self.server.log, stderr=self.server.log, env=dict(os.environ, **self.server.variables))
        while self.server.ctl("job", "list", timeout=60).code != 0:
            if self.server.process.poll() is not None or time.monotonic() - began > 120:
                raise AssertionError("fusiond does not start: %s" % self.server.log_text())
        return time.monotonic() - began

    def start_worker(self, i):
        self.workers[i] = subprocess.Popen(
            [harness.BIN / "fusion-worker", "--server", self.server.address, "--state", self.folder / ("worker%d" % i),
             "--name", "sim%d" % i, "--kinds=sim", "--simulated-measurement=3ms"],
            stdout=self.server.log, stderr=self.server.log)

    def model(self, number):
        """A new model every time, of shapes that partly return."""
        own = random.Random(number)
        if own.random() < 0.5:
            return onnx_model.mlp(seed=number, widths=[8 * own.randint(1, 12) for _ in range(3)])
        return onnx_model.elementwise_and_softmax(seed=number, rows=own.randint(2, 60), columns=8 * own.randint(1, 8))

    def client(self, number):
        """Submits models one after another. A submission counts as acknowledged when fusionctl has printed its name."""
        while not self.over.is_set():
            if self.unfinished() > 6:  # a queue that only grows would take longer to end than the faults
                time.sleep(0.02)
                continue
            with self.lock:
                self.submitted += 1
                name = "m%d.onnx" % self.submitted
                (self.folder / name).write_bytes(self.model(self.submitted))
            process = self.server.start_ctl("submit", name, "--target", "sim", "--tune", "4", "--detach")
            with self.lock:
                self.clients.append(process)
            out, _ = process.communicate()
            with self.lock:
                self.clients.remove(process)
                if process.returncode == 0:
                    self.acknowledged.add(out.split()[-1])
            (self.folder / name).unlink()
            if process.returncode != 0:
                time.sleep(0.05)

    def submit_one(self):
        (self.folder / "one.onnx").write_bytes(self.model(1))
        done = self.server.ctl("submit", "one.onnx", "--target", "sim", "--tune", "4", "--detach")
        if done.code != 0:
            raise AssertionError(str(done))
        return done.out.split()[-1]

    def look(self):
        """Remembers which jobs have been seen to end."""
        listed = self.server.ctl("job", "list", "--limit", "60", "-o", "json", timeout=60)
        if listed.code != 0:
            return
        for job in listed.json()["jobs"]:
            if job["state"] in ("succeeded", "failed", "cancelled"):
                self.ended[job["job_id"]] = (job["state"], job.get("bundle", {}).get("digest", ""))

    # Faults.

    def server_dies(self, how=None):
        if how is not None:
            self.shim.set(how, self.random.randint(1, 12))
            deadline = time.monotonic() + 3  # an idle server does not sync
            while self.server.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.002)
        with self.reading:
            self.end_and_restart()

    def end_and_restart(self):
        self.server.kill()
        self.shim.set("die_at_sync", 0)
        self.shim.set("die_after_sync", 0)
        if self.power:
            # A disk may have written all, none or some of what it was not told to sync.
            mode = self.random.choice(("none", "some", "all"))
            if mode != "all":
                self.lost_writes += self.shim.lose_unsynced(self.random if mode == "some" else None)
            else:
                self.shim.journal.write_bytes(b"")
        try:
            with history_check.database(self.server.state) as db:
                [[integrity]] = db.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.Error as error:
            integrity = "the database cannot be read: %s" % error
        if integrity != "ok":
            self.problems.append("after a kill: " + integrity)
            return
        try:
            self.recoveries.append(self.start_server())
        except AssertionError as error:
            self.problems.append("after a kill: %s" % str(error)[-400:])

    def fault(self):
        kind = self.random.choices(list(KINDS), KINDS.values())[0]
        time.sleep(self.random.uniform(0, 0.7))
        self.look()
        if kind == "compilation":
            victims = [pid for pid in harness.children_of(self.server.process.pid) if name_of(pid) == COMPILER]
            if not victims:
                kind = "server"
            else:
                kill(self.random.choice(victims))
        if kind == "client":
            with self.lock:
                victims = list(self.clients)
            if victims:
                self.random.choice(victims).kill()
        if kind == "worker":
            i = self.random.randrange(len(self.workers))
            self.workers[i].kill()
            self.workers[i].wait()
            self.start_worker(i)
        if kind.startswith("server"):
            how = {"server_before_sync": "die_at_sync", "server_after_sync": "die_after_sync"}.get(kind)
            self.server_dies(how)
        self.counts[kind] += 1

    # The run.

    def judge(self):
        """Waits until everything acknowledged has ended, stops the server and looks at what it has left."""
        deadline = time.monotonic() + 240
        while self.unfinished() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.look()
        self.server.process.terminate()
        if self.server.process.wait(60) != 0:
            self.problems.append("the server ends with %s" % self.server.process.returncode)
        try:
            self.problems += history_check.problems(self.server.state, sorted(self.acknowledged), self.ended)
        except sqlite3.Error as error:
            self.problems.append("the database cannot be read: %s" % error)

    def unfinished(self):
        """How many jobs have not ended, as the last commit says; 0 if that cannot be read now."""
        try:
            with self.reading, history_check.database(self.server.state) as db:
                return db.execute("SELECT COUNT(*) FROM jobs WHERE state < 3").fetchone()[0]
        except sqlite3.Error:
            return 0

    def submit_in_background(self, clients):
        self.over.clear()
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        return threads

    def end_clients(self, threads):
        self.over.set()
        for thread in threads:
            thread.join()

    def faults(self, count, judge_every=50, clients=2, judged=lambda report: None):
        """Returns whether nothing is wrong. Calls `judged` with the report so far."""
        self.start_server()
        for i in range(len(self.workers)):
            self.start_worker(i)
        done = 0
        while done < count and not self.problems:
            threads = self.submit_in_background(clients)
            try:
                for _ in range(min(judge_every, count - done)):
                    self.fault()
                    done += 1
                    if self.problems:
                        break
            finally:
                self.end_clients(threads)
            if not self.problems:
                self.judge()
            self.log("%d faults, %d jobs acknowledged, %d unsynced writes lost: %s"
                     % (done, len(self.acknowledged), self.lost_writes, self.problems or "nothing is wrong"))
            judged(self.report())
            if done < count and not self.problems:
                self.start_server()
        return not self.problems

    def close(self):
        self.over.set()
        for process in [*self.workers, self.server.process]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        self.server.log.close()
        self.shim.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def report(self):
        recoveries = sorted(self.recoveries) or [0.0]
        at = lambda share: round(recoveries[min(len(recoveries) - 1, int(share * len(recoveries)))], 3)
        return {"seed": self.seed, "faults": self.counts, "acknowledged": len(self.acknowledged), "seen_to_end": len(self.ended),
                "lost_writes": self.lost_writes, "recoveries": len(self.recoveries), "recovery_p50_s": at(0.5),
                "recovery_p99_s": at(0.99), "recovery_max_s": round(recoveries[-1], 3), "problems": self.problems}


def name_of(pid):
    try:
        return pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
    except OSError:  # it has ended in the meantime
        return ""


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--synchronous-off", action="store_true", help="SQLite does not sync: something must get lost")
    parser.add_argument("--report", type=pathlib.Path, help="the report so far, written again after every fifty faults")
    options = parser.parse_args()
    run = Run(options.seed, synchronous_off=options.synchronous_off,
              log=lambda words: print(time.strftime("%H:%M:%S"), words, file=sys.stderr, flush=True))
    try:
        good = run.faults(options.faults, judged=lambda report: options.report and options.report.write_text(json.dumps(report)))
        print(json.dumps(run.report(), indent=1))
    finally:
        run.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
