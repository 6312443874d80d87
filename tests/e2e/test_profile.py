"""Measurements that move between farms."""
import itertools
import json
import pathlib
import unittest

import harness
import onnx_model


class MovingProfiles(harness.ServerTest):
    def other_server(self, name, probed=None):
        folder = self.folder / name
        folder.mkdir()
        server = harness.Server(folder)
        self.addCleanup(server.stop)
        if probed is not None:
            path = server.state / self.probe().relative_to(self.server.state)
            path.parent.mkdir(parents=True)
            path.write_text(probed)
        return server.start()

    def probe(self):
        return next(self.server.state.rglob("device-cpu.json"))

    def with_other_rates(self, probed):
        """What a worker keeps of its probe, as if the device were busy with something else."""
        tag, text = probed.split("\n", 1)
        model = json.loads(text)
        model["fma_f32_flops_per_s"] *= 0.4
        model["barrier_s"] *= 20
        for level in model["memory"][1:]:
            level["bandwidth_bytes_per_s"] *= 0.2
        return tag + "\n" + json.dumps(model)

    def measurements(self, server):
        return server.ctl("profile", "stats", "-o", "json").json()["measurements"]

    def measurements_taken(self, server, exported, *flags):
        taken = server.ctl("profile", "import", exported, "-o", "json", *flags).json()
        return taken["added"], taken["known"]

    def measured_again(self, server):
        rows = server.ctl("profile", "query", "--limit", "10000", "-o", "json").json()["measurements"]
        return sum(row["standing"] != "imported" for row in rows)

    def report(self, server, model, name, *flags, **options):
        path = self.folder / name
        done = server.ctl("submit", model, "-o", path.with_suffix(".fusion"), "--json", path, *flags, **options)
        self.assertEqual(done.code, 0, done)
        return json.loads(path.read_text())

    def measure_all(self, name, data):
        """Writes the model and submits it to the first machine until nothing is left to measure there: a busy machine
        ends tuning early, and the next submission of the same kernels goes on. Doc strings tell the copies apart."""
        for copy in itertools.count():
            doc_string = b"\x32\x01" + bytes([ord("a") + copy])
            model = self.write("%d.%s" % (copy, name), data + doc_string)
            measured = self.report(self.server, model, name + ".json")["measurement_tasks"]
            if measured == 0:
                self.assertGreater(copy, 0)
                return self.write(name, data)

    def test_a_second_machine_of_the_kind_measures_nothing(self):
        model = self.measure_all("moved.onnx", onnx_model.elementwise_and_softmax(seed=31))
        exported = self.folder / "profile.jsonl"
        self.ctl("profile", "export", exported)
        count = self.measurements(self.server)
        self.assertGreater(count, 0)

        there = self.other_server("there")
        self.assertEqual(self.measurements_taken(there, exported, "--believe"), (count, 0))
        self.assertEqual(self.measurements_taken(there, exported), (0, count))
        self.assertEqual(self.report(there, model, "there.json")["measurement_tasks"], 0)
        believed = [line for line in there.log_text().splitlines() if "believes" in line]
        self.assertEqual(len(believed), 1, there.log_text())
        self.assertIn("imported/", believed[0])

        merged = self.other_server("merged")
        said = merged.ctl("profile", "merge", there.address, "--believe").out
        self.assertIn("%d measurements added, 0 known" % count, said)
        self.assertEqual(self.measurements(merged), count)
        self.assertEqual(self.report(merged, model, "merged.json")["measurement_tasks"], 0)

    def test_a_few_rows_for_which_nobody_vouches_are_measured_again(self):
        model = self.write("doubted.onnx", onnx_model.convolution(seed=33, channels=32, size=12))
        self.assertGreater(self.report(self.server, model, "doubted-here.json")["measurement_tasks"], 0)
        exported = self.folder / "doubted.jsonl"
        self.ctl("profile", "export", exported)
        count = self.measurements(self.server)
        there = self.other_server("doubting")
        self.assertEqual(self.measurements_taken(there, exported), (count, 0))
        self.report(there, model, "doubted-there.json")
        # Three of the source's rows, in turns of three while this machine is so busy that they differ.
        again = self.measured_again(there)
        self.assertGreater(again, 0)
        self.assertEqual(self.measurements(there), count + again)
        self.assertEqual(self.report(there, model, "doubted-again.json")["measurement_tasks"], 0)
        self.assertEqual(self.measured_again(there), again)

    def test_whatever_the_second_machine_measured_of_itself(self):
        # The rates decide which form of this convolution is fastest.
        model = self.measure_all("rates.onnx", onnx_model.convolution(seed=32, channels=128, size=14))
        there = self.other_server("rates", self.with_other_rates(self.probe().read_text()))
        self.assertIn("added", there.ctl("profile", "merge", self.server.address, "--believe").out)
        self.assertEqual(self.report(there, model, "rates-there.json")["measurement_tasks"], 0)

    def records(self, path, kind):
        return [record[kind] for record in map(json.loads, path.read_text().splitlines()) if kind in record]

    def test_a_second_machine_knows_what_whole_plans_take(self):
        model = pathlib.Path(__file__).parents[1] / "models/small/tiny_resnet.onnx"
        # Rates that are far from a typical core's make another plan than the offline one. Without tuning no question
        # is left out for want of time, so that the second server has none of its own.
        first = self.other_server("first", self.with_other_rates(self.probe().read_text()))
        here = self.report(first, model, "plans-here.json", "--tune", "off", checks=True)
        self.assertGreater(len(here["alternatives"]), 1, "the plans of this model differ")
        exported = self.folder / "plans.jsonl"
        said = first.ctl("profile", "export", exported).err
        comparisons, plans = self.records(exported, "comparison"), self.records(exported, "plan")
        self.assertGreaterEqual(len(comparisons), len(here["alternatives"]) - 1)
        self.assertGreaterEqual(len(plans), 2, "the bundle and its unfused form")
        self.assertIn(", and %d of whole plans" % (len(comparisons) + len(plans)), said)

        there = self.other_server("plans")
        count = len(comparisons) + len(plans)
        taken = there.ctl("profile", "import", exported, "-o", "json", "--believe").json()
        self.assertEqual((taken["plans_added"], taken["plans_known"]), (count, 0))
        taken = there.ctl("profile", "import", exported, "-o", "json").json()
        self.assertEqual((taken["plans_added"], taken["plans_known"]), (0, count))
        again = self.report(there, model, "plans-there.json", "--tune", "off")
        self.assertEqual(again["measurement_tasks"], 0)
        self.assertEqual(again["alternatives"], here["alternatives"], "nothing was compared anew")
        self.assertEqual(again["bundle"]["sha256"], here["bundle"]["sha256"])

        from_there = self.folder / "plans-there.jsonl"
        self.assertEqual(there.ctl("profile", "export", from_there).code, 0)
        moved = self.records(from_there, "comparison")
        self.assertEqual(sorted(row["plan_key"] for row in moved),
                         sorted(row["plan_key"] for row in comparisons))
        for row in moved + self.records(from_there, "plan"):
            self.assertTrue(row["source"].startswith("imported/"), row)
        self.assertEqual({row["standing"] for row in moved}, {"imported"})

        bad = dict(comparisons[0], ratio=-1)
        path = self.write("bad-plans.jsonl", json.dumps({"comparison": bad}).encode())
        result = there.ctl("profile", "import", path)
        self.assertEqual(result.code, 3, result)
        self.assertIn("not a comparison of plans", result.err)
        path = self.write("bad-plan.jsonl", json.dumps({"plan": dict(plans[0], threads=0)}).encode())
        self.assertIn("not a measurement of a whole plan", there.ctl("profile", "import", path).err)

    def test_what_is_no_measurement_is_named_and_nothing_is_taken(self):
        fields = {"question_key": "a" * 64, "device_fingerprint": "d", "samples": 1, "min_ns": 1, "median_ns": 1,
                  "p90_ns": 1}

        def line(**changed):
            return json.dumps({"measurement": dict(fields, **changed)})

        before = self.measurements(self.server)
        for bad, words in (("{", "bad.jsonl:2: no line of profile export"),
                           (line(colour=1), "colour"),
                           (line(question_key="../x"), "question_key '../x'"),
                           (line(samples=0), "0 samples"),
                           (line(median_ns="NaN"), "median nan ns"),
                           (json.dumps({"device": {"fingerprint": "d", "model_json": "{}"}}), "another device"),
                           (json.dumps({"device": {"fingerprint": "d", "model_json": "["}}), "not a JSON object")):
            path = self.write("bad.jsonl", (line() + "\n" + bad + "\n").encode())
            result = self.server.ctl("profile", "import", path)
            self.assertIn(words, result.err)
            self.assertEqual(result.code, 3, result)
        self.assertEqual(self.measurements(self.server), before)
        self.assertIn("missing.jsonl", self.server.ctl("profile", "import", "missing.jsonl").err)


if __name__ == "__main__":
    unittest.main()
