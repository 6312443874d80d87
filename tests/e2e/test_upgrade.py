"""Today's server on the state folder of an earlier one (fixtures/README.md)."""
import hashlib
import pathlib
import shutil
import sqlite3
import tarfile
import tempfile
import unittest

import harness

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
SUCCEEDED, RAN = "j-XCX6ZR5EJW", "j-WYB33RSJ4X"


class Upgrade(unittest.TestCase):
    def test_a_state_folder_of_schema_16_loses_nothing(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, "--no-local-worker")
        self.addCleanup(server.stop)
        with tarfile.open(FIXTURES / "state_schema_16.tar.xz") as archive:
            archive.extractall(server.state)
        server.start()
        copy = sqlite3.connect(server.state / "fusion.db.v16.bak")
        self.addCleanup(copy.close)
        self.assertEqual(copy.execute("PRAGMA user_version").fetchone(), (16,), "a copy from before the change")

        jobs = {job["job_id"]: job for job in server.ctl("job", "list", "-o", "json").json()["jobs"]}
        self.assertEqual(set(jobs), {SUCCEEDED, RAN})
        self.assertEqual(jobs[SUCCEEDED]["state"], "succeeded")
        self.assertEqual(jobs[SUCCEEDED]["owner"], "local")
        self.assertIn(jobs[RAN]["state"], ("queued", "running"), "it starts again")
        done = server.ctl("bundle", "get", SUCCEEDED, "-o", folder / "old.fusion")
        self.assertEqual(done.code, 0, done)
        digest = hashlib.sha256((folder / "old.fusion").read_bytes()).hexdigest()
        self.assertEqual(digest, jobs[SUCCEEDED]["bundle"]["digest"])
        self.assertIn("succeeded", server.ctl("job", "watch", SUCCEEDED).out)
        self.assertIn("ci", server.ctl("auth", "token", "list").out)
        self.assertEqual(server.ctl("profile", "stats", "-o", "json").json()["measurements"], 2)
        self.assertEqual(server.ctl("admin", "check").code, 0)

        worker = server.start_worker("--name", "rack7", "--kinds=sim", "--simulated-measurement=1ms")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        server.wait_until(server.workers, "the worker is attached")
        self.assertEqual(server.workers()[0]["state"], "drained", "as its operator left it")
        released = server.ctl("worker", "release", "rack7")
        self.assertIn("new fans", released.out)
        ended = server.ctl("job", "watch", RAN, "-o", folder / "new.fusion")
        self.assertEqual(ended.code, 0, ended)
        again = server.ctl("submit", server.state / "m.onnx", "--planner", "none", "--target", "sim", "--tune", "off",
                           "-o", folder / "again.fusion")
        self.assertIn("from the store", again.err)
        server.stop()
        backups = list(server.state.glob("*.bak"))
        later = harness.Server(folder, "--no-local-worker")
        self.addCleanup(later.stop)
        later.start()
        self.assertEqual(list(later.state.glob("*.bak")), backups, "nothing is left to change")


if __name__ == "__main__":
    unittest.main()
