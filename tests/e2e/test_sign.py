"""Signed bundles: whoever runs one can demand that it was signed by a key that he trusts."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import onnx_model

LIBRARY = harness.BIN.parent / "lib/libfusion_runtime.so"


def open_bundle(bundle, required=""):
    """Opens the bundle through the C interface in a process of its own, and returns the status and the message."""
    program = ("import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.fusion_last_error.restype = ctypes.c_char_p; b = ctypes.c_void_p();"
               "s = l.fusion_bundle_open(sys.argv[2].encode(), ctypes.byref(b)); print(s, l.fusion_last_error().decode())")
    done = subprocess.run([sys.executable, "-c", program, LIBRARY, bundle], capture_output=True, text=True, check=True,
                          env={**os.environ, "FUSION_REQUIRE_KEY": str(required)})
    status, _, message = done.stdout.strip().partition(" ")
    return int(status), message


def make_key(folder, name):
    """Files with a private key, and with its public one."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    private.chmod(0o600)
    return private, public


class SignTest(harness.ServerTest):
    def test_a_signed_bundle_runs_where_its_key_is_required_and_no_other_does(self):
        model = self.write("mlp.onnx", onnx_model.mlp())
        bundle = self.folder / "mlp.fusion"
        self.submit(model, "--tune", "off", output=bundle)
        before = bundle.read_bytes()
        (private, public), (other, other_public) = make_key(self.folder, "ours"), make_key(self.folder, "theirs")

        self.assertIn("is not signed", self.ctl("bundle", "verify", bundle, "--key", public, code=9).err)
        self.assertEqual(self.ctl("bundle", "sign", bundle, "--key", private).out.strip(), f"{bundle}.sig")
        self.assertEqual(bundle.read_bytes(), before)
        self.assertRegex(self.ctl("bundle", "verify", bundle, "--key", public).out, r"^signed by [0-9a-f]{64}\n$")
        self.ctl("run", bundle, "--random", "1", "--require-key", public)
        self.assertIn("not signed by a trusted key",
                      self.ctl("run", bundle, "--random", "1", "--require-key", other_public, code=9).err)
        self.assertEqual(open_bundle(bundle, public)[0], 0)
        self.assertEqual(open_bundle(bundle, other_public)[0], 7)

        # Rotation: both keys' signatures stand in one file, and keys in one file are all trusted.
        self.ctl("bundle", "sign", bundle, "--key", other)
        both = self.folder / "both.pem"
        both.write_text(public.read_text() + other_public.read_text())
        self.assertEqual(self.ctl("bundle", "verify", bundle, "--key", both).out.count("signed by"), 2)

        # Another bundle with this one's signatures: the same model compiled another way.
        forged = self.folder / "forged.fusion"
        self.submit(model, "--tune", "off", "--planner", "none", output=forged)
        pathlib.Path(f"{forged}.sig").write_bytes(pathlib.Path(f"{bundle}.sig").read_bytes())
        self.assertIn("of another bundle", self.ctl("bundle", "verify", forged, "--key", public, code=9).err)
        self.assertEqual(open_bundle(forged, public)[0], 7)
        self.assertEqual(open_bundle(forged)[0], 0, "nobody asked for a key")

        # One byte of machine code, with the digests made to fit, is what a signature is for; without, the digest finds it.
        damaged = bytearray(before)
        damaged[1000] ^= 1
        bundle.write_bytes(damaged)
        self.ctl("bundle", "verify", bundle, "--key", public, code=3)

    def test_what_is_no_key_is_named(self):
        model = self.write("other.onnx", onnx_model.mlp(seed=2))
        bundle = self.folder / "other.fusion"
        self.submit(model, "--tune", "off", output=bundle)
        self.assertIn("no private key in PEM form", self.ctl("bundle", "sign", bundle, "--key", model, code=3).err)
        self.assertIn("no public key in PEM form", self.ctl("run", bundle, "--require-key", model, code=3).err)
        self.ctl("bundle", "sign", bundle, "--key", self.folder / "none.pem", code=2)
        self.assertFalse(pathlib.Path(f"{bundle}.sig").exists())


class ServerSigns(unittest.TestCase):
    def start(self, *keys):
        server = harness.Server(self.folder, *(word for key in keys for word in ("--sign-with", key)))
        self.addCleanup(server.stop)
        return server.start(wait_for_worker=False)

    def signers(self, server, bundle, public):
        """How many of the keys have signed; 0 if none has."""
        verified = server.ctl("bundle", "verify", bundle, "--key", public)
        self.assertIn(verified.code, (0, 9), verified)
        return verified.out.count("signed by")

    def test_what_it_returns_is_signed_and_another_key_signs_again_without_compiling(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (first, first_public), (second, second_public) = make_key(self.folder, "first"), make_key(self.folder, "second")
        both = self.folder / "both.pub.pem"
        both.write_text(first_public.read_text() + second_public.read_text())
        model, bundle, again = (self.folder / name for name in ("m.onnx", "m.fusion", "again.fusion"))
        model.write_bytes(onnx_model.mlp())

        server = self.start(first)
        server.wait_until(server.workers, "the local worker is attached")
        submitted = server.ctl("submit", model, "--tune", "off", "-o", bundle)
        self.assertEqual(submitted.code, 0, submitted)
        self.assertIn(f"{bundle}.sig", submitted.err)
        self.assertEqual(self.signers(server, bundle, first_public), 1)
        self.assertEqual(self.signers(server, bundle, second_public), 0)
        self.assertEqual(open_bundle(bundle, first_public)[0], 0)
        [job] = server.ctl("job", "list", "-o", "json").json()["jobs"]
        server.stop()

        # Rotation: for a while both keys sign, then the new one alone. The job is the same, and nothing is compiled.
        for keys, signed in (((first, second), 2), ((second,), 1)):
            server = self.start(*keys)
            fetched = server.ctl("bundle", "get", job["job_id"], "-o", again)
            self.assertEqual(fetched.code, 0, fetched)
            self.assertEqual(again.read_bytes(), bundle.read_bytes())
            self.assertEqual(self.signers(server, again, both), signed)
            self.assertEqual(len(server.ctl("job", "list", "-o", "json").json()["jobs"]), 1)
            server.stop()
        self.assertEqual(self.signers(server, again, first_public), 0)

        # Without keys nothing is signed; a key that others may read is refused.
        pathlib.Path(f"{again}.sig").unlink()
        server = self.start()
        self.assertEqual(server.ctl("bundle", "get", job["job_id"], "-o", again).code, 0)
        self.assertFalse(pathlib.Path(f"{again}.sig").exists())
        server.stop()
        first.chmod(0o644)
        refused = harness.run("fusiond", "--state", self.folder / "state", "--sign-with", first)
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("chmod 600", refused.err)


if __name__ == "__main__":
    unittest.main()
