"""The log of server and workers: one object a line, and a job's id on every line that concerns it."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest
import unittest.mock

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

        trace = server.ctl("job", "get", job, "-o", "json").json()["trace_id"]
        with_trace = {line["program"] for line in lines if line.get("trace") == trace}
        self.assertEqual(with_trace, {"fusiond", "fusion-worker"})
        shown = server.ctl("job", "logs", job, "-o", "jsonl")
        self.assertEqual(shown.code, 0, shown)
        self.assertIn(trace, shown.err)
        kept = [json.loads(line) for line in shown.out.splitlines()]
        self.assertEqual([line["number"] for line in kept], sorted({line["number"] for line in kept}))
        said = {(line["source"].split()[0], line["message"]) for line in kept}
        for expected in (("server", "submitted"), ("server", "stage ended"), ("compilation", "compiling"),
                         ("compilation", "the compilation's process has ended"), ("worker", "task ended"),
                         ("server", "compiled"), ("server", "succeeded")):
            self.assertIn(expected, said)
        text = server.ctl("job", "logs", job, "--level", "info").out
        self.assertIn(" info ", text)
        self.assertNotIn(" debug ", text)

    def test_a_compilation_that_dies_leaves_its_last_words_and_a_trace_comes_from_the_environment(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        script = folder / "compile-job"
        script.write_text("#!/bin/sh\nexec %s \"$@\" --fault tiny_encoder.onnx:simplify:abort\n"
                          % (harness.BIN / "fusion-compile-job"))
        script.chmod(0o700)
        server = harness.Server(folder, "--no-local-worker", "--compile-program", script)
        self.addCleanup(server.stop)
        server.start()
        worker = server.start_worker("--kinds=sim", "--simulated-measurement=1ms")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        server.wait_until(server.workers, "the worker is attached")
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        with unittest.mock.patch.dict(os.environ, TRACEPARENT="00-%s-00f067aa0ba902b7-01" % trace):
            done = server.ctl("submit", MODEL, "-o", folder / "out.fusion", "--target", "sim")
        self.assertEqual(done.code, 1, done)
        job = server.ctl("job", "list", "-o", "json").json()["jobs"][0]["job_id"]
        self.assertEqual(server.ctl("job", "get", job, "-o", "json").json()["trace_id"], trace)
        logs = server.ctl("job", "logs", job, "--follow").out
        self.assertIn("status='signal 6'", logs)
        self.assertIn("simplify", logs)
        server.stop()
        again = harness.Server(folder, "--no-local-worker")
        self.addCleanup(again.stop)
        again.start()
        self.assertEqual(again.ctl("job", "logs", job).out, logs, "it is kept with the job")


if __name__ == "__main__":
    unittest.main()
