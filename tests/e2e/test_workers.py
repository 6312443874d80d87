"""Workers that only build, or only measure."""
import unittest

import harness
import onnx_model


class DividedWork(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def start_worker(self, name, *args):
        worker = self.server.start_worker("--name", name, *args)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: self.listed(name), name + " is attached")

    def listed(self, name):
        return next((w for w in self.server.workers() if w["info"]["name"] == name), None)

    def test_one_builds_and_another_measures(self):
        self.start_worker("builder", "--kinds=none")
        self.start_worker("meter", "--no-build")
        self.assertEqual(self.listed("builder")["info"]["measure_kinds"], [])
        self.assertRegex(self.ctl("worker", "list").out, r"builder +idle +- +clang")
        self.assertRegex(self.ctl("worker", "list").out, r"meter +idle +cpu +- ")

        model = self.write("divided.onnx", onnx_model.elementwise_and_softmax(seed=21))
        report = self.submit(model)
        self.assertGreater(report["measurement_tasks"], 0)
        self.ctl("verify", self.folder / "divided.fusion", "--model", model)
        for name in ("builder", "meter"):
            self.assertGreater(int(self.listed(name)["tasks_done"]), 0, name)
            self.assertEqual(int(self.listed(name).get("tasks_failed", 0)), 0, name)


if __name__ == "__main__":
    unittest.main()
