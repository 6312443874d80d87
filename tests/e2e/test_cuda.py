"""Target cuda on a server without a GPU: planned by published figures, built by NVRTC. Skipped if there is no NVRTC."""
import json
import pathlib
import shutil
import tempfile
import unittest
import zipfile

import harness
import onnx_model

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "small" / "tiny_encoder.onnx"


class CudaFarm(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.server = harness.Server(folder)
        self.addCleanup(self.server.stop)
        self.server.start()

    def ctl(self, *args, code=0):
        result = self.server.ctl(*args)
        self.assertEqual(result.code, code, "fusionctl %s\n%s\n%s" % (" ".join(map(str, args)), result,
                                                                      self.server.log_text()))
        return result

    def test_an_architecture_that_nobody_knows(self):
        for target in ("cuda:sm_12", "cuda"):
            refused = self.ctl("submit", MODEL, "--target", target, code=7)
            self.assertRegex(refused.err, r"no worker for target '%s'; kinds attached: .*cuda:sm_80, " % target)

    def test_a_bundle_without_a_gpu(self):
        if "NVRTC" not in self.ctl("worker", "list").out:
            self.skipTest("no NVRTC here")
        bundle = self.server.folder / "out.fusion"
        done = self.ctl("submit", MODEL, "-o", bundle, "--target", "cuda:sm_90", "--json", "report.json")
        self.assertRegex(done.err, r"no worker for cuda:sm_90: planned by the published figures of NVIDIA H100")
        self.assertRegex(done.err, r"0 measured, 0 known, [1-9]\d* estimated")
        self.assertIn("target   cuda sm_90", self.ctl("bundle", "inspect", bundle).out)
        with zipfile.ZipFile(bundle) as entries:
            self.assertIn(b"__global__", entries.read("src/kernels_0.cu"))
            self.assertTrue(entries.read("kernels/kernels_0.cubin").startswith(b"\x7fELF"))
            yellow = [d for d in json.loads(entries.read("plan.json"))["decisions"] if "source" in d]
            self.assertTrue(yellow)
            self.assertEqual({d["source"] for d in yellow}, {"model"})
        again = self.ctl("submit", MODEL, "-o", bundle, "--target", "cuda:sm_90")
        self.assertIn("from the store", again.err)
        run = self.server.ctl("run", bundle, "--random", "1")
        if run.code != 0:  # a machine with such a GPU runs the bundle
            self.assertRegex(run.err, r"the bundle is for cuda:sm_90[;,] ")


    def test_a_farm_with_one_kind_absent(self):
        if "NVRTC" not in self.ctl("worker", "list").out:
            self.skipTest("no NVRTC here")
        gpu = self.server.start_worker("--name", "gpu", "--kinds=opencl")
        self.addCleanup(gpu.wait)
        self.addCleanup(gpu.terminate)
        self.server.wait_until(lambda: gpu.poll() is not None or len(self.server.workers()) == 2, "both are attached")
        if gpu.poll() is not None:
            self.skipTest("no device of OpenCL here")
        (self.server.folder / "mlp.onnx").write_bytes(onnx_model.mlp())
        self.ctl("submit", "mlp.onnx", "--target", "cpu,opencl,cuda:sm_90", "--tune", "off")
        for target, name in (("cpu", "mlp.cpu"), ("opencl", "mlp.opencl"), ("cuda sm_90", "mlp.cuda-sm_90")):
            self.assertIn("target   " + target, self.ctl("bundle", "inspect", name + ".fusion").out)


if __name__ == "__main__":
    unittest.main()
