"""Builders that are not trusted: their binaries count when a second one made the same."""
import unittest

import harness
import onnx_model
import tls_server


class UntrustedBuilders(tls_server.TlsServerTest):
    server_args = ("--no-local-worker",)

    def attach(self, name, *args, **options):
        worker = self.server.start_worker("--name", name, *args, **options)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: self.done_by(name) is not None, name + " is attached")

    def attach_builder(self, name):
        """Returns the id of its token."""
        token = self.folder / (name + ".token")
        made = self.ctl("auth", "token", "create", name, "--role", "untrusted-build", "--to", token, "-o", "json").json()
        self.attach(name, "--kinds=none", "--tls-ca", self.authority.file, "--token-file", token, address=self.address)
        return made["info"]["id"]

    def done_by(self, name):
        return next((int(w.get("tasks_done", 0)) for w in self.server.workers() if w["info"]["name"] == name), None)

    def test_two_of_them_make_a_bundle_and_one_does_not(self):
        self.attach("meter", "--no-build")  # by the socket
        first = self.attach_builder("first")
        model = self.write("model.onnx", onnx_model.elementwise_and_softmax(seed=31))
        alone = self.ctl("submit", model, "--tune", "off", "--queue-timeout", "2", "-o", self.folder / "alone.fusion",
                         code=7)
        self.assertIn("count when a second builder with the same toolchain makes the same bytes", alone.err)
        self.assertIn("token " + first, alone.err)
        self.attach_builder("second")
        self.submit(model, "--tune", "off")
        self.ctl("verify", self.folder / "model.fusion", "--model", model)
        for name in ("first", "second"):
            self.assertGreater(self.done_by(name), 0, name)
        self.assertNotIn("builders made other binaries", self.server.log_text())

        # A builder that is trusted, the socket's, leaves nothing to them.
        self.attach("own", "--kinds=none")
        done, own = [self.done_by(name) for name in ("first", "second")], self.done_by("own")
        self.submit(self.write("other.onnx", onnx_model.mlp(seed=32)), "--tune", "off")
        self.assertEqual([self.done_by(name) for name in ("first", "second")], done)
        self.assertGreater(self.done_by("own"), own)

        # Without the token's binaries the model's are built again.
        self.ctl("auth", "token", "revoke", first)
        own = self.done_by("own")
        self.submit(self.write("model.onnx", onnx_model.elementwise_and_softmax(seed=33)), "--tune", "off")
        self.assertGreater(self.done_by("own"), own)


if __name__ == "__main__":
    unittest.main()
