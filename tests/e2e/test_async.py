"""`submit --async`: an unfused bundle at once, the tuned one under the same job when it is ready."""
import unittest

import harness
import onnx_model


class AsyncTest(harness.ServerTest):
    def test_an_unfused_bundle_comes_first_and_the_tuned_one_under_the_same_job(self):
        model = self.write("mlp.onnx", onnx_model.mlp(seed=1))
        bundle = self.folder / "mlp.fusion"
        first = self.ctl("submit", model, "--async", "--tune", "off", "-o", bundle, "--json", "-")
        early = first.json()
        job = early["job"]
        self.assertTrue(early["early"])
        self.assertRegex(first.err, rf"next +`fusionctl job watch {job} -o .*bundle get {job} --best")
        self.assertEqual(self.ctl("bundle", "inspect", bundle, "-o", "json").json()["options"]["planner"], "none")

        tuned = self.folder / "tuned.fusion"
        watched = self.ctl("job", "watch", job, "-o", tuned)
        self.assertRegex(watched.err, r"early +an unfused bundle of \d+ kernels is ready")
        best = self.folder / "best.fusion"
        self.assertNotIn("early", self.ctl("bundle", "get", job, "--best", "-o", best).out)
        self.assertEqual(best.read_bytes(), tuned.read_bytes())
        again = self.folder / "again.fusion"
        self.assertIn("early: unfused", self.ctl("bundle", "get", job, "--early", "-o", again).out)
        self.assertEqual(again.read_bytes(), bundle.read_bytes())
        self.assertIn(f"key {early['bundle']['key']}", self.ctl("job", "get", job).out)

        # Each is what a submission of its own would make, byte for byte.
        unfused = self.submit(model, "--planner", "none", "--tune", "off", output=self.folder / "unfused.fusion")
        self.assertTrue(unfused["from_store"])
        self.assertEqual(unfused["key"], early["bundle"]["key"])
        self.assertEqual((self.folder / "unfused.fusion").read_bytes(), bundle.read_bytes())
        self.ctl("verify", tuned, "--reference", bundle)

        # A second time, the tuned bundle is there at once.
        self.assertNotIn("early", self.ctl("submit", model, "--async", "--tune", "off", "-o", bundle, "--json", "-").json())
        self.assertEqual(bundle.read_bytes(), tuned.read_bytes())

    def test_what_is_not_there_is_named(self):
        model = self.write("other.onnx", onnx_model.mlp(seed=2))
        refused = self.ctl("submit", model, "--async", "--detach", code=2)
        self.assertIn("--async and --detach", refused.err)
        job = self.submit(model, "--tune", "off")["job"]
        self.assertIn("has no early bundle", self.ctl("bundle", "get", job, "--early", code=2).err)
        self.assertIn("name one of them", self.ctl("bundle", "get", job, "--early", "--best", code=2).err)


if __name__ == "__main__":
    unittest.main()
