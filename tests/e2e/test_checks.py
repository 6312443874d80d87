"""When a bundle is finished, a worker times it beside its unfused form and verifies it; the job keeps both."""
import json
import pathlib
import shutil
import tempfile
import unittest

import harness
import onnx_model


class ChecksTest(harness.ServerTest):
    def test_submit_ends_with_what_a_worker_found(self):
        model = self.write("mlp.onnx", onnx_model.mlp())
        plain = self.submit(model, "--tune", "off", output=self.folder / "plain.fusion")
        self.assertIsNone(plain["measured"])
        self.assertIsNone(plain["verified"])

        report = self.submit(model, "--tune", "off", checks=True)
        self.assertTrue(report["from_store"], "only the checks were missing")
        measured, verified = report["measured"], report["verified"]
        self.assertTrue(measured["done"], measured)
        self.assertEqual(measured["bundle"]["kernels"], report["kernels"])
        self.assertGreater(measured["unfused"]["kernels"], report["kernels"])
        self.assertGreater(measured["bundle"]["estimate_ms"], 0)
        self.assertLessEqual(measured["ratio_p25"], measured["ratio"])
        self.assertLessEqual(measured["ratio"], measured["ratio_p75"])
        self.assertEqual(verified["verdict"], "ok", verified)
        self.assertEqual([o["verdict"] for o in verified["outputs"]], ["ok"])
        # The bundle holds nothing of it.
        self.assertEqual((self.folder / "plain.fusion").read_bytes(), (self.folder / "mlp.fusion").read_bytes())

        done = self.ctl("submit", model, "--tune", "off", "-o", self.folder / "again.fusion", checks=True)
        self.assertRegex(done.err, r"measured +.*unfused .*× as fast")
        self.assertRegex(done.err, r"verified +1 output, relative error .* of the strict reference")
        one = self.ctl("submit", model, "--tune", "off", "--no-verify", "-o", self.folder / "one.fusion", checks=True)
        self.assertNotRegex(one.err, "verified")

        job = self.ctl("submit", model, "--tune", "off", "--detach", checks=True).out.split()[0]
        self.assertRegex(self.ctl("job", "watch", job).err, r"measured +.*unfused ")
        self.assertRegex(self.ctl("job", "get", job).out, r"verified +1 output")
        kept = self.ctl("job", "get", job, "-o", "json").json()["checks"]
        self.assertAlmostEqual(kept["measurement"]["ratio"], measured["ratio"])

        stats = self.ctl("profile", "stats", "-o", "json").json()
        [device] = stats["by_device"]
        self.assertGreaterEqual(device["plans"]["count"], 2, "fused and unfused")
        self.assertRegex(self.ctl("profile", "stats").out, r"models, warm +rank correlation .* over \d plans")

    def test_a_model_of_several_specialisations_is_verified_in_each(self):
        model = self.write("rows.onnx", onnx_model.model(
            [onnx_model.node("Relu", ["x"], ["r"], "relu"), onnx_model.node("Softmax", ["r"], ["y"], "softmax")],
            [onnx_model.value("x", ["seq", 24])], [onnx_model.value("y", ["seq", 24])]))
        report = self.submit(model, "--tune", "off", "--dim", "seq=8,40", checks=True)
        self.assertEqual(report["verified"]["verdict"], "ok", report["verified"])
        self.assertGreaterEqual(report["verified"]["outputs_total"], 2)
        self.assertEqual(report["measured"]["program"], "seq=8")


class RestartTest(unittest.TestCase):
    def test_a_server_killed_while_a_bundle_is_checked_checks_it_again(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder)
        self.addCleanup(server.stop)
        (folder / "mlp.onnx").write_bytes(onnx_model.mlp())
        server.start()
        submit = server.start_ctl("submit", "mlp.onnx", "--tune", "off", "-o", "mlp.fusion", "--json", "report.json",
                                  "--progress", "plain", checks=True)
        while "measure " not in (line := submit.stderr.readline()):
            self.assertTrue(line, "the submission ended without a check")
        server.kill()
        server.start()
        out, err = submit.communicate(timeout=harness.HANG)
        self.assertEqual(submit.returncode, 0, out + err)
        report = json.loads((folder / "report.json").read_text())
        self.assertTrue(report["measured"]["done"], report["measured"])
        self.assertEqual(report["verified"]["verdict"], "ok")
        # The bundle was in the store: after the restart nothing before the checks ran again.
        self.assertNotRegex(err, r"\bimport ")


if __name__ == "__main__":
    unittest.main()
