"""Simulated accelerators: tests how a farm with several devices behaves, without any hardware."""
import json
import pathlib
import shutil
import tempfile
import unittest
import zipfile

import harness

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "small" / "tiny_encoder.onnx"


class SimulatedDevices(unittest.TestCase):
    def farm(self, workers, seed=1):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, "--no-local-worker")
        self.addCleanup(server.stop)
        server.start()
        for n in range(workers):
            worker = server.start_worker("--name", "sim%d" % n, "--kinds=sim", "--simulated-measurement=50ms",
                                         "--simulated-seed=%d" % seed)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.terminate)
        server.wait_until(lambda: len(server.workers()) == workers, "all workers are attached")
        return server

    def ctl(self, server, *args, code=0):
        result = server.ctl(*args)
        self.assertEqual(result.code, code, "fusionctl %s\n%s\n%s" % (" ".join(map(str, args)), result,
                                                                      server.log_text()))
        return result

    def compile(self, server):
        """Returns the report, the plan and the rows of the profile database."""
        bundle, report, rows = (server.folder / name for name in ("out.fusion", "report.json", "profile.jsonl"))
        self.ctl(server, "submit", MODEL, "-o", bundle, "--target", "sim", "--json", report)
        self.ctl(server, "profile", "export", rows)
        with zipfile.ZipFile(bundle) as entries:
            plan = json.loads(entries.read("plan.json"))
        records = [json.loads(line) for line in rows.read_text().splitlines()]
        return json.loads(report.read_text()), plan, [r["measurement"] for r in records if "measurement" in r]

    def test_two_devices_share_the_questions_and_the_plan_is_that_of_one(self):
        one, two = self.farm(1), self.farm(2)
        report_one, plan_one, rows_one = self.compile(one)
        report_two, plan_two, rows_two = self.compile(two)
        self.assertGreater(report_one["measurement_tasks"], 8)
        self.assertEqual(plan_two, plan_one)
        # Both devices measured. How they share the tasks depends on what else the machine does.
        names = [row["worker"].split("/")[0] for row in rows_two]
        self.assertEqual(len(names), report_two["measurement_tasks"])
        for name in ("sim0", "sim1"):
            self.assertGreater(names.count(name), 0, names)
        for worker in two.workers():
            self.assertEqual(int(worker.get("tasks_failed", 0)), 0)
        # Both farms answered the same questions alike, in rows of this device only.
        latency = {row["question_key"]: row["median_ns"] for row in rows_one}
        both = [row for row in rows_two if row["question_key"] in latency]
        self.assertGreaterEqual(len(both), 8)
        for row in both:
            self.assertEqual(row["median_ns"], latency[row["question_key"]])
            self.assertTrue(row["device_fingerprint"].startswith("sim/simulated accelerator, seed 1/"), row)
            self.assertEqual(row["toolchain"], "simulated")
        # The bundle names its target, and nothing runs it.
        bundle = two.folder / "out.fusion"
        self.assertRegex(self.ctl(two, "bundle", "inspect", bundle).out, r"target +sim")
        self.assertIn("target 'sim'", two.ctl("run", bundle, "--random", "1").err)
        # No worker here serves the CPU.
        refused = two.ctl("submit", MODEL, "-o", two.folder / "cpu.fusion", "--queue-timeout", "1")
        self.assertNotEqual(refused.code, 0)
        self.assertIn("sim", refused.err)


if __name__ == "__main__":
    unittest.main()
