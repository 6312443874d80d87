"""A farm with a simulated accelerator: its programs are built, measured in simulated time, run and verified by a CPU's
kernels."""
import json
import pathlib
import shutil
import tempfile
import unittest
import zipfile

import harness
import onnx_model

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models" / "small"


class DsaFarm(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.server = harness.Server(folder, "--no-local-worker")
        self.addCleanup(self.server.stop)
        self.server.start()
        (folder / "mlp.onnx").write_bytes(onnx_model.mlp())

    def start_worker(self, *args):
        worker = self.server.start_worker("--kinds=dsa", *args)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: worker.poll() is not None or self.server.workers(), "the worker is attached")
        self.assertIsNone(worker.poll(), self.server.log_text())

    def start_both(self):
        self.start_worker()
        cpu = self.server.start_worker("--kinds=cpu", "--name", "cpu")
        self.addCleanup(cpu.wait)
        self.addCleanup(cpu.terminate)
        self.server.wait_until(lambda: len(self.server.workers()) == 2, "both are attached")

    def ctl(self, *args, code=0, checks=False):
        result = self.server.ctl(*args, checks=checks)
        self.assertEqual(result.code, code, "fusionctl %s\n%s\n%s" % (" ".join(map(str, args)), result,
                                                                      self.server.log_text()))
        return result

    def test_a_model_is_built_measured_and_verified(self):
        self.start_worker()
        report = self.ctl("submit", "mlp.onnx", "-o", "mlp.fusion", "--target", "dsa", checks=True)
        # Each of the three programs is a question; the mlp's may be equal texts, which are asked once.
        self.assertRegex(report.err, r"[1-9]\d* measured, \d+ known, 0 estimated")
        self.assertRegex(report.err, r"measured +simulated \d")
        self.assertRegex(report.err, r"verified +1 output, relative error")
        # The time is the same each time, and is in the profile database.
        self.assertIn("graph_turbo", self.ctl("profile", "query").out)
        again = self.ctl("submit", "mlp.onnx", "-o", "again.fusion", "--target", "dsa:stcp920", "--math", "strict")
        self.assertRegex(again.err, r"0 measured, [1-9]\d* known, 0 estimated")
        inspected = self.ctl("bundle", "inspect", "mlp.fusion").out
        self.assertRegex(inspected, r"target +dsa stcp920")
        self.assertIn("8 cores with LBs of 64 KiB and a GB of 8 MiB", inspected)
        self.assertRegex(inspected, r"\d+ instructions, \d+ unit codes; results: \d+ in DDR, \d+ in the GB, \d+ in the LBs")
        bench = self.ctl("bench", "mlp.fusion", "-o", "json").json()
        self.assertGreater(bench["simulated_cycles"], 500)
        self.assertAlmostEqual(bench["median_ms"], bench["simulated_cycles"] * 1e-6, places=9)
        self.assertIn("not a time of this machine", self.ctl("bench", "mlp.fusion").out)
        with zipfile.ZipFile(self.server.folder / "mlp.fusion") as entries:
            plan = json.loads(entries.read("plan.json"))
            self.assertEqual(plan["program"]["cycles"], bench["simulated_cycles"])
            self.assertIn("assumed", json.dumps(plan["machine"]))

    def test_models_of_convolutions_and_attention_compute_what_a_cpu_computes(self):
        self.start_both()
        for model in ("tiny_resnet", "tiny_encoder"):
            path = MODELS / (model + ".onnx")
            self.ctl("submit", path, "-o", "dsa.fusion", "--target", "dsa")
            self.ctl("submit", path, "-o", "cpu.fusion", "--planner", "none", "--math", "strict", "--tune", "off")
            self.assertIn("verified", self.ctl("verify", "dsa.fusion", "--reference", "cpu.fusion").out)
        self.assertIn("simulated device", self.ctl("bench", "dsa.fusion", "--against", "cpu.fusion", code=3).err)

    def test_each_specialisation_is_a_program(self):
        self.start_both()
        (self.server.folder / "rows.onnx").write_bytes(onnx_model.model(
            [onnx_model.node("Relu", ["x"], ["r"], "relu"), onnx_model.node("Softmax", ["r"], ["y"], "softmax")],
            [onnx_model.value("x", ["seq", 24])], [onnx_model.value("y", ["seq", 24])]))
        report = self.ctl("submit", "rows.onnx", "-o", "rows.fusion", "--target", "dsa", "--dim", "seq=8,40", checks=True)
        self.assertRegex(report.err, r"measured +simulated (seq=8 )?\d")
        self.assertRegex(report.err, r"verified +2 outputs, relative error")
        self.assertIn("the target has no inputs whose extents a run decides", report.err)
        with zipfile.ZipFile(self.server.folder / "rows.fusion") as entries:
            names = entries.namelist()
            plans = json.loads(entries.read("plan.json"))["specialisations"]
        self.assertIn("kernels/program_1.dsa", names)
        cycles = {plan["name"]: plan["plan"]["program"]["cycles"] for plan in plans}
        self.assertGreater(cycles["seq=40"], cycles["seq=8"])

    def test_a_check_that_needs_a_builder_for_the_cpu_says_so(self):
        self.start_worker("--build-kinds=dsa")
        report = self.ctl("submit", "mlp.onnx", "-o", "mlp.fusion", "--target", "dsa", checks=True)
        self.assertRegex(report.err, r"measured +simulated \d")
        self.assertRegex(report.err, r"verified +no: no worker is attached that builds for cpu")

    def test_what_the_machine_cannot_do_is_refused_by_name(self):
        self.start_worker("--machine", "goya")
        refused = self.ctl("submit", "mlp.onnx", "-o", "mlp.fusion", "--target", "dsa", code=3)
        self.assertIn("goya has cores without an LB", refused.err)


if __name__ == "__main__":
    unittest.main()
