"""Tokens: who may call over the network, what they may do, and what happens when one is lost or taken back."""
import json
import os
import pathlib
import re
import stat
import subprocess
import unittest
import urllib.request

import harness
import onnx_model
import tls_server


class Tokens(tls_server.TlsServerTest):
    """A server with TLS on a port. Its owner comes by the socket."""
    # No worker: a submitted job waits, so that its watch stays open.
    server_args = ("--no-local-worker",)

    def token(self, name, *roles, extra=()):
        """Made on the socket; the file that holds it, and its id."""
        path = self.folder / (name + ".token")
        path.unlink(missing_ok=True)
        made = self.ctl("auth", "token", "create", name, *(x for role in roles for x in ("--role", role)), "--to", path,
                        "-o", "json", *extra).json()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(made["token"], "")
        return path, made["info"]["id"]

    def remote(self, *args, token=None, code=0, variables=None, ca=True):
        command = [harness.BIN / "fusionctl", "--server", self.address, *(("--tls-ca", self.authority.file) if ca else ()),
                   *(("--token-file", token) if token else ()), *args]
        environment = dict(self.server.environment(), XDG_CONFIG_HOME=str(self.folder / "nobody"), **(variables or {}))
        result = harness.Result(subprocess.run([*map(str, command)], capture_output=True, text=True,
                                               timeout=harness.HANG, env=environment, cwd=self.folder))
        self.assertEqual(result.code, code, result)
        return result

    def watch(self, job, token):
        process = subprocess.Popen(
            [harness.BIN / "fusionctl", "--server", self.address, "--tls-ca", self.authority.file, "--token-file", token,
             "--progress", "plain", "job", "watch", job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.server.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_caller_needs_a_token_and_its_role(self):
        refused = self.remote("job", "list", code=4)
        self.assertIn("wants a token", refused.err)
        self.assertIn("--token-file", refused.err)
        client, _ = self.token("ada", "client")
        self.remote("job", "list", token=client)
        for verb in (("auth", "token", "list"), ("auth", "token", "create", "x", "--role", "admin"),
                     ("profile", "import", "/dev/null")):
            denied = self.remote(*verb, token=client, code=4)
            self.assertIn("needs admin", denied.err)
            self.assertIn("has the roles client", denied.err)
        admin, _ = self.token("boss", "admin")
        self.assertIn("ada", self.remote("auth", "token", "list", token=admin).out)
        model = self.write("denied.onnx", onnx_model.elementwise_and_softmax(seed=51))
        self.assertIn("needs client", self.remote("submit", model, "--detach", token=admin, code=4).err)
        self.remote("auth", "token", "revoke", "nobody", token=admin, code=2)
        self.ctl("auth", "token", "create", "x", "--role", "admin", "--expires", "soon", code=2)
        self.ctl("auth", "token", "create", "x", "--role", "client", "--join", code=3)

    def test_health_is_all_that_strangers_see(self):
        forged = self.write("forged.token", b"fus_0000000000_" + b"0" * 52)
        forged.chmod(0o600)
        self.assertIn("does not know this token", self.remote("job", "list", token=forged, code=4).err)
        for verb in (("worker", "list"), ("profile", "stats"), ("job", "get", "j-1"), ("doctor",)):
            self.remote(*verb, code=4)

    def test_a_token_comes_from_a_file_the_environment_or_the_configuration(self):
        path, _ = self.token("grace", "client")
        secret = path.read_text().strip()
        self.remote("job", "list", variables={"FUSION_TOKEN": secret})
        self.remote("job", "list", variables={"FUSION_TOKEN_FILE": str(path)})
        config = self.folder / "config/fusion/client.json"
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"servers": {self.address: {"token": secret, "tls_ca": str(self.authority.file)}}}))
        config.chmod(0o600)
        environment = {"XDG_CONFIG_HOME": str(self.folder / "config")}
        command = [harness.BIN / "fusionctl", "--server", self.address, "job", "list"]
        everything = dict(self.server.environment(), **environment)
        self.assertEqual(subprocess.run(command, env=everything, capture_output=True).returncode, 0)
        config.chmod(0o644)
        refused = subprocess.run(command, env=everything, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 4)
        self.assertIn("chmod 600 %s" % config, refused.stderr)
        path.chmod(0o640)
        self.assertIn("chmod 600", self.remote("job", "list", token=path, code=4).err)

    def test_a_lost_admin_token_is_replaced_on_the_socket(self):
        lost, lost_id = self.token("lost", "admin")
        self.ctl("auth", "token", "revoke", lost_id)
        self.assertIn("was revoked", self.remote("auth", "token", "list", token=lost, code=4).err)
        found, _ = self.token("found", "admin")
        self.remote("auth", "token", "list", token=found)

    def test_a_caller_sees_his_own_jobs_only(self):
        mine, _ = self.token("mine", "client")
        yours, _ = self.token("yours", "client")
        model = self.write("owned.onnx", onnx_model.elementwise_and_softmax(seed=54))
        job = self.remote("submit", model, "--detach", token=mine).out.split()[0]
        joined = self.remote("submit", model, "--detach", token=yours).out.split()[0]
        listed = lambda token: [j["job_id"] for j in self.remote("job", "list", "-o", "json", token=token).json().get("jobs", [])]
        self.assertEqual(listed(mine), [job])
        self.assertEqual(listed(yours), [joined])
        for verb in ("get", "watch", "cancel"):
            refused = self.remote("job", verb, job, token=yours, code=2)
            self.assertIn(refused.err.replace(job, "j-NOBODY"), self.remote("job", verb, "j-NOBODY", token=yours, code=2).err,
                          "as of a job that does not exist")
        self.assertIn("owner    token mine", self.ctl("job", "get", job).out, "an administrator sees all")
        self.remote("job", "cancel", joined, token=yours)
        self.assertNotEqual(self.remote("job", "get", job, "-o", "json", token=mine).json()["state"], "CANCELLED")
        self.remote("job", "cancel", job, token=mine)

    def test_revoking_ends_open_streams(self):
        path, token_id = self.token("leaver", "client")
        other, _ = self.token("stayer", "admin")
        model = self.write("waits.onnx", onnx_model.elementwise_and_softmax(seed=52))
        job = self.remote("submit", model, "--detach", token=path).out.split()[0]
        watches = {}
        for name, token in (("leaver", path), ("stayer", other)):
            watches[name] = self.watch(job, token)
            while "queued" not in watches[name].stderr.readline():
                self.assertIsNone(watches[name].poll())
        self.ctl("auth", "token", "revoke", token_id)
        _, words = watches["leaver"].communicate(timeout=harness.HANG)
        self.assertEqual(watches["leaver"].returncode, 4, words)
        self.assertIn("was revoked", words)
        self.assertIsNone(watches["stayer"].poll())
        self.ctl("job", "cancel", job)
        watches["stayer"].communicate(timeout=harness.HANG)
        self.assertNotEqual(watches["stayer"].returncode, 4)

    def test_a_stream_ends_when_its_token_expires(self):
        other, _ = self.token("owner", "client")
        model = self.write("expires.onnx", onnx_model.elementwise_and_softmax(seed=53))
        job = self.remote("submit", model, "--detach", token=other).out.split()[0]
        for seconds in (6, 24, 96):  # a busy machine takes long to open a stream
            path, _ = self.token("visitor%d" % seconds, "admin", extra=("--expires", "%ds" % seconds))
            watch = self.watch(job, path)
            if "queued" not in watch.stderr.readline():
                watch.wait()
                continue
            _, words = watch.communicate(timeout=harness.HANG)
            self.assertEqual(watch.returncode, 4, words)
            self.assertIn("expired on", words)
            break
        else:
            self.fail("no stream was opened")
        self.ctl("job", "cancel", job)

    def test_a_worker_joins_and_can_be_sent_away(self):
        join, join_id = self.token("rack", "build", "measure", extra=("--join", "--expires", "1h"))
        self.remote("worker", "list", token=join, code=4)
        state = self.folder / "worker"
        flags = ("--name", "joined", "--kinds", "sim", "--tls-ca", self.authority.file, "--join-token-file", join)
        worker = self.server.start_worker(*flags, address=self.address)
        self.server.wait_until(self.server.workers, "the worker is attached")
        key, certificate = next(state.glob("worker-*.key")), next(state.glob("worker-*.pem"))
        for kept in (key, certificate):
            self.assertEqual(stat.S_IMODE(kept.stat().st_mode), 0o600)
        self.assertEqual(list(state.glob("token-*")), [], "there is no token that could be stolen")
        own = next(t for t in self.ctl("auth", "token", "list", "-o", "json").json()["tokens"] if t.get("parent") == join_id)
        self.assertTrue(own["certificate"])
        self.assertRegex(self.ctl("worker", "describe", "joined").out, r"known by +certificate %s until 20" % own["id"])
        self.assertRegex(self.ctl("auth", "token", "list").out, r"%s +certificate +worker joined +build,measure +valid" % own["id"])
        # Whoever takes both is the worker, and no client and no administrator.
        taken = ("--tls-cert", certificate, "--tls-key", key)
        self.assertIn("needs client or admin", self.remote("job", "list", *taken, code=4).err)
        self.assertIn("needs admin", self.remote("auth", "token", "list", *taken, code=4).err)
        worker.terminate()
        worker.wait()

        # The join token is needed once.
        self.ctl("auth", "token", "revoke", join_id)
        worker = self.server.start_worker(*flags, address=self.address, variables={"FUSION_TOKEN": "fus_of_another"})
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        self.server.wait_until(self.server.workers, "the worker is attached again")
        self.assertNotIn(b"fus_of_another", pathlib.Path("/proc/%d/environ" % worker.pid).read_bytes())
        own = next(t for t in self.ctl("auth", "token", "list", "-o", "json").json()["tokens"]
                   if t["name"] == "worker joined")
        self.assertEqual(own["roles"], ["build", "measure"])
        self.assertIn("certificate %s" % own["id"], self.ctl("auth", "token", "revoke", own["id"]).err)
        self.server.wait_until(lambda: "refuses this worker" in self.server.log_text(), "the worker is sent away")
        self.assertIn("was revoked on", self.remote("job", "list", *taken, code=4).err)
        self.server.wait_until(lambda: not self.server.workers(), "the worker counts as lost")

        # A join token that has brought as many as it may brings no more, and can take all of them along.
        few, few_id = self.token("few", "measure", extra=("--join", "--most", "1", "--expires", "1h"))
        flags = ("--kinds", "sim", "--no-build", "--tls-ca", self.authority.file, "--join-token-file", few)
        for name in ("one", "two"):
            worker = subprocess.Popen([harness.BIN / "fusion-worker", "--server", self.address, "--state", self.folder / name,
                                       "--name", name, *map(str, flags)], stdout=self.server.log, stderr=self.server.log)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.kill)
            if name == "one":
                self.server.wait_until(self.server.workers, "the first worker is attached")
        self.server.wait_until(lambda: "has brought 1 workers" in self.server.log_text(), "the second is refused")
        [own] = [t for t in self.ctl("auth", "token", "list", "-o", "json").json()["tokens"] if t.get("parent") == few_id]
        self.assertEqual(own["name"], "worker one")
        self.ctl("auth", "token", "revoke", few_id, "--with-joined")
        self.server.wait_until(lambda: not self.server.workers(), "its worker is sent away, too")

        # Without a role for it a worker offers nothing.
        builder, _ = self.token("builder", "build")
        measuring = self.server.start_worker("--name", "greedy", "--kinds", "sim", "--tls-ca", self.authority.file,
                                             "--token-file", builder, address=self.address)
        self.addCleanup(measuring.wait)
        self.addCleanup(measuring.kill)
        self.server.wait_until(lambda: "offers to measure" in self.server.log_text(), "it is refused")

    def test_the_log_says_who_did_what_and_no_secret(self):
        client, client_id = self.token("quiet", "client")
        admin, admin_id = self.token("loud", "admin")
        self.remote("auth", "token", "revoke", client_id, token=admin)
        self.remote("profile", "import", "/dev/null", token=admin)
        log = (self.folder / "fusiond.log").read_text()
        self.assertRegex(log, r"audit call=Auth/CreateToken by=local peer=unix:")
        self.assertRegex(log, r"token made token=%s name=quiet roles=client join=no by=local" % client_id)
        self.assertRegex(log, r"audit call=Auth/RevokeToken by=\"token %s \('loud'\)\" peer=ipv[46]:" % admin_id)
        self.assertRegex(log, r"token revoked token=%s name=quiet by=\"token %s" % (client_id, admin_id))
        self.assertRegex(log, r"audit call=Profile/Import by=\"token %s" % admin_id)
        everything = [log]
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                everything.append(process.read_text(errors="replace"))
            except OSError:
                pass  # it has ended
        for path in self.folder.glob("*.token"):
            secret = path.read_text().strip().rpartition("_")[2]
            if secret != "0" * 52:
                self.assertFalse(any(secret in text for text in everything), path)


