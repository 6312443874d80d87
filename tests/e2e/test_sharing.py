"""How callers share a server: priorities, limits that clients obey, lists in pages, transfers that go on."""
import socket
import threading
import unittest

import harness
import onnx_model


class Sharing(harness.ServerTest):
    server_args = ("--no-local-worker", "--jobs-per-caller", "2", "--threads", "1")

    def submit_model(self, seed, *args, code=0):
        model = self.write("m%d.onnx" % seed, onnx_model.mlp(seed=seed))
        return self.ctl("submit", model, "--target", "cuda:sm_90", "--tune", "off", "--detach", *args, code=code)

    def test_a_refusal_is_obeyed_as_long_as_the_submission_would_wait(self):
        # Both wait for somebody who builds.
        first = self.submit_model(1).out.strip()
        second = self.submit_model(2, "--priority", "high").out.strip()
        self.assertEqual(self.ctl("job", "get", second, "-o", "json").json()["priority"], 10)
        self.assertIn("--priority 'urgent'", self.submit_model(3, "--priority", "urgent", code=2).err)
        refused = self.submit_model(3, "--queue-timeout", "1", code=8)
        self.assertIn("caller 'local' has 2 jobs in flight", refused.err)

        model = self.write("m4.onnx", onnx_model.mlp(seed=4))
        patient = self.server.start_ctl("submit", model, "--target", "cuda:sm_90", "--tune", "off", "--detach")
        said = ""
        while "again in 5s" not in said:
            line = patient.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.ctl("job", "cancel", first)
        out, _ = patient.communicate(timeout=harness.HANG)
        self.assertEqual(patient.returncode, 0)
        third = out.strip()
        newest = self.ctl("job", "list", "--limit", "1", "-o", "json").json()["jobs"]
        self.assertEqual([job["job_id"] for job in newest], [third])
        for job in (second, third):
            self.ctl("job", "cancel", job)

    def test_the_first_event_of_a_job_without_a_worker_says_so(self):
        model = self.write("first.onnx", onnx_model.mlp(seed=9))
        job = self.ctl("submit", model, "--tune", "off", "--detach").out.strip()
        watch = self.server.start_ctl("job", "watch", job)
        self.assertIn("no worker for cpu; kinds attached: none", watch.stderr.readline())
        self.ctl("job", "cancel", job)
        watch.communicate(timeout=harness.HANG)


class Cutter:
    """Passes connections on to a server, and cuts the first one that has received `limit` bytes from it."""

    def __init__(self, path, target, limit):
        self.target, self.limit, self.cuts = target, limit, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            for source, sink, counted in ((near, far, False), (far, near, True)):
                threading.Thread(target=self.pump, args=(source, sink, counted), daemon=True).start()

    def pump(self, source, sink, counted):
        passed = 0
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                passed += len(data)
                if counted and self.cuts == 0 and passed > self.limit:
                    self.cuts += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Transfers(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def test_a_download_that_is_cut_goes_on_where_it_stopped(self):
        worker = self.server.start_worker("--kinds=sim", "--simulated-measurement=1ms")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(self.server.workers, "the worker is attached")
        model = self.write("wide.onnx", onnx_model.mlp(seed=5, widths=(16, 1024, 1024, 16)))
        job = self.ctl("submit", model, "--target", "sim", "--tune", "off", "--detach").out.strip()
        self.ctl("job", "watch", job, "-o", self.folder / "whole.fusion")
        size = (self.folder / "whole.fusion").stat().st_size
        self.assertGreater(size, 4 << 20)
        cutter = Cutter(self.folder / "cut.sock", self.server.address[len("unix:"):], 3 << 20)
        self.addCleanup(cutter.listener.close)
        fetched = self.ctl("bundle", "get", job, "-o", self.folder / "cut.fusion", "--server",
                           "unix:%s/cut.sock" % self.folder)
        self.assertEqual(cutter.cuts, 1)
        self.assertIn("again in", fetched.err)
        self.assertEqual((self.folder / "cut.fusion").read_bytes(), (self.folder / "whole.fusion").read_bytes())


class Pages(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def test_lists_are_whole_though_they_come_in_pages(self):
        model = self.write("paged.onnx", onnx_model.mlp(seed=6))
        jobs = []
        for _ in range(5):  # the first makes a job, the others join it
            jobs.append(self.ctl("submit", model, "--tune", "off", "--detach").out.strip())
        self.assertEqual(len(set(jobs)), 5)
        for limit in (1, 3, 50):
            listed = [job["job_id"] for job in
                      self.ctl("job", "list", "--limit", str(limit), "-o", "json").json()["jobs"]]
            self.assertEqual(listed, list(reversed(jobs))[:limit])
        for name in "abc":
            self.ctl("auth", "token", "create", name, "--role", "client", "--to", self.folder / name)
        self.assertEqual(len(self.ctl("auth", "token", "list", "-o", "json").json()["tokens"]), 3)
        limited = self.ctl("auth", "token", "list", "--limit", "2", "-o", "json").json()["tokens"]
        self.assertEqual([token["name"] for token in limited], ["a", "b"])


if __name__ == "__main__":
    unittest.main()
