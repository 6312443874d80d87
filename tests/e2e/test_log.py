"""The log of server and workers: one object a line, and a job's id on every line that concerns it."""
import json
import pathlib
import shutil
import tempfile
import unittest

import harness

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "small" / "tiny_encoder.onnx"
FORMAT = ("--log-format", "json", "--log-level", "debug")


class LogTest(unittest.TestCase):
    def test_a_jobs_id_is_in_the_logs_of_server_and_worker(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, "--no-local-worker", *FORMAT)
        self.addCleanup(server.stop)
        server.start()
        worker = server.start_worker("--kinds=sim", "--simulated-measurement=1ms", *FORMAT)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        server.wait_until(server.workers, "the worker is attached")
        done = server.ctl("submit", MODEL, "-o", folder / "out.fusion", "--target", "sim")
        self.assertEqual(done.code, 0, done)
        job = server.ctl("job", "list", "-o", "json").json()["jobs"][0]["job_id"]

        lines = [json.loads(line) for line in (folder / "fusiond.log").read_text().splitlines()]
        for line in lines:
            self.assertLessEqual({"time", "level", "program", "message"}, line.keys(), line)
        said = {(line["program"], line["message"]) for line in lines if line.get("job") == job}
        for expected in (("fusiond", "submitted"), ("fusiond", "started"), ("fusiond", "task leased"),
                         ("fusion-worker", "task begins"), ("fusion-worker", "task ended"), ("fusiond", "succeeded")):
            self.assertIn(expected, said)


if __name__ == "__main__":
    unittest.main()
