"""A farm with an OpenCL device: it is measured, and bundles are built, run and verified. Skipped if there is no
device."""
import json
import pathlib
import shutil
import tempfile
import unittest
import zipfile

import harness
import onnx_model

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models" / "small"


class OpenClFarm(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.server = harness.Server(folder, "--no-local-worker")
        self.addCleanup(self.server.stop)
        self.server.start()
        for worker in (self.server.start_worker("--name", "cpu"),
                       self.server.start_worker("--name", "gpu", "--kinds=opencl")):
            self.addCleanup(worker.wait)
            self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: worker.poll() is not None or len(self.server.workers()) == 2, "both are attached")
        if worker.poll() is not None and "OpenCL" in self.server.log_text():
            self.skipTest("no device of OpenCL here")
        self.assertIsNone(worker.poll(), self.server.log_text())

    def ctl(self, *args, code=0):
        result = self.server.ctl(*args, timeout=600)  # drivers compile slowly, and other programs may be running
        self.assertEqual(result.code, code, "fusionctl %s\n%s\n%s" % (" ".join(map(str, args)), result,
                                                                      self.server.log_text()))
        return result

    # The bundle, verified by another target's kernels.
    def submit_and_verify(self, model):
        bundle = self.server.folder / (model + ".fusion")
        report = self.ctl("submit", MODELS / (model + ".onnx"), "-o", bundle, "--target", "opencl", "--tune", "off")
        self.assertRegex(report.err, r"[1-9]\d* measured, \d+ known, 0 estimated")
        reference = self.server.folder / "cpu.fusion"
        self.ctl("submit", MODELS / (model + ".onnx"), "-o", reference, "--planner", "none", "--math", "strict", "--tune",
                 "off")
        self.assertIn("verified", self.ctl("verify", bundle, "--reference", reference).out)
        return bundle

    def test_a_network_of_convolutions_is_measured_built_and_verified(self):
        bundle = self.submit_and_verify("tiny_resnet")
        with zipfile.ZipFile(bundle) as entries:
            names = entries.namelist()
            self.assertIn("src/kernels_0.cl", names)
            kernel = entries.read("kernels/kernels_0.clbin")
        self.assertTrue(kernel.startswith(b"fusion-opencl 1\n"))
        text, binary = map(int, kernel.split(b"\n", 4)[3].split())
        self.assertGreater(min(text, binary), 0)
        self.assertIn("Conv", self.ctl("bench", bundle, "--per-kernel").out)

    def test_a_transformer_is_measured_built_and_verified(self):
        self.submit_and_verify("tiny_encoder")

    def test_several_targets_of_which_one_is_not_there(self):
        (self.server.folder / "mlp.onnx").write_bytes(onnx_model.mlp())
        done = self.ctl("submit", "mlp.onnx", "--target", "cpu,abacus,opencl", "--tune", "off", "--json", "report.json",
                        code=7)
        self.assertRegex(done.err, r"fusionctl: abacus: no worker for target 'abacus'")
        self.assertIn("mlp.cpu.fusion", done.out)
        self.assertIn("mlp.opencl.fusion", done.out)
        self.assertFalse((self.server.folder / "mlp.abacus.fusion").exists())
        reports = json.loads((self.server.folder / "report.json").read_text())["targets"]
        self.assertEqual(list(reports), ["cpu", "abacus", "opencl"])
        self.assertIn("no worker", reports["abacus"]["error"])
        for target in ("cpu", "opencl"):
            self.assertEqual(reports[target]["bundle"]["path"], "mlp.%s.fusion" % target)
            self.assertIn("target   %s" % target, self.ctl("bundle", "inspect", "mlp.%s.fusion" % target).out)
        self.ctl("verify", "mlp.opencl.fusion", "--reference", "mlp.cpu.fusion")
        detached = self.ctl("submit", "mlp.onnx", "--target", "cpu,opencl", "--tune", "off", "--detach")
        self.assertRegex(detached.out, r"^j-\w+  cpu\nj-\w+  opencl\n$")
        self.assertIn("several targets are for submit", self.ctl("plan", "mlp.onnx", "--target", "cpu,opencl", code=2).err)
        self.assertIn("twice", self.ctl("submit", "mlp.onnx", "--target", "cpu,cpu", code=2).err)


if __name__ == "__main__":
    unittest.main()
