"""Trials of schedules: budgets, stored trials, and unchanged results."""
import json
import unittest

import harness
import onnx_model


class Tuning(harness.ServerTest):
    def model(self, seed, size=14):
        return self.write("conv%d.onnx" % seed, onnx_model.convolution(seed, size=size))

    def test_tuned_kernels_are_right(self):
        tuned = self.submit(self.model(1))  # --tune quick is the default
        self.assertGreater(tuned["trials"], 0)
        verified = self.ctl("verify", self.folder / "conv1.fusion", "--model", self.folder / "conv1.onnx", "-o", "json").json()
        self.assertTrue(verified["ok"], verified)

    def test_trials_are_measured_once(self):
        # On a simulated device measurements take no time, so the number of trials within a budget does not depend on
        # what else the machine does.
        worker = self.server.start_worker("--name", "sim", "--kinds=sim", "--simulated-measurement=0s")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: len(self.server.workers()) == 2, "the simulated device is attached")

        def submit(seed, *args):
            return self.submit(self.model(seed), "--target", "sim", *args)

        first = submit(1)
        self.assertGreater(first["trials"], 4)
        # The same kernel with other weights: every answer is in the database.
        second = submit(2)
        self.assertEqual(second["measurement_tasks"], 0, second)
        # A longer search continues from there.
        more = submit(3, "--tune", "full")
        self.assertGreater(more["measurement_tasks"], 0)
        self.assertGreater(more["trials"], 0)
        again = submit(4)
        self.assertEqual(again["measurement_tasks"], 0, again)
        # No trials at all.
        none = submit(5, "--tune", "off")
        self.assertEqual(none["trials"], 0)
        stats = self.ctl("profile", "stats", "-o", "json").json()
        self.assertGreater(stats["model_kernels"], 4)
        tried = self.ctl("profile", "query", "--contains", "=", "-o", "json").json()["measurements"]
        self.assertTrue(any(m.get("choices") for m in tried), tried)

    def test_another_farm_takes_them_over(self):
        self.submit(self.model(6, size=12))
        exported = self.folder / "profile.jsonl"
        self.ctl("profile", "export", exported)
        folder = self.folder / "there"
        folder.mkdir()
        there = harness.Server(folder)
        self.addCleanup(there.stop)
        there.start()
        self.assertEqual(there.ctl("profile", "import", "--believe", exported).code, 0)
        report = folder / "report.json"
        done = there.ctl("submit", self.model(7, size=12), "-o", folder / "b.fusion", "--json", report)
        self.assertEqual(done.code, 0, done)
        self.assertEqual(json.loads(report.read_text())["measurement_tasks"], 0)

    def test_an_unknown_budget_is_refused(self):
        refused = self.server.ctl("submit", self.model(8), "--tune", "fast", "-o", self.folder / "no.fusion")
        self.assertEqual(refused.code, 3, refused)
        self.assertIn("off, quick, full, or a number of seconds", refused.err)


if __name__ == "__main__":
    unittest.main()
