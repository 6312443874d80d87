"""How often a real fusiond waits for the disk, and what becomes of the files for which it does not."""
import os
import pathlib
import re
import shutil
import tempfile
import unittest
import urllib.request

import harness

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "small" / "tiny_encoder.onnx"


class Syncs(unittest.TestCase):
    def farm(self, *args, variables=None, measurement="20ms"):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, "--no-local-worker", "--metrics", "127.0.0.1:0", *args, variables=variables)
        self.addCleanup(server.stop)
        server.start()
        worker = server.start_worker("--kinds=sim", "--simulated-measurement=" + measurement)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        server.wait_until(lambda: len(server.workers()) == 1, "the worker is attached")
        return server

    def submit(self, server):
        done = server.ctl("submit", MODEL, "-o", server.folder / "out.fusion", "--target", "sim")
        self.assertEqual(done.code, 0, "%s\n%s" % (done, server.log_text()))

    def tasks(self, server, outcome):
        """Ended tasks by kind: {"build": 3, "measure": 40}."""
        port = re.findall(r"metrics[^\n]*127\.0\.0\.1:(\d+)", (server.folder / "fusiond.log").read_text())[-1]
        text = urllib.request.urlopen("http://127.0.0.1:%s/metrics" % port, timeout=20).read().decode()
        found = {}
        for labels, value in re.findall(r"^fusion_tasks_total\{([^}]*)\} (\S+)$", text, re.M):
            if 'outcome="%s"' % outcome in labels:
                found[re.search(r'kind="(\w+)"', labels).group(1)] = int(float(value))
        return found

    def test_a_trial_waits_for_the_disk_three_times_at_most(self):
        log = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-")) / "syncs"
        self.addCleanup(shutil.rmtree, log.parent, ignore_errors=True)
        server = self.farm(variables={"LD_PRELOAD": os.environ["FUSION_SYNC_COUNTER"], "FUSION_SYNC_LOG": str(log)})
        before = len(log.read_text().splitlines())
        self.submit(server)
        lines = [line.split(" ", 1)[1] for line in log.read_text().splitlines()[before:] if line.startswith("fusiond ")]
        done = self.tasks(server, "succeeded")
        self.assertGreater(done["measure"], 20, done)
        events = server.ctl("job", "watch", server.ctl("job", "list", "-o", "json").json()["jobs"][0]["job_id"]).err
        commits = sum(line.endswith("fusion.db-wal") for line in lines)
        checkpoints = sum(line.endswith("fusion.db") for line in lines)
        others = [line for line in lines if "/fusion.db" not in line]
        print("\n%d commits, %d checkpoints, %d other syncs; tasks: %s" % (commits, checkpoints, len(others), done))
        # A checkpoint syncs the log before the database, and the log's beginning after it. A job has a few commits of
        # its own: it is inserted, starts, ends, has its model and bundle, and stores events.
        trials = done["measure"] + done["build"]
        self.assertLessEqual(commits, 3 * trials + done["build"] + events.count("\n") + 10 + 2 * checkpoints)
        # Files that are synced are the model, binaries and the bundle, each with its folders.
        self.assertFalse([line for line in others if "payloads" in line])
        blobs = [p for p in (server.state / "blobs").glob("??/*")]
        synced = [line for line in others if "/blobs/tmp/" in line or "/work/" in line]
        self.assertLessEqual(len(synced), len(blobs) + 4, synced)
        self.assertFalse(list((server.state / "blobs" / "payloads").iterdir()))

    def test_payloads_that_a_power_cut_took_are_made_again(self):
        server = self.farm(measurement="50ms")
        client = server.start_ctl("submit", MODEL, "-o", server.folder / "out.fusion", "--target", "sim")
        payloads = server.state / "blobs" / "payloads"
        server.wait_until(lambda: self.tasks(server, "succeeded").get("measure", 0) > 2 and any(payloads.iterdir()),
                          "trials run")
        server.kill()
        left = sorted(p for p in payloads.iterdir())
        self.assertTrue(left)
        for i, path in enumerate(left):  # what was not synced: missing, empty, or as long as it was and full of zeros
            if i % 3 == 0:
                path.unlink()
            else:
                path.write_bytes(bytes(path.stat().st_size if i % 3 == 1 else 0))
        server.start(wait_for_worker=False)
        self.addCleanup(client.communicate)
        jobs = lambda: server.ctl("job", "list", "-o", "json").json()["jobs"]
        server.wait_until(lambda: jobs()[0]["state"] in ("succeeded", "failed"), "the job ends")
        self.assertEqual(jobs()[0]["state"], "succeeded", server.log_text())
        self.assertEqual(self.tasks(server, "failed"), {})
        for worker in server.workers():
            self.assertEqual(int(worker.get("tasks_failed", 0)), 0)
        server.ctl("job", "watch", jobs()[0]["job_id"])
        self.assertEqual(server.ctl("admin", "check").code, 0)


if __name__ == "__main__":
    unittest.main()
