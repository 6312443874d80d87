"""server_plans.py on reports and figures that are made up, with programs that only say that they were called."""
import contextlib
import io
import json
import os
import pathlib
import tempfile
import types
import unittest

import server_plans


def plan(name, ratio, chosen=False, rounds=20, spread=0.001):
    return {"plan": name, "ratio": ratio, "rounds": rounds, "chosen": chosen, "ratio_low": ratio - spread,
            "ratio_high": ratio + spread}


class Choice(unittest.TestCase):
    def test_the_fastest_plan_is_named_with_the_second(self):
        name, why = server_plans.choice([plan("offline", 1), plan("by measurements", 0.9, chosen=True)])
        self.assertEqual(name, "by measurements")
        self.assertEqual(why, "fastest; offline takes 1.111 of it")

    def test_a_plan_that_is_as_fast_as_the_fastest_is_equal(self):
        name, why = server_plans.choice([plan("offline", 1, chosen=True), plan("by estimates", 0.996)])
        self.assertEqual((name, why), ("offline", "equal: 1.004 of by estimates, the fastest"))

    def test_a_slower_plan_is_called_so(self):
        why = server_plans.choice([plan("offline", 1, chosen=True), plan("by estimates", 0.9)])[1]
        self.assertEqual(why, "NOT the fastest: 1.111 of by estimates, the fastest")

    def test_a_plan_whose_gain_is_not_certain_is_no_mistake(self):
        plans = [plan("offline", 1, chosen=True, spread=0), plan("by estimates", 0.9, spread=0.11)]
        self.assertEqual(server_plans.choice(plans)[1],
                         "not certain: 1.111 of by estimates, the fastest (0.790–1.010)")

    def test_plans_that_nobody_measured(self):
        alternatives = [plan("offline", 0, rounds=0), plan("by measurements", 0, chosen=True, rounds=0)]
        self.assertEqual(server_plans.choice(alternatives, "no worker"), ("by measurements", "no worker"))
        self.assertEqual(server_plans.choice([]), ("offline", "the only plan"))


class Figures(unittest.TestCase):
    def test_the_interval_is_the_range(self):
        self.assertEqual(server_plans.interval([1.02, 0.98, 1.0, 1.0, 0.99, 1.01]), (1.0, 0.98, 1.02, 1 - 1 / 32))

    def test_the_mean_is_geometric(self):
        self.assertAlmostEqual(server_plans.geometric_mean([2, 0.5]), 1)

    def test_rows_above_the_limit_are_named_and_others_not(self):
        rows = [{"model": "a", "threads": 1, "ratio": 1.0099, "low": 1, "high": 1.02, "same": False},
                {"model": "b", "threads": 2, "ratio": 1.03, "low": 1.02, "high": 1.04, "same": False},
                {"model": "c", "threads": 1, "ratio": 1.03, "low": 1.0, "high": 1.04, "same": True}]
        self.assertEqual(server_plans.above_limit(rows),
                         ["b on 2 threads takes 1.030 of the offline bundle's time (1.020–1.040)",
                          "c on 1 thread takes 1.030 of the offline bundle's time (1.000–1.040, which allows 1.01), "
                          "but both bundles have the same kernels and launches"])


class FakeServer:
    """Answers submissions with a report, and fails where `broken` says."""

    def __init__(self):
        self.calls, self.broken = [], False

    def ctl(self, *args, timeout):
        self.calls.append(args)
        if self.broken:
            return types.SimpleNamespace(code=4, err="the model has no output")
        flag = args.index("--json")
        report = {"kernels": 3, "measurement_tasks": 1,
                  "alternatives": [plan("offline", 1), plan("by estimates", 0.9, chosen=True)]}
        pathlib.Path(args[flag + 1]).write_text(json.dumps(report))
        return types.SimpleNamespace(code=0, err="")


