"""graph-turbo on graphs of which the counts are known by hand, and the models that graphturbo.py writes."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

try:
    import graphturbo
except ImportError:  # it needs onnx and numpy
    graphturbo = None

# Four stages of one 1x1 convolution on 8 images (Figure 3a of the paper).
STAGES = """graph stages(%x: f32[8, 4, 8, 8]) {
  %w1: f32[4, 4, 1, 1] = const #0000000000000000
  %w2: f32[8, 4, 1, 1] = const #0000000000000000
  %a: f32[8, 4, 8, 8] = Conv(%x, %w1)
  %b: f32[8, 8, 4, 4] = Conv(%a, %w2) {strides = ints[2, 2]}
  return %b
}"""


def run(*arguments):
    return subprocess.run([os.environ["GRAPH_TURBO"], *map(str, arguments)], capture_output=True, text=True, check=False)


class GraphTurbo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "stages.txt").write_text(STAGES)

    def report(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_everything_fits_the_machine(self):
        report = self.report(self.folder / "stages.txt")
        self.assertEqual((report["tvm_ddr"], report["instances"], report["returned"]), (2, 1, 1))
        self.assertEqual((report["outputs"]["ddr"], report["outputs"]["llb"], report["outputs"]["l1"]), (0, 0, 2))

    def test_a_small_lb_makes_instances(self):
        # 8 cores of 250 bytes, an eighth of them for weights: 1750 bytes. An image takes 2 * 512 in the first stage,
        # 392 + 256 in the second.
        report = self.report(self.folder / "stages.txt", "--local-bytes", 250)
        self.assertEqual(report["instances"], 8 + 4)
        self.assertEqual((report["edges_inherited"], report["edges"]), (32, 8))
        self.assertEqual(report["outputs"]["ddr"], 0)

    def test_programs_compute_the_models_numbers(self):
        for variant in ("tvm_like", "graph_turbo"):
            report = self.report(self.folder / "stages.txt", "--numbers", variant, "--local-bytes", 4096)
            self.assertTrue(report["outputs"] and all(output["ok"] for output in report["outputs"]), report)

    def test_programs_are_timed_over_a_range_of_rates(self):
        report = self.report(self.folder / "stages.txt", "--simulate", "tvm_like,graph_turbo", "--check", "--assumed-rates", "0.25,1,4",
                             "--program", self.folder / "program.txt")
        for (simulation,) in report.values():
            slow, assumed, fast = (timing["seconds"] for timing in simulation["timings"])
            self.assertTrue(slow > assumed > fast > 0)
        self.assertIn("program model for stcp920 {", (self.folder / "program.txt").read_text())

    def test_each_share_is_a_simulation_of_variants_with_instances(self):
        report = self.report(self.folder / "stages.txt", "--local-bytes", 512, "--simulate", "l1,instances", "--weights-share", "0.125,0.5")
        self.assertEqual(len(report["l1"]), 1)
        self.assertEqual([simulation["weights_share"] for simulation in report["instances"]], [0.125, 0.5])
        # Smaller instances are more of them.
        less, more = (simulation["instructions"] for simulation in report["instances"])
        self.assertLess(less, more)

    def test_jobs_change_no_figure(self):
        def figures(*arguments):
            report = self.report(self.folder / "stages.txt", "--local-bytes", 512, "--simulate", "tvm_like,llb,l1,instances,graph_turbo", *arguments)
            return {variant: [[timing["cycles"] for timing in simulation["timings"]] for simulation in simulations]
                    for variant, simulations in report.items()}
        self.assertEqual(figures("--jobs", 4), figures())

    def test_errors_say_what_to_do(self):
        self.assertIn("there are tvm_like, astitch_like", run(self.folder / "stages.txt", "--simulate", "tvm").stderr)
        self.assertIn("there are goya, stcp920", run(self.folder / "stages.txt", "--machine", "tpu").stderr)
        self.assertIn("expected NAME=N,N", run("model.onnx", "--shape", "8,3").stderr)
        self.assertIn("'x' is no positive number", run("model.onnx", "--shape", "input=8,x").stderr)
        self.assertEqual(run(self.folder / "none.onnx").returncode, 1)

    @unittest.skipIf(graphturbo is None, "python3-onnx is not installed")
    def test_a_layer_of_bert_has_eighteen_groups(self):
        def groups(layers):
            graphturbo.onnx.save(graphturbo.bert(2, 16, layers, 32, 4), self.folder / "bert.onnx")
            return self.report(self.folder / "bert.onnx")["tvm_ddr"]
        self.assertEqual(groups(3) - groups(2), 18)

    @unittest.skipIf(graphturbo is None, "python3-onnx is not installed")
    def test_extents_follow_the_batch(self):
        self.assertEqual(graphturbo.scaled([1, -1, 256], 3), [3, -1, 256])
        self.assertEqual(graphturbo.scaled([197, 768], 8), [197 * 8, 768])
        self.assertEqual(graphturbo.scaled([197, 12, 64], 8), [197, 96, 64])


if __name__ == "__main__":
    unittest.main()
