"""Workers that only build, or only measure."""
import re
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


class Drained(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def test_a_drained_worker_gets_no_task_until_it_is_released(self):
        worker = self.server.start_worker("--name", "one")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        listed = lambda: next((w for w in self.server.workers() if w["info"]["name"] == "one"), None)
        self.server.wait_until(listed, "the worker is attached")
        refused = self.ctl("worker", "drain", "nobody", code=2)
        self.assertRegex(refused.err, r"no worker 'nobody' is attached; attached: .*one")
        self.ctl("worker", "drain", "one", "--reason", "new fans")
        self.assertRegex(self.ctl("worker", "list").out, r"one +drained ")
        described = self.ctl("worker", "describe", "one").out
        self.assertRegex(described, r"drained +since .* by local: new fans")
        self.assertRegex(described, r"arithmetic +[\d.]+ GFLOP/s")

        model = self.write("drained.onnx", onnx_model.mlp(seed=22))
        job = self.ctl("submit", model, "--tune", "off", "--detach").out.split()[0]
        waits = re.compile(rf"one +drained .*\n(.*\n)*{job} +running .*drained: one")
        self.server.wait_until(lambda: waits.search(self.ctl("top", "--once").out), "the job waits, and says for whom")
        self.server.kill()
        self.server.start(wait_for_worker=False)
        self.server.wait_until(listed, "the worker is attached again")
        self.assertEqual(listed()["state"], "drained", "also after a restart")

        self.assertIn("takes tasks again; it was drained since", self.ctl("worker", "release", "one").out)
        self.ctl("job", "watch", job, "-o", self.folder / "drained.fusion")
        self.assertIn("is not drained", self.ctl("worker", "release", "one", code=2).err)

        self.ctl("worker", "drain", "one", "--from", "23:59", "--for", "2h", "--reason", "later")
        self.assertNotEqual(listed()["state"], "drained", "the window is to come")
        self.assertRegex(self.ctl("worker", "describe", "one").out, r"drained +from .* 23:59:00 until .* by local: later")
        self.assertIn("over", self.ctl("worker", "drain", "one", "--until", "2020-01-01 00:00", code=2).err)
        self.assertIn("say one of them", self.ctl("worker", "drain", "one", "--until", "23:00", "--for", "1h", code=2).err)
        self.ctl("worker", "drain", "one", "--for", "2s")
        self.assertEqual(listed()["state"], "drained")
        self.server.wait_until(lambda: listed()["state"] == "idle", "the window is over")


class SeveralDevices(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def test_a_submission_may_say_which_of_several_devices_it_is_for(self):
        for name, seed, *labels in (("left", 1, "--label", "room=1"), ("right", 2, "--label", "room=2", "--label", "fast=yes")):
            worker = self.server.start_worker("--name", name, "--kinds=sim", "--simulated-seed", seed, "--simulated-measurement",
                                              "1ms", *labels)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: len(self.server.workers()) == 2, "both are attached")
        fingerprints = {w["info"]["name"]: w["fingerprint"] for w in self.server.workers()}
        self.assertNotEqual(fingerprints["left"], fingerprints["right"])
        model = self.write("chosen.onnx", onnx_model.mlp(seed=23))
        keys = {}
        for wish, device in (("name=left", "left"), ("room=1", "left"), ("room=2", "right"),
                             ("fingerprint=" + fingerprints["right"], "right"), ("device=simulated accelerator, seed 2", "right")):
            report = self.submit(model, "--target", "sim", "--require", wish)
            self.assertEqual(report["key"], keys.setdefault(device, report["key"]), "the device counts, not how it was named")
        self.assertNotEqual(keys["left"], keys["right"])
        several = self.ctl("submit", model, "--target", "sim", "--tune", "off", "-o", "any.fusion", "--progress", "plain")
        choice = r"several devices fit 'sim': planned for .*--require names one"
        self.assertRegex(several.err, choice)
        again = self.ctl("submit", model, "--target", "sim", "--tune", "off", "-o", "again.fusion", "--progress", "plain")
        self.assertRegex(again.err, "device +" + choice)
        self.assertIn("(from the store)", again.err)

        job = self.ctl("submit", model, "--target", "sim", "--require", "room=3", "--queue-timeout", "1", "--detach").out.split()[0]
        self.assertRegex(self.ctl("job", "watch", job, code=7).err, r"no worker for sim with room=3; kinds attached: sim")
        self.assertIn("is not of the form", self.ctl("submit", model, "--require", "room", code=2).err)


if __name__ == "__main__":
    unittest.main()