class Certificates(tls_server.TlsServerTest):
    server_args = ("--no-local-worker", "--metrics", "127.0.0.1:0")

    def test_a_worker_serves_with_its_certificate_after_restarts_of_both(self):
        join = self.folder / "rack.token"
        self.ctl("auth", "token", "create", "rack", "--join", "--role", "build", "--role", "measure", "--to", join)
        flags = ("--name", "joined", "--kinds=sim", "--simulated-measurement=10ms", "--tls-ca", self.authority.file,
                 "--join-token-file", join)

        def attach():
            worker = self.server.start_worker(*flags, address=self.address)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.kill)
            self.server.wait_until(self.server.workers, "the worker is attached")
            return worker

        def serve(seed):
            model = self.write("sim%d.onnx" % seed, onnx_model.elementwise_and_softmax(seed=seed))
            self.ctl("submit", model, "--target", "sim", "-o", self.folder / "sim.fusion")

        worker = attach()
        serve(61)
        doctor = self.server.ctl("doctor", "-o", "json").json()
        self.assertRegex(next(c["found"] for c in doctor if c["check"] == "known by"), "joined: certificate .* until ")
        metrics = re.search(r"metrics=(\S+)", self.server.log_text()).group(1)
        name = "fusion_worker_certificate_expiry_timestamp_seconds "
        self.server.wait_until(lambda: "\n" + name in urllib.request.urlopen(metrics).read().decode(), "the end is a metric")
        key = self.server.state / "worker-authority.key"
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        before = key.read_bytes()

        # The same port: a worker keeps what it needs by the server's address.
        self.server.args = tuple(self.address if arg == "localhost:0" else arg for arg in self.server.args)
        self.server.process.terminate()
        self.server.process.wait()
        self.server.start()
        self.server.wait_until(self.server.workers, "the worker comes back by itself")
        serve(62)
        worker.terminate()
        worker.wait()
        join.unlink()
        attach()
        serve(63)
        self.assertEqual(key.read_bytes(), before)
        listed = self.ctl("auth", "token", "list", "-o", "json").json()["tokens"]
        self.assertEqual([t.get("certificate", False) for t in listed], [False, True], "it is one worker all the time")


class Audit(harness.ServerTest):
    server_args = ("--no-local-worker", "--log-level", "error")

    def test_lines_of_the_audit_are_written_whatever_the_log_level_is(self):
        self.ctl("auth", "token", "create", "quiet", "--role", "client", "--to", self.folder / "quiet.token")
        log = (self.folder / "fusiond.log").read_text()
        self.assertRegex(log, r"audit call=Auth/CreateToken by=local peer=unix:")
        self.assertNotIn("token made", log)


if __name__ == "__main__":
    unittest.main()
