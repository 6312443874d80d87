"""Builders that are not trusted: their binaries count when a second one made the same, so that poison does not."""
import os
import unittest

import harness
import onnx_model
import tls_server


class BuildersTest(tls_server.TlsServerTest):
    server_args = ("--no-local-worker",)

    def attach(self, name, *args, **options):
        worker = self.server.start_worker("--name", name, *args, **options)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: self.done_by(name) is not None, name + " is attached")

    def attach_builder(self, name, role="untrusted-build", **options):
        """Returns the id of its token."""
        token = self.folder / (name + ".token")
        made = self.ctl("auth", "token", "create", name, "--role", role, "--to", token, "-o", "json").json()
        self.attach(name, "--kinds=none", "--tls-ca", self.authority.file, "--token-file", token, address=self.address,
                    **options)
        return made["info"]["id"]

    def done_by(self, name):
        return next((int(w.get("tasks_done", 0)) for w in self.server.workers() if w["info"]["name"] == name), None)


class UntrustedBuilders(BuildersTest):
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


class PoisonedBuilder(BuildersTest):
    POISON = b"POISONED"  # poison_shim.cc
    VARIABLES = {"LD_PRELOAD": os.environ.get("FUSION_POISON_SHIM", "")}

    def delivered(self):
        """How many binaries with poison the server was given."""
        blobs = [file for file in (self.server.state / "blobs").rglob("*") if file.is_file()]
        return sum(self.POISON in blob.read_bytes() for blob in blobs)

    def test_its_binaries_reach_no_bundle(self):
        self.assertTrue(os.path.exists(self.VARIABLES["LD_PRELOAD"]))
        self.attach("meter", "--no-build")  # by the socket
        self.attach_builder("a poisoner", variables=self.VARIABLES)  # the first by name, so that it is asked first
        self.attach_builder("honest")
        model = self.write("model.onnx", onnx_model.elementwise_and_softmax(seed=41))
        refused = self.ctl("submit", model, "--tune", "off", "--queue-timeout", "2", "-o", self.folder / "none.fusion",
                           code=7)
        self.assertIn("second builder", refused.err)
        self.assertGreater(self.delivered(), 0, "the poison never came, so that nothing was tested")
        self.assertFalse((self.folder / "none.fusion").exists())

        self.attach_builder("sound")
        self.submit(model, "--tune", "off")
        bundle = self.folder / "model.fusion"
        self.assertNotIn(self.POISON, bundle.read_bytes())
        self.ctl("verify", bundle, "--model", model)
        self.assertIn("builders made other binaries", (self.folder / "fusiond.log").read_text())

        # The same builder, were it trusted: so the attack is a real one.
        self.attach_builder("trusted", role="build", variables=self.VARIABLES)
        model = self.write("believed.onnx", onnx_model.mlp(seed=42))
        self.submit(model, "--tune", "off")
        self.assertIn(self.POISON, (self.folder / "believed.fusion").read_bytes())


if __name__ == "__main__":
    unittest.main()
