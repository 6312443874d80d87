"""Real processes for the end-to-end tests: a fusiond with a state folder of its own, workers, and fusionctl."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

# Seconds after which a process counts as hung. No verdict depends on it: what works on a quiet machine also works on a
# busy one, only later.
HANG = 500
BIN = pathlib.Path(os.environ.get("FUSION_BIN", "build/release/bin")).resolve()


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return "exit %d\nstdout: %s\nstderr: %s" % (self.code, self.out, self.err)


def run(program, *args):
    """A program of ours that ends by itself."""
    return Result(subprocess.run([BIN / program, *map(str, args)], capture_output=True, text=True, timeout=HANG))


def limit_file_size(limit_bytes):
    """For preexec_fn: a write past the limit fails as on a full disk."""

    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    return apply


def children_of(parent):
    """The processes that `parent` has started and that have not ended."""
    pids = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, ppid = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has ended in the meantime
            continue
        if int(ppid) == parent and state != "Z":
            pids.append(int(stat.parent.name))
    return pids


class Server:
    """fusiond on a unix socket. `args` are added to its command line. Its workers leave out drivers (OpenCL's compiler
    takes seconds of every start) unless `args` name the kinds of device to look for."""

    def __init__(self, folder, *args, preexec_fn=None, variables=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state = self.folder / "state"
        self.address = "unix:%s/s.sock" % self.folder
        self.args, self.preexec_fn, self.variables = args, preexec_fn, variables or {}
        if "--local-devices" not in args:
            self.args = (*args, "--local-devices", "cpu")
        self.process = None
        self.log = open(self.folder / "fusiond.log", "a")

    def start(self, wait_for_worker=True):
        self.process = subprocess.Popen(
            [BIN / "fusiond", "--state", self.state, "--listen", self.address, *self.args],
            stdout=self.log, stderr=self.log, preexec_fn=self.preexec_fn, env=dict(os.environ, **self.variables))
        self.wait_until(lambda: self.ctl("job", "list").code == 0, "fusiond answers")
        if wait_for_worker and "--no-local-worker" not in self.args:
            self.wait_until(lambda: self.workers(), "the local worker is attached")
        return self

    def wait_until(self, condition, what, seconds=HANG):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError("fusiond ended with %s\n%s" % (self.process.returncode, self.log_text()))
            if time.monotonic() > deadline:
                raise AssertionError("not within %d s: %s\n%s" % (seconds, what, self.log_text()))
            time.sleep(0.05)

    def workers(self):
        listed = self.ctl("worker", "list", "-o", "json")
        return [w for w in listed.json()["workers"] if w["state"] != "lost"] if listed.code == 0 else []

    def log_text(self):
        return (self.folder / "fusiond.log").read_text()[-4000:]

    def environment(self):
        return dict(os.environ, FUSION_SERVER=self.address, XDG_CACHE_HOME=str(self.folder / "cache"),
                    XDG_STATE_HOME=str(self.folder / "xdg-state"))

    @staticmethod
    def command(args, checks):
        """Of fusionctl. A submission runs the finished bundle on a worker only with `checks`: that takes seconds."""
        unchecked = ("--no-measure", "--no-verify") if args[0] == "submit" and not checks else ()
        return [BIN / "fusionctl", *map(str, args), *unchecked]

    def ctl(self, *args, timeout=HANG, preexec_fn=None, checks=False):
        return Result(subprocess.run(self.command(args, checks), capture_output=True, text=True, timeout=timeout,
                                     env=self.environment(), cwd=self.folder, preexec_fn=preexec_fn))

    def start_ctl(self, *args, checks=False):
        return subprocess.Popen(self.command(args, checks), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment(), cwd=self.folder)

    def start_worker(self, *args, address=None, variables=None):
        return subprocess.Popen([BIN / "fusion-worker", "--server", address or self.address, "--state",
                                 self.folder / "worker", *map(str, args)], stdout=self.log, stderr=self.log,
                                env=dict(os.environ, **(variables or {})))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.close()


class ServerTest(unittest.TestCase):
    """One server for the tests of a class; `server_args` are its flags."""
    server_args = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.server = Server(cls.folder, *cls.server_args)
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def ctl(self, *args, code=0, **options):
        result = self.server.ctl(*args, **options)
        self.assertEqual(result.code, code, "fusionctl %s\n%s\n%s" % (" ".join(map(str, args)), result,
                                                                       self.server.log_text()))
        return result

    def compile(self, model, bundle, *args):
        """Compiles without the server, so that nothing is measured, and returns the account."""
        account = self.folder / (pathlib.Path(bundle).stem + ".account.json")
        done = Result(subprocess.run([BIN / "fusion-compile", model, bundle, "--json", account, *map(str, args)],
                                     capture_output=True, text=True, timeout=HANG))
        self.assertEqual(done.code, 0, done)
        return json.loads(account.read_text())

    def submit(self, model, *args, output=None, **options):
        """Submits and returns the report."""
        report = self.folder / (pathlib.Path(model).stem + ".json")
        output = output or pathlib.Path(model).with_suffix(".fusion")
        self.ctl("submit", model, "-o", output, "--json", report, *args, **options)
        return json.loads(report.read_text())
