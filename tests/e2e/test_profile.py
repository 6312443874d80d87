"""Measurements that move between farms."""
import json
import unittest

import harness
import onnx_model


class MovingProfiles(harness.ServerTest):
    def other_server(self, name):
        folder = self.folder / name
        folder.mkdir()
        server = harness.Server(folder)
        self.addCleanup(server.stop)
        return server.start()

    def measurements(self, server):
        return server.ctl("profile", "stats", "-o", "json").json()["measurements"]

    def report(self, server, model, name):
        path = self.folder / name
        done = server.ctl("submit", model, "-o", path.with_suffix(".fusion"), "--json", path)
        self.assertEqual(done.code, 0, done)
        return json.loads(path.read_text())

    def test_a_second_machine_of_the_kind_measures_nothing(self):
        model = self.write("moved.onnx", onnx_model.elementwise_and_softmax(seed=31))
        self.assertGreater(self.report(self.server, model, "here.json")["measurement_tasks"], 0)
        exported = self.folder / "profile.jsonl"
        self.ctl("profile", "export", exported)
        count = self.measurements(self.server)
        self.assertGreater(count, 0)

        there = self.other_server("there")
        self.assertEqual(there.ctl("profile", "import", exported, "-o", "json").json(), {"added": count, "known": 0})
        self.assertEqual(there.ctl("profile", "import", exported, "-o", "json").json(), {"added": 0, "known": count})
        self.assertEqual(self.report(there, model, "there.json")["measurement_tasks"], 0)

        merged = self.other_server("merged")
        self.assertIn("%d measurements added, 0 known" % count, merged.ctl("profile", "merge", there.address).out)
        self.assertEqual(self.measurements(merged), count)
        self.assertEqual(self.report(merged, model, "merged.json")["measurement_tasks"], 0)

    def test_what_is_no_measurement_is_named_and_nothing_is_taken(self):
        good = {"question_key": "a" * 64, "device_fingerprint": "d", "samples": 1, "min_ns": 1, "median_ns": 1, "p90_ns": 1}
        before = self.measurements(self.server)
        for bad, words in (("{", "bad.jsonl:2: not a measurement"),
                           (json.dumps(dict(good, colour=1)), "colour"),
                           (json.dumps(dict(good, question_key="../x")), "question_key '../x'"),
                           (json.dumps(dict(good, samples=0)), "0 samples"),
                           (json.dumps(dict(good, median_ns="NaN")), "median nan ns")):
            path = self.write("bad.jsonl", (json.dumps(good) + "\n" + bad + "\n").encode())
            result = self.server.ctl("profile", "import", path)
            self.assertIn(words, result.err)
            self.assertEqual(result.code, 3, result)
        self.assertEqual(self.measurements(self.server), before)
        self.assertIn("missing.jsonl", self.server.ctl("profile", "import", "missing.jsonl").err)


if __name__ == "__main__":
    unittest.main()
