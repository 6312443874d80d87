"""Tests report.py's files and table, without a compiler, and the order of export.py's work, without PyTorch."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import export
import report


class ReportTest(unittest.TestCase):
    def test_every_model_of_the_papers_has_a_recipe(self):
        self.assertEqual(set(report.ORDER), set(export.RECIPES))

    def test_networks_are_files(self):
        for name, recipe in export.RECIPES.items():
            if recipe.source.startswith("networks/"):
                self.assertTrue((pathlib.Path(export.__file__).parent / recipe.source).is_file(), name)

    def test_a_model_that_cannot_be_exported_is_named_and_the_others_are_exported(self):
        def pretend(name, path, *_):
            if name == "unet":
                path.with_suffix(".part").write_text("half")
                raise RuntimeError("sizes differ")
            if name == "dlrm":
                raise export.NotExported("an output is empty")
            path.write_text(name)

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said, \
                mock.patch.object(export, "export", pretend), \
                mock.patch.object(export, "missing_packages", lambda recipe: []), \
                mock.patch.object(sys, "argv", ["export.py", "--out", folder, "unet", "c3d", "dlrm", "mmoe"]):
            with self.assertRaises(SystemExit) as end:
                export.main()
            self.assertEqual(end.exception.code, "not exported: unet, dlrm")  # printed, and the exit code is 1
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), ["c3d.onnx", "mmoe.onnx"])
        self.assertIn("unet: not exported: RuntimeError: sizes differ", said.getvalue())
        self.assertIn("dlrm: not exported: an output is empty", said.getvalue())

    def test_inputs_are_npy_files_of_the_recipe(self):
        with tempfile.TemporaryDirectory() as folder:
            files = report.write_inputs("dien", pathlib.Path(folder))
            self.assertEqual(list(files), list(export.RECIPES["dien"].inputs))
            data = files["item_history"].read_bytes()
            length = int.from_bytes(data[8:10], "little")
            self.assertEqual((10 + length) % 64, 0)
            self.assertIn(b"'descr': '<i8', 'fortran_order': False, 'shape': (32, 50, ),", data[10:10 + length])
            self.assertEqual(len(data), 10 + length + 32 * 50 * 8)
            first = int.from_bytes(data[10 + length:18 + length], "little")
            self.assertLess(first, 20000)

    def test_table_names_figures_and_failures(self):
        submit = {"nodes": 100, "nodes_rewritten": 90, "kernels": 40, "kernels_distinct": 20, "seconds": 3.25,
                  "intermediate_bytes": {"before": 5e6, "after": 2e6}}
        results = {"models": {"vgg16": {"date": "2026-01-02", "submit": submit, "strict": 1e-6, "onnxruntime": 2e-6},
                              "lstm10": {"date": "2026-01-01", "failure": "fusionctl submit: exit 3: unsupported"}}}
        text = report.document(results, {"cpu": "a CPU", "cpus": 2, "versions": "fusion 0"})
        self.assertIn("| vgg16 | DNNFusion | 100 (1.96 of theirs) | 90 | 40 (20) | 2.50 (3.00) | 5 → 2 | 3.2 | 1.0e-06 | 2.0e-06 | "
                      "51 → 17 (DNNFusion) | 161 → 52 |", text)
        self.assertNotIn("With nothing folded", text)
        self.assertNotIn("Launches, phases", text)
        results["models"]["vgg16"]["unfolded"] = {"nodes": 102, "kernels": 34, "strict": 3e-6}
        results["models"]["vgg16"]["plans"] = {
            "estimates": {"launches": 17, "phases": 20, "batches": 1, "bytes_between_kernels": 5e6, "bytes_between_phases": 0}}
        results["models"]["lstm10"]["unfolded"] = {"failure": "fusion-compile: exit 1"}
        more = report.document(results, {"cpu": "a CPU", "cpus": 2, "versions": "fusion 0"})
        self.assertIn("| vgg16 | 100 | 102 | 51 | 34 | 17 | 3.00 (3.00) | 3.0e-06 |", more)
        self.assertIn("| vgg16 | 17 / – | 20 / – | 3 / – | 1 / – | 5.00 / – | 0.00 / – |", more)
        self.assertIn("- `lstm10`, unfolded: fusion-compile: exit 1", more)
        self.assertIn("- `lstm10`: fusionctl submit: exit 3: unsupported", text)
        self.assertIn("2026-01-01 to 2026-01-02", text)
        self.assertIn("not tried: efficientnet_b0", text)


    def test_values_are_handed_between_kernels_or_between_phases(self):
        arena, weights = {"kind": "arena", "size_bytes": 100, "name": "v"}, {"kind": "constant", "size_bytes": 7}
        figures = report.plan_figures({
            "buffers": [{"kind": "input", "size_bytes": 5}, arena, {**arena, "size_bytes": 30, "name": ""}, weights,
                        {**arena, "size_bytes": 8}, {"kind": "output", "size_bytes": 5}],
            "kernels": [{"phases": [{}, {}]}, {"phases": [{}]}],
            "launches": [{"kernel": 0, "buffers": [0, 3, 2, 1]},  # 2 is its own: between its phases
                         {"kernel": 1, "buffers": [1, 4], "others": [[1, 3]]}, {"kernel": 1, "buffers": [4, 5]}]},
            {"intermediate_bytes": {"before": 500, "after": 108}})
        self.assertEqual(figures, {"launches": 3, "batches": 1, "phases": 4, "bytes_between_kernels": 108,
                                   "bytes_between_phases": 30})


if __name__ == "__main__":
    unittest.main()
