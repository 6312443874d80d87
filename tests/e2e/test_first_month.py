"""What a company meets in the first month: a disk that fills, and processes that die with secrets in their memory."""
import pathlib
import unittest

import harness
import onnx_model


class Watermark(harness.ServerTest):
    server_args = ("--no-local-worker", "--least-free", "1000TiB")

    def test_submissions_are_refused_while_the_disk_has_less_than_it_shall(self):
        refused = self.ctl("submit", self.write("m.onnx", onnx_model.mlp(seed=1)), "--queue-timeout", "1", code=8)
        self.assertRegex(refused.err, r"the server's disk has \d+ MiB left, less than 1048576000; free some or give it a larger one")
        self.server.wait_until(lambda: "takes no new jobs" in self.server.ctl("doctor").out, "health says so")
        self.assertEqual(self.ctl("job", "list", "-o", "json").json().get("jobs", []), [])


class CoreDumps(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def test_server_and_worker_write_none(self):
        worker = self.server.start_worker("--kinds=sim")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(self.server.workers, "the worker is attached")
        for process in (self.server.process, worker):
            limits = pathlib.Path("/proc/%d/limits" % process.pid).read_text()
            self.assertRegex(limits, r"Max core file size +0 +0 ")


if __name__ == "__main__":
    unittest.main()
