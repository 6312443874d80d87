"""Each compilation is a process of its own: whatever it does to itself is the failure of one job."""
import hashlib
import os
import pathlib
import select
import shutil
import signal
import tempfile
import unittest

import harness
import onnx_model

COMPILER = "fusion-compile-job"


def compilers_of(server):
    """Process ids of the compilations that run."""
    def name(pid):
        try:
            return pathlib.Path("/proc/%d/comm" % pid).read_text().strip()
        except OSError:  # it has ended in the meantime
            return ""
    return [pid for pid in harness.children_of(server.process.pid) if name(pid) == COMPILER[:15]]


def own_control_group(name):
    """A new group below the root whose members can limit the memory of groups below it, or None."""
    root = pathlib.Path("/sys/fs/cgroup")
    try:
        if not {"memory", "pids"} <= set((root / "cgroup.subtree_control").read_text().split()):
            return None
        (root / name).mkdir()
    except OSError:
        return None
    return root / name


def remove_groups(group):
    for inner in [*group.iterdir(), group]:
        if inner.is_dir():
            inner.rmdir()


class CompileProcessTest(unittest.TestCase):
    def server(self, *args, preexec_fn=None, **options):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, *args, preexec_fn=preexec_fn)
        self.addCleanup(server.stop)
        for seed, name in enumerate(("good", "bad", "other")):
            (folder / (name + ".onnx")).write_bytes(onnx_model.mlp(seed=seed))
        return server.start(**options)

    def faulty(self, *faults):
        """A program that compiles, and fails at the stages and models of `faults`."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        program = folder / COMPILER
        program.write_text("#!/bin/sh\nexec %s \"$@\" %s\n"
                           % (harness.BIN / COMPILER, " ".join("--fault " + fault for fault in faults)))
        program.chmod(0o755)
        return program

    def job(self, server, name):
        [job] = [j for j in server.ctl("job", "list", "-o", "json").json()["jobs"] if j["model_name"] == name]
        return server.ctl("job", "get", job["job_id"], "-o", "json").json()

    def events(self, server, name):
        """The messages of a finished job."""
        words = server.ctl("job", "watch", self.job(server, name)["job_id"]).err
        self.assertIn("import", words)
        return words

    def await_compiler(self, server):
        server.wait_until(lambda: compilers_of(server), "a model is compiled")
        return compilers_of(server)[0]

    def assert_ends(self, handle):
        """The process of a pidfd ends."""
        with os.fdopen(handle) as file:
            self.assertTrue(select.select([file], [], [], harness.HANG)[0], "a compilation lives on")

    def test_each_death_is_one_jobs_failure(self):
        for fault, words in (("plan:abort", "ended by signal 6"), ("import:memory", "more than the 1.0 GiB"),
                             ("simplify:leak", "more than the 1.0 GiB"), ("plan:loop", "--compile-time")):
            with self.subTest(fault):
                server = self.server("--compile-program", self.faulty("bad.onnx:" + fault), "--compile-memory", "1GiB",
                                     "--compile-time", "3")
                pid = server.process.pid
                bad = server.start_ctl("submit", "bad.onnx", "--tune", "off", "-o", "bad.fusion")
                good = server.ctl("submit", "good.onnx", "--tune", "off", "-o", "good.fusion")
                self.assertEqual(good.code, 0, good)
                _, err = bad.communicate(timeout=harness.HANG)
                self.assertEqual(bad.returncode, 1, err)
                self.assertIn(words, err)
                self.assertIn("Last stage: " + fault.split(":")[0], err)
                self.assertIn("after 2 attempts", err)
                digest = hashlib.sha256((server.folder / "bad.onnx").read_bytes()).hexdigest()
                self.assertIn(digest, self.job(server, "bad.onnx")["error"]["message"])
                self.assertIn("tried once more", self.events(server, "bad.onnx"))
                self.assertEqual((server.process.pid, server.process.poll()), (pid, None))
                self.assertEqual(server.ctl("submit", "other.onnx", "--tune", "off", "-o", "other.fusion").code, 0)
                server.stop()

    def test_a_control_group_limits_all_that_a_compilation_takes(self):
        """Memory that no process holds counts too: here files of a file system in memory."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        program = folder / COMPILER
        program.write_text("#!/bin/sh\ndd if=/dev/zero of=%s/zeros bs=1M count=600\nexec %s \"$@\"\n"
                           % (folder, harness.BIN / COMPILER))
        program.chmod(0o755)
        for limit, code in (("2GiB", 0), ("256MiB", 1)):
            with self.subTest(limit):
                group = own_control_group("fusion-test-%d-%s" % (os.getpid(), limit))
                if group is None:
                    self.skipTest("no control group of version 2 whose memory can be limited; in_vm.py has one")
                self.addCleanup(remove_groups, group)
                enter = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
                server = self.server("--compile-program", program, "--compile-memory", limit, preexec_fn=enter)
                submit = server.ctl("submit", "bad.onnx", "--tune", "off", "-o", "bad.fusion")
                self.assertEqual(submit.code, code, submit)
                if code == 1:
                    self.assertIn("more than the 256 MiB", submit.err)
                    self.assertIn("after 2 attempts", submit.err)
                server.stop()

    def test_a_killed_compilation_is_tried_once_more(self):
        server = self.server("--compile-program", self.faulty("bad.onnx:plan:loop"))
        submit = server.start_ctl("submit", "bad.onnx", "--tune", "off")
        first = self.await_compiler(server)
        os.kill(first, signal.SIGKILL)
        server.wait_until(lambda: compilers_of(server) not in ([], [first]), "it is compiled again")
        os.kill(compilers_of(server)[0], signal.SIGKILL)
        _, err = submit.communicate(timeout=harness.HANG)
        self.assertEqual(submit.returncode, 1)
        self.assertIn("ended by signal 9", err)

    def test_cancel_ends_the_compilation_and_all_that_it_started(self):
        server = self.server("--compile-program", self.faulty("bad.onnx:plan:loop"))
        submit = server.start_ctl("submit", "bad.onnx", "--tune", "off")
        handle = os.pidfd_open(self.await_compiler(server))
        job = self.job(server, "bad.onnx")["job_id"]
        self.assertEqual(server.ctl("job", "cancel", job).code, 0)
        self.assert_ends(handle)
        _, err = submit.communicate(timeout=harness.HANG)
        self.assertIn("cancelled", err)
        self.assertEqual(self.job(server, "bad.onnx")["state"], "cancelled")

    def test_few_compilations_wait_for_a_builder_and_all_go_on_when_it_comes(self):
        server = self.server("--no-local-worker", wait_for_worker=False)
        def attach(*args):
            worker = server.start_worker("--kinds=sim", "--simulated-measurement=1ms", *args)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.kill)
        attach("--no-build")
        server.wait_until(server.workers, "the worker is attached")
        for number in range(10):
            (server.folder / ("model%d.onnx" % number)).write_bytes(onnx_model.mlp(seed=10 + number))
            done = server.ctl("submit", "model%d.onnx" % number, "--target", "sim", "--tune", "off", "--detach")
            self.assertEqual(done.code, 0, done)
        states = lambda: sorted(job["state"] for job in server.ctl("job", "list", "-o", "json").json()["jobs"])
        gave_up = lambda: server.log_text().count("gives its place up")
        server.wait_until(lambda: gave_up() >= 6, "all but four have ended their compilation")
        server.wait_until(lambda: states() == ["queued"] * 6 + ["running"] * 4, "four wait with theirs")
        server.wait_until(lambda: len(compilers_of(server)) <= 4, "the processes are gone")
        attach()
        server.wait_until(lambda: states() == ["succeeded"] * 10, "all go on")
        self.assertNotIn("tried once more", server.log_text())

    def test_a_killed_server_takes_compilations_along_and_no_attempt_counts(self):
        server = self.server("--compile-program", self.faulty("bad.onnx:plan:loop"))
        submit = server.start_ctl("submit", "bad.onnx", "--tune", "off", "-o", "bad.fusion")
        for _ in range(3):  # more often than a job is tried
            handle = os.pidfd_open(self.await_compiler(server))
            server.kill()
            self.assert_ends(handle)
            server.start()
        handle = os.pidfd_open(self.await_compiler(server))
        server.process.terminate()
        self.assertEqual(server.process.wait(harness.HANG), 0)
        self.assert_ends(handle)
        server.args = server.args[2:]  # the program that does not fail
        server.start()
        _, err = submit.communicate(timeout=harness.HANG)
        self.assertEqual(submit.returncode, 0, err)
        self.assertNotIn("tried once more", self.events(server, "bad.onnx"))

    def test_a_plan_that_dies_is_an_answer(self):
        server = self.server("--compile-program", self.faulty("bad.onnx:plan:abort"))
        planned = server.ctl("plan", "bad.onnx")
        self.assertEqual(planned.code, 1, planned)
        self.assertIn("ended by signal 6", planned.err)
        self.assertEqual(server.ctl("plan", "good.onnx").code, 0)

    def test_a_server_without_the_program_does_not_start(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        started = harness.run("fusiond", "--state", folder / "state", "--compile-program", folder / "missing")
        self.assertEqual(started.code, 2, started)
        self.assertIn("fusion-compile-job", started.err)


if __name__ == "__main__":
    unittest.main()
