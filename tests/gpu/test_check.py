"""check.py without a GPU: the shim is the driver. Skipped without NVRTC, which builds the bundles."""
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
import onnx_model


class OnTheShim(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-gpu-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.bundle = cls.compile(ROOT / "tests/models/small/tiny_encoder.onnx")

    @classmethod
    def compile(cls, model, *options):
        bundle = cls.folder / (model.stem + ".fusion")
        environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}  # NVRTC asks the driver, too
        done = subprocess.run([os.environ["FUSION_COMPILE"], model, bundle, "--target", "cuda:sm_90", *options],
                              capture_output=True, text=True, env=environment)
        if "no NVRTC here" in done.stderr:
            raise unittest.SkipTest("no NVRTC here")
        assert done.returncode == 0, done.stderr
        return bundle

    def run_main(self, *arguments):
        output, sys.argv = io.StringIO(), ["check.py", "--shim", "--runs", "2", *map(str, arguments)]
        with contextlib.redirect_stdout(output):
            code = check.main()
        return code, output.getvalue()

    def test_every_launch_is_checked_and_timed(self):
        code, output = self.run_main(self.bundle)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"\n[1-9]\d+ launches checked, 0 wrong; 0 bundles refused\n")
        self.assertIn("MatMul", output)

    def test_a_persistent_kernel_and_a_launch_on_the_host(self):
        model = self.folder / "row.onnx"
        row = [1, 65536]
        model.write_bytes(onnx_model.model(
            [onnx_model.node("Softmax", ["x"], ["y"], axis=-1), onnx_model.node("NonZero", ["y"], ["z"])],
            [onnx_model.value("x", row)],
            [onnx_model.value("y", row), onnx_model.value("z", [2, "n"], onnx_model.INT64)]))
        device = json.loads((ROOT / "compiler/cost/devices/cuda_sm_90.json").read_text())
        device["barrier_s"] = device["launch_s"] / 2
        cheap_barriers = self.folder / "device.json"
        cheap_barriers.write_text(json.dumps(device))
        bundle = self.compile(model, "--device", cheap_barriers)
        with zipfile.ZipFile(bundle) as entries:
            self.assertIn(b'"resident"', entries.read("manifest.json"))
        code, output = self.run_main(bundle)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r" host .*NonZero")

    def test_what_the_gpu_does_not_do_is_wrong(self):
        launch, check.Check.run_there = check.Check.run_there, lambda self, l: None
        try:
            code, output = self.run_main(self.bundle)
        finally:
            check.Check.run_there = launch
        self.assertEqual(code, 1)
        self.assertRegex(output, r"[1-9]\d* wrong")
        self.assertIn("WRONG", output)

    def test_another_architecture_and_no_bundle_are_refused(self):
        broken = self.folder / "broken.fusion"
        broken.write_bytes(b"no bundle")
        code, output = self.run_main(broken)
        self.assertEqual(code, 1)
        self.assertIn("broken.fusion: refused", output)


if __name__ == "__main__":
    unittest.main()
