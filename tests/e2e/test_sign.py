"""Signed bundles: whoever runs one can demand that it was signed by a key that he trusts."""
import os
import pathlib
import subprocess
import sys
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


class SignTest(harness.ServerTest):
    def key(self, name):
        private, public = self.folder / f"{name}.pem", self.folder / f"{name}.pub.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
        return private, public

    def test_a_signed_bundle_runs_where_its_key_is_required_and_no_other_does(self):
        model = self.write("mlp.onnx", onnx_model.mlp())
        bundle = self.folder / "mlp.fusion"
        self.submit(model, "--tune", "off", output=bundle)
        before = bundle.read_bytes()
        (private, public), (other, other_public) = self.key("ours"), self.key("theirs")

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


if __name__ == "__main__":
    unittest.main()
