"""The machine fails fusiond while a job runs: its clock jumps, its disk is full or does not sync, its network parts. The
shim of fault_shim.cc is the clock and the disk, proxy.py the network."""
import errno
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import fault_shim
import harness
import history_check
import onnx_model
import proxy
import random_faults

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "small" / "tiny_encoder.onnx"
HOUR_NS = 3600 * 10**9
EXIT_FAILED_SYNC = 74  # of server/main.cc
SEEN_S = 2.5  # absl::Now() counts cycles, and looks at the clock every 2.1 s


class FailingMachine(unittest.TestCase):
    def farm(self, measurement="20ms", through=None):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-", dir=random_faults.Run.memory()))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.shim = fault_shim.Shim(folder, folder / "state")
        self.addCleanup(self.shim.close)
        server = harness.Server(folder, "--no-local-worker", variables=self.shim.variables())
        self.addCleanup(server.stop)
        server.start()
        address = None
        if through:
            self.proxy = proxy.Proxy(folder / "p.sock", folder / "s.sock")
            self.addCleanup(self.proxy.stop)
            address = "unix:%s/p.sock" % folder
        worker = server.start_worker("--kinds=sim", "--simulated-measurement=" + measurement, address=address)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        server.wait_until(server.workers, "the worker is attached")
        return server

    def submit(self, server, *args):
        done = server.ctl("submit", MODEL, "--target", "sim", "--detach", *args)
        self.assertEqual(done.code, 0, done)
        return done.out.split()[-1]

    def job(self, server, name):
        return server.ctl("job", "get", name, "-o", "json").json()

    def await_trials(self, server, name):
        """Waits until the job is being measured, or has ended."""
        server.wait_until(lambda: int(server.ctl("profile", "stats", "-o", "json").json().get("measurements", 0)) > 2,
                          "trials run")

    def await_end(self, server, name):
        server.wait_until(lambda: self.job(server, name)["state"] in ("succeeded", "failed", "cancelled"), "the job ends")
        return self.job(server, name)

    def assert_good(self, server, *names):
        """Stops the server; nothing is lost, and the worker was never at fault."""
        server.process.terminate()
        self.assertEqual(server.process.wait(harness.HANG), 0)
        self.assertEqual(history_check.problems(server.state, names, {}), [])

    def test_the_wall_clock_jumps_an_hour_back_and_forth(self):
        server = self.farm()
        name = self.submit(server)
        self.await_trials(server, name)
        for offset, wait_s in ((HOUR_NS, SEEN_S), (-HOUR_NS, SEEN_S), (0, 0.3), (24 * HOUR_NS, 0.3), (0, 0.3)):
            self.shim.set("clock_offset_ns", offset)
            time.sleep(wait_s)
            [worker] = server.workers()
            self.assertEqual(int(worker.get("tasks_failed", 0)), 0, worker)
        self.shim.set("clock_offset_ns", -HOUR_NS)
        time.sleep(SEEN_S)
        second = self.submit(server, "--planner", "none")
        for each in (name, second):
            self.assertEqual(self.await_end(server, each)["state"], "succeeded", server.log_text())
        self.assertNotIn("attempt failed", server.log_text())
        self.assert_good(server, name, second)
        with history_check.database(server.state) as db:
            [[first_ms], [second_ms]] = db.execute("SELECT created_ms FROM jobs ORDER BY number").fetchall()
        self.assertLess(second_ms, first_ms - 40 * 60 * 1000)  # else the clock did not jump

    def test_the_network_is_slow_parts_and_breaks(self):
        server = self.farm(through="proxy")
        name = self.submit(server)
        self.await_trials(server, name)
        self.proxy.delay_s = 0.1
        time.sleep(1)
        self.proxy.parted = True
        time.sleep(2)
        self.proxy.delay_s, self.proxy.parted = 0, False
        for _ in range(3):
            self.proxy.cut()
            time.sleep(0.3)
        self.assertEqual(self.await_end(server, name)["state"], "succeeded", server.log_text())
        self.assert_good(server, name)

    def survive(self, server, error, *acknowledged):
        """The disk refuses every write for a while: nothing of what was acknowledged is lost, and health says so."""
        self.shim.set("write_error", error)
        log = server.folder / "fusiond.log"
        before = len(log.read_text())
        refused = server.ctl("submit", MODEL, "--target", "sim", "--planner", "none", "--detach")
        self.assertNotEqual(refused.code, 0, refused)
        server.wait_until(lambda: "not serving" in log.read_text()[before:], "health says that nothing can be stored")
        self.assertIsNone(server.process.poll())
        self.shim.set("write_error", 0)
        server.wait_until(lambda: "serves again" in log.read_text()[before:], "health says that it can")
        for name in acknowledged:
            self.assertIn(self.await_end(server, name)["state"], ("succeeded", "failed"))
        again = self.submit(server, "--planner", "none")
        self.assertEqual(self.await_end(server, again)["state"], "succeeded", server.log_text())
        return again

    def test_health_follows_files_that_a_full_disk_does_not_take(self):
        server = self.farm()
        self.shim.set("file_write_error", errno.ENOSPC)  # the database has room in its pages
        (server.folder / "new.onnx").write_bytes(onnx_model.mlp())
        refused = server.ctl("submit", "new.onnx", "--target", "sim", "--detach")
        self.assertNotEqual(refused.code, 0, refused)
        server.wait_until(lambda: "not serving" in server.log_text(), "health says that no file can be written")
        self.assertIn("No space left on device", server.log_text().split("not serving")[1])
        self.shim.set("file_write_error", 0)
        server.wait_until(lambda: "serves again" in server.log_text(), "health says that it can")
        name = self.submit(server, "--tune", "off")
        self.assertEqual(self.await_end(server, name)["state"], "succeeded", server.log_text())
        self.assert_good(server, name)

    def test_a_full_disk_stops_nothing_that_was_acknowledged(self):
        server = self.farm()
        name = self.submit(server)
        self.await_trials(server, name)
        self.assert_good(server, name, self.survive(server, errno.ENOSPC, name))

    def test_a_disk_that_does_not_take_writes_stops_nothing_that_was_acknowledged(self):
        server = self.farm()
        name = self.submit(server)
        self.await_trials(server, name)
        self.assert_good(server, name, self.survive(server, errno.EIO, name))

    def test_a_read_only_disk_loses_nothing_and_no_server_starts_on_it(self):
        server = self.farm()
        self.assertEqual(self.await_end(server, self.submit(server, "--tune", "off"))["state"], "succeeded")
        kept = self.survive(server, errno.EROFS)  # nothing runs: health follows the submission that was refused
        self.shim.set("write_error", errno.EROFS)
        self.assertEqual(self.job(server, kept)["state"], "succeeded", "what is there can be read")
        server.kill()
        started = subprocess.run([harness.BIN / "fusiond", "--state", server.state, "--no-local-worker"], timeout=harness.HANG,
                                 env=dict(os.environ, **self.shim.variables()), capture_output=True, text=True)
        self.assertNotEqual(started.returncode, 0, started)
        self.assertIn("Read-only file system", started.stderr)
        self.shim.set("write_error", 0)
        server.start(wait_for_worker=False)
        self.assertEqual(self.job(server, kept)["state"], "succeeded")
        self.assert_good(server, kept)

    def test_a_sync_that_fails_acknowledges_nothing(self):
        server = self.farm()
        for attempt in range(3):
            name = self.submit(server, "--tune", str(1 + attempt))
            self.shim.set("sync_errors", 1)
            told = server.ctl("submit", MODEL, "--target", "sim", "--tune", str(4 + attempt), "--detach")
            acknowledged = [name] + ([told.out.split()[-1]] if told.code == 0 else [])
            self.assert_ends_for_a_sync(server)
            self.shim.lose_unsynced()
            server.start(wait_for_worker=False)
            for each in acknowledged:
                self.assertEqual(self.await_end(server, each)["state"], "succeeded", server.log_text())
        self.assert_good(server)

    def test_a_checkpoint_that_cannot_be_synced_ends_the_server(self):
        server = self.farm(measurement="1ms")
        self.shim.set("database_sync_errors", 1)
        acknowledged = []
        for number in range(100):  # enough pages for a checkpoint
            told = server.ctl("submit", MODEL, "--target", "sim", "--tune", str(2 + number), "--detach")
            if told.code != 0:
                break
            acknowledged.append(told.out.split()[-1])
        self.assert_ends_for_a_sync(server)
        self.shim.lose_unsynced()
        server.start(wait_for_worker=False)
        for each in acknowledged:
            self.assertEqual(self.await_end(server, each)["state"], "succeeded", server.log_text())
        self.assert_good(server, *acknowledged)

    def assert_ends_for_a_sync(self, server):
        """It goes on in no way after a sync that failed."""
        self.assertEqual(server.process.wait(harness.HANG), EXIT_FAILED_SYNC, server.log_text())
        self.assertIn("the disk failed a sync", server.log_text())


if __name__ == "__main__":
    unittest.main()
