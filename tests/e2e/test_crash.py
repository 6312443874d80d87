"""Processes are killed at bad moments; acknowledged jobs are finished all the same."""
import hashlib
import os
import pathlib
import random
import select
import shutil
import signal
import sqlite3
import tempfile
import unittest

import harness
import onnx_model


def slow_model(seed):
    """Many kernels of different shape, so that building them takes a while."""
    widths = [48 + 16 * ((i * 7 + seed) % 13) for i in range(14)]
    return onnx_model.mlp(seed=seed, widths=widths, batch=17)


def large_model(side=4096):
    """64 MiB of one weight, which is uploaded in many chunks."""
    weight = onnx_model.tensor("w", [side, side], raw=random.Random(1).randbytes(4 * side * side))
    return onnx_model.model([onnx_model.node("MatMul", ["x", "w"], ["y"], "mm")], [onnx_model.value("x", [1, side])],
                            [onnx_model.value("y", [1, side])], [weight])


class CrashTest(unittest.TestCase):
    def server(self, *args, **options):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, *args)
        self.addCleanup(server.stop)
        (folder / "slow.onnx").write_bytes(slow_model(1))
        return server.start(**options)

    def the_job(self, server, *states):
        """Waits until there is a job in one of `states`; its name."""
        found = []

        def there():
            jobs = server.ctl("job", "list", "-o", "json").json()["jobs"]
            found[:] = [j["job_id"] for j in jobs if j["state"] in states]
            return found

        server.wait_until(there, "a job is %s" % (states,))
        return found[0]

    def end(self, process):
        process.kill()
        process.wait()

    def finish(self, process, code=0, seconds=harness.HANG):
        out, err = process.communicate(timeout=seconds)
        self.assertEqual(process.returncode, code, out + err)
        return out, err

    def test_server_killed_in_the_middle_of_a_submit(self):
        server = self.server()
        submit = server.start_ctl("submit", "slow.onnx", "--tune", "off", "--planner", "none", "-o", "slow.fusion")
        job = self.the_job(server, "running", "queued", "succeeded")
        watch = server.start_ctl("job", "watch", job)
        watch.stderr.readline()  # the client is attached, or the job is over
        server.kill()
        server.start()
        self.finish(submit)
        self.finish(watch)
        self.assertEqual(server.ctl("job", "get", job, "-o", "json").json()["state"], "succeeded")
        self.assertEqual(server.ctl("run", "slow.fusion", "--random", "1").code, 0)

    def test_server_killed_in_the_middle_of_an_upload(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        (server.folder / "large.onnx").write_bytes(large_model())
        blobs = server.state / "blobs"
        submit = server.start_ctl("submit", "large.onnx", "--tune", "off", "--detach")
        server.wait_until(lambda: submit.poll() is not None or len(os.listdir(blobs)) > 1, "a chunk has its name")
        server.kill()
        with sqlite3.connect(server.state / "fusion.db") as database:
            rows = database.execute("SELECT digest, size_bytes FROM blobs").fetchall()
        for digest, size_bytes in rows:
            bytes_ = (blobs / digest[:2] / digest).read_bytes()
            self.assertEqual((hashlib.sha256(bytes_).hexdigest(), len(bytes_)), (digest, size_bytes))
        server.start(wait_for_worker=False)
        submit.communicate(timeout=harness.HANG)  # whether it has failed depends on the moment
        again = server.ctl("submit", "large.onnx", "--tune", "off", "--detach")
        self.assertEqual(again.code, 0, again)

    def test_the_local_worker_ends_with_a_killed_server(self):
        server = self.server()
        children = [os.pidfd_open(pid) for pid in harness.children_of(server.process.pid)]
        self.assertTrue(children)
        server.kill()
        for child in children:
            with os.fdopen(child) as file:
                ended, _, _ = select.select([file], [], [], harness.HANG)
            self.assertTrue(ended, "a worker lives on without its server")

    def test_server_killed_while_a_job_waits_for_a_worker(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        submit = server.start_ctl("submit", "slow.onnx", "--tune", "off", "-o", "slow.fusion")
        job = self.the_job(server, "running", "queued")
        server.kill()
        server.start(wait_for_worker=False)
        self.assertIn(server.ctl("job", "get", job, "-o", "json").json()["state"], ("running", "queued"))
        worker = server.start_worker("--name", "late")
        self.addCleanup(self.end, worker)
        self.finish(submit)
        self.assertEqual(server.ctl("job", "get", job, "-o", "json").json()["state"], "succeeded")
        self.assertEqual(server.ctl("run", "slow.fusion", "--random", "1").code, 0)

    def test_interrupted_submit_goes_on(self):
        # Without a worker the job cannot be over before the interrupt arrives.
        server = self.server("--no-local-worker", wait_for_worker=False)
        submit = server.start_ctl("submit", "slow.onnx", "--tune", "off", "-o", "slow.fusion")
        job = self.the_job(server, "running", "queued")
        submit.send_signal(signal.SIGINT)
        _, err = self.finish(submit, 130)
        self.assertIn("fusionctl job watch " + job, err)
        self.assertIn("fusionctl job cancel " + job, err)
        self.assertFalse((server.folder / "slow.fusion").exists())
        worker = server.start_worker("--name", "late")
        self.addCleanup(self.end, worker)
        watched = server.ctl("job", "watch", job, "-o", "slow.fusion")
        self.assertEqual(watched.code, 0, watched)
        self.assertTrue((server.folder / "slow.fusion").exists())

    def test_cancelled_job(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        submit = server.start_ctl("submit", "slow.onnx", "--tune", "off")
        job = self.the_job(server, "running", "queued")
        self.assertEqual(server.ctl("job", "cancel", job).code, 0)
        _, err = self.finish(submit, 1)
        self.assertIn("cancelled", err)

    def test_a_worker_of_another_process_compiles(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        submit = server.start_ctl("submit", "slow.onnx", "--tune", "off", "-o", "slow.fusion")
        worker = server.start_worker("--name", "remote")
        self.addCleanup(self.end, worker)
        self.finish(submit)
        self.assertEqual([w["info"]["name"] for w in server.workers()], ["remote"])
        worker.terminate()
        self.assertEqual(worker.wait(harness.HANG), 0)

    def test_a_killed_workers_task_goes_to_another(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        first = server.start_worker("--name", "first")
        server.wait_until(server.workers, "the first worker is attached")
        submit = server.start_ctl("submit", "slow.onnx", "--tune", "off", "--planner", "none", "-o", "slow.fusion")
        server.wait_until(lambda: submit.poll() is not None or any(w["state"] == "busy" for w in server.workers()),
                          "the worker is busy")
        first.kill()
        first.wait()
        second = server.start_worker("--name", "second")
        self.addCleanup(self.end, second)
        self.finish(submit)

    def test_measurements_that_crash_cost_neither_worker_nor_server(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        script = server.folder / "crash"
        script.write_text("#!/bin/sh\necho last words >&2\nkill -SEGV $$\n")
        script.chmod(0o755)
        worker = server.start_worker("--name", "crashing", "--measure-program", script)
        self.addCleanup(self.end, worker)
        (server.folder / "yellow.onnx").write_bytes(onnx_model.elementwise_and_softmax())
        done = server.ctl("submit", "yellow.onnx", "-o", "yellow.fusion")
        self.assertIn(done.code, (0, 1), done)
        self.assertIsNone(worker.poll())
        self.assertEqual([w["info"]["name"] for w in server.workers()], ["crashing"])
        self.assertEqual(server.ctl("profile", "stats", "-o", "json").json()["measurements"], 0)


if __name__ == "__main__":
    unittest.main()