COMPILER = """#!/bin/sh
echo compiled >> "$(dirname "$0")/calls"
echo '{"kernels": 4}' > "$4"
"""
# The second bundle takes 0.9 of the first one's time if that is the offline one.
CLIENT = """#!/bin/sh
if [ "$1" = bundle ]; then
  case "$3" in
    *offline.fusion) echo '{"launches": 4, "digests": {"report.html": "a", "src/k.cc": "b"}}' ;;
    *) echo '{"launches": 4, "digests": {"report.html": "c", "src/k.cc": "'$(cat "$(dirname "$0")/text")'"}}' ;;
  esac
  exit
fi
case "$2" in
  *offline.fusion) echo '{"speedup": 0.9, "median_ms": 10, "against_median_ms": 9}' ;;
  *) echo '{"speedup": 1.25, "median_ms": 8, "against_median_ms": 10}' ;;
esac
"""


class Preparing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in (("fusion-compile", COMPILER), ("fusionctl", CLIENT)):
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        before = os.environ["FUSION_BIN"]
        os.environ["FUSION_BIN"] = str(self.root)
        self.addCleanup(os.environ.__setitem__, "FUSION_BIN", before)
        self.model = self.root / "net.onnx"
        self.model.write_bytes(b"a model")
        self.options = types.SimpleNamespace(out=self.root / "out", threads=[1, 2], each_threads=False, again=False,
                                             submit=[], names=[], processes=4, json=None)
        self.server = FakeServer()

        (self.root / "text").write_text("other")

    def prepare(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            server_plans.prepare(self.server, self.model, self.options)
        return said.getvalue()

    def compilations(self):
        return len((self.root / "calls").read_text().splitlines())

    def test_goes_on_where_it_ended(self):
        self.server.broken = True
        with self.assertRaisesRegex(server_plans.Failure, "the model has no output"):
            self.prepare()
        self.server.broken = False
        self.assertIn("net server: 3 kernels (offline 4), by estimates, fastest", self.prepare())
        self.assertEqual((self.compilations(), len(self.server.calls)), (1, 2))
        self.assertEqual(self.prepare(), "")
        self.assertEqual((self.compilations(), len(self.server.calls)), (1, 2))

    def test_another_model_or_other_flags_begin_anew(self):
        self.prepare()
        self.model.write_bytes(b"another model")
        self.prepare()
        self.options.submit = ["--tune=off"]
        self.prepare()
        self.assertEqual((self.compilations(), len(self.server.calls)), (3, 3))
        self.assertIn("--tune=off", self.server.calls[-1])

    def test_a_submission_for_each_number_of_threads(self):
        self.options.each_threads = True
        self.prepare()
        self.assertEqual([call[-2:] for call in self.server.calls], [("--threads", 1), ("--threads", 2)])

    def test_times_both_bundles_in_both_orders(self):
        self.prepare()
        self.options.json = self.root / "rows.json"
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(server_plans.time_all(self.options.out, self.options), 0)
        row = json.loads(self.options.json.read_text())["rows"][1]
        self.assertEqual((row["threads"], row["offline_ms"], row["ratios"]), (2, 10, [0.9, 0.8, 0.9, 0.8]))
        self.assertIn("| net | 2 | 3 (4) | 10.00 | 0.850 | 0.800–0.900 | by estimates |", said.getvalue())
        self.assertFalse(row["same"])
        self.assertIn("2 threads: geometric mean 0.850 of 1 models, worst 0.850, 0 above 1.01", said.getvalue())

    def test_bundles_with_the_same_kernels_are_told(self):
        self.prepare()
        (self.root / "text").write_text("b")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            server_plans.time_all(self.options.out, self.options)
        self.assertIn("| by estimates (the same kernels) |", said.getvalue())

    def test_a_model_that_was_not_prepared_is_an_error(self):
        self.prepare()
        self.options.names = ["net", "other"]
        with self.assertRaisesRegex(SystemExit, "not prepared in .*: other"):
            server_plans.time_all(self.options.out, self.options)


if __name__ == "__main__":
    unittest.main()
