"""TLS: who is trusted, and certificates that change while everything runs."""
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.request

import certificates
import harness
import onnx_model

HOSTS = "DNS:localhost,IP:127.0.0.1"


def tcp_address(server):
    """Where a server that was told port 0 listens, as its log says."""
    return re.search(r"addresses=\S*?(localhost:\d+)", server.log_text()).group(1)


class Encrypted(harness.ServerTest):
    """A server with TLS that wants certificates of its callers."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tokens = {}  # by port
        cls.authority = certificates.Authority(cls.folder / "ca", "ca")
        cls.stranger = certificates.Authority(cls.folder / "ca2", "ca2")
        cls.mine = cls.authority.issue(cls.folder / "me", "me", "DNS:me")
        cls.foreign = cls.stranger.issue(cls.folder / "foreign", "foreign", "DNS:foreign")

    def serve(self, name, issuer, hosts=HOSTS, client_ca=None, more=()):
        """Another server, with a certificate of `issuer`."""
        folder = self.folder / name
        certificate, key = issuer.issue(folder / "tls", "server", hosts)
        args = ["--listen", "localhost:0", "--no-local-worker", "--tls-cert", certificate, "--tls-key", key, *more]
        server = harness.Server(folder, *args, *(("--tls-client-ca", client_ca) if client_ca else ()))
        self.addCleanup(server.stop)
        server.start()
        token = folder / "token"
        made = server.ctl("auth", "token", "create", "everybody", "--role", "client", "--role", "build", "--role", "measure",
                          "--to", token)
        self.assertEqual(made.code, 0, made)
        self.tokens[tcp_address(server).rpartition(":")[2]] = token
        return server, tcp_address(server)

    def call(self, address, ca=None, me=None, verb=("job", "list")):
        args = ["--server", address, *verb]
        args += ["--tls-ca", ca.file, "--token-file", self.tokens[address.rpartition(":")[2]]] if ca else []
        args += ["--tls-cert", me[0], "--tls-key", me[1]] if me else []
        return self.server.ctl(*args)

    def test_the_server_is_known_by_its_authority_and_its_name(self):
        server, address = self.serve("known", self.authority)
        self.assertEqual(self.call(address, self.authority).code, 0)
        self.assertEqual(self.call(address.replace("localhost", "127.0.0.1"), self.authority).code, 0)
        untrusted = self.call(address, self.stranger)
        self.assertEqual(untrusted.code, 4, untrusted)
        self.assertIn("--tls-ca FILE names the authority", untrusted.err)
        plain = self.call(address, verb=("job", "list", "--insecure"))
        self.assertEqual(plain.code, 5, plain)
        self.assertIn("the server may want TLS", plain.err)

        impostor, there = self.serve("impostor", self.authority, hosts="DNS:elsewhere.example,IP:127.0.0.2")
        for address in (there, there.replace("localhost", "127.0.0.1")):
            refused = self.call(address, self.authority)
            self.assertEqual(refused.code, 4, refused)
            self.assertIn("is for another host", refused.err)

    def test_callers_need_a_certificate_where_the_server_says_so(self):
        server, address = self.serve("mutual", self.authority, client_ca=self.authority.file)
        self.assertEqual(self.call(address, self.authority, self.mine).code, 0)
        self.assertEqual(self.call(address, self.authority).code, 5)
        foreign = self.call(address, self.authority, self.foreign)
        self.assertEqual(foreign.code, 5, foreign)
        self.assertIn("certificate", foreign.err)

        worker = server.start_worker("--name", "far", "--tls-ca", self.authority.file, "--tls-cert",
                                     self.mine[0], "--tls-key", self.mine[1], "--token-file",
                                     self.folder / "mutual/token", address=address)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        server.wait_until(server.workers, "the worker is attached")
        model = self.write("far.onnx", onnx_model.elementwise_and_softmax(seed=41))
        done = self.call(address, self.authority, self.mine,
                         ("submit", model, "-o", self.folder / "far.fusion", "--tune", "off"))
        self.assertEqual(done.code, 0, done)

    def test_a_new_certificate_needs_no_restart(self):
        server, address = self.serve("renewed", self.authority)
        self.assertEqual(self.call(address, self.authority).code, 0)
        folder = self.folder / "renewed"
        self.stranger.issue(folder / "next", "server", HOSTS)
        os.rename(folder / "tls", folder / "before")
        os.rename(folder / "next", folder / "tls")
        server.wait_until(lambda: self.call(address, self.stranger).code == 0, "the new certificate is used")
        self.assertEqual(self.call(address, self.authority).code, 4)
        self.assertIsNone(server.process.poll())

        # A pair that does not fit together is not taken: the one before stays in use.
        shutil.copy(self.authority.issue(folder / "torn", "server", HOSTS)[0], folder / "tls/server.pem")
        os.utime(folder / "tls/server.pem")
        for _ in range(20):
            self.assertNotEqual(self.call(address, self.authority).code, 0)

    def test_the_end_of_the_certificate_is_a_metric(self):
        server, _ = self.serve("measured", self.authority, more=("--metrics", "127.0.0.1:0"))
        certificate = self.folder / "measured/tls/server.pem"
        address = re.search(r"metrics=(\S+)", server.log_text()).group(1)
        read = lambda: re.search(r"^fusion_tls_certificate_expiry_timestamp_seconds (\S+)$",
                                 urllib.request.urlopen(address).read().decode(), re.MULTILINE)
        server.wait_until(read, "the metric is there")
        said = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-enddate",
                               "-dateopt", "iso_8601"], capture_output=True, text=True, check=True).stdout
        end = datetime.datetime.fromisoformat(said.strip().partition("=")[2].replace("Z", "+00:00"))
        self.assertEqual(float(read().group(1)), end.timestamp())

    def test_without_tls_both_sides_say_insecure(self):
        server = harness.Server(self.folder / "open", "--listen", "localhost:0", "--no-local-worker", "--insecure")
        self.addCleanup(server.stop)
        server.start()
        address = tcp_address(server)
        self.assertRegex(server.log_text(), r"warning fusiond: --insecure: whoever reaches this address may do everything")
        self.assertEqual(self.server.ctl("--server", address, "--insecure", "job", "list").code, 0)
        careful = self.server.ctl("--server", address, "job", "list")
        self.assertNotEqual(careful.code, 0)
        self.assertIn("--insecure", careful.err)

    def test_by_default_nothing_listens_on_the_network(self):
        state = self.folder / "default"
        server = subprocess.Popen([harness.BIN / "fusiond", "--state", state, "--no-local-worker"],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.server.wait_until(lambda: self.server.ctl("--server", "unix:%s/fusion.sock" % state, "job", "list").code == 0,
                               "the server without flags answers on its socket")
        open_files = [os.readlink(path) for path in pathlib.Path("/proc/%d/fd" % server.pid).iterdir()]
        ours = {re.search(r"\d+", name).group() for name in open_files if name.startswith("socket:")}
        on_sockets = {fields[6] for fields in map(str.split, pathlib.Path("/proc/net/unix").read_text().splitlines()[1:])}
        self.assertTrue(ours & on_sockets, "this test looks at the wrong process")
        for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
            lines = pathlib.Path("/proc/net/" + table).read_text().splitlines()[1:]
            self.assertEqual(ours & {line.split()[9] for line in lines}, set(), table)

    def test_files_that_do_not_fit_are_named_at_the_start(self):
        certificate, key = self.authority.issue(self.folder / "bad", "bad", HOSTS)
        other = self.authority.issue(self.folder / "bad", "other", HOSTS)[1]
        readable = self.folder / "bad/readable.key"
        shutil.copy(key, readable)
        readable.chmod(0o644)
        none = self.write("bad/none.pem", b"no certificate")
        for args, words in (
                ((), "--insecure"),
                (("--tls-cert", certificate), "--tls-cert and --tls-key"),
                (("--tls-key", key), "--tls-cert and --tls-key"),
                (("--tls-client-ca", self.authority.file), "--tls-cert and --tls-key"),
                (("--tls-cert", certificate, "--tls-key", other), "is not that of"),
                (("--tls-cert", certificate, "--tls-key", readable), "chmod 600"),
                (("--tls-cert", none, "--tls-key", key), "no certificate in PEM form"),
                (("--tls-cert", certificate, "--tls-key", none), "chmod 600"),
                (("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", none), "--tls-client-ca"),
                (("--tls-cert", self.folder / "missing", "--tls-key", key), "cannot read"),
                (("--tls-cert", certificate, "--tls-key", key, "--insecure"), "--insecure is for servers without TLS"),
        ):
            ended = harness.run("fusiond", "--state", self.folder / "bad/state", "--listen", "localhost:0", "--metrics",
                                "none", "--no-local-worker", *args)
            self.assertEqual(ended.code, 2, ended)
            self.assertIn(words, ended.err)


if __name__ == "__main__":
    unittest.main()
