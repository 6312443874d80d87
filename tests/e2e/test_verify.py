"""fusionctl verify with outputs from elsewhere, fusion-compile for its own machine, and the help texts; without a
server."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import harness
import onnx_model as om

TYPES = {"float32": ("f", "<f4"), "int64": ("q", "<i8")}


def write_npy(path, shape, values, dtype="float32"):
    code, name = TYPES[dtype]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (name, "".join("%d, " % n for n in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack("<%d%s" % (len(values), code), *values))
    return path


class VerifyTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def call(self, program, *args, code=0):
        done = harness.Result(subprocess.run([harness.BIN / program, *map(str, args)], capture_output=True, text=True,
                                             timeout=harness.HANG, cwd=self.folder))
        self.assertEqual(done.code, code, "%s %s\n%s" % (program, " ".join(map(str, args)), done))
        return done

    def compile(self, name, text):
        model, bundle = self.folder / (name + ".onnx"), self.folder / (name + ".fusion")
        model.write_bytes(text)
        self.call("fusion-compile", model, bundle)
        return bundle

    def unary(self, op, shape):
        return self.compile(op, om.model([om.node(op, ["x"], ["y"])], [om.value("x", shape)], [om.value("y", shape)]))

    def verify(self, bundle, x, y, *args, code=0):
        return self.call("fusionctl", "verify", bundle, "--input", "x=%s" % x, "--expect", "y=%s" % y, *args, code=code)

    def test_outputs_of_another_runtime(self):
        bundle = self.unary("Relu", [2, 32])
        values = [0.01 * (i - 20) for i in range(64)]
        right = [max(0, value) for value in values]
        x = write_npy(self.folder / "x.npy", (2, 32), values)
        self.assertIn("verified", self.verify(bundle, x, write_npy(self.folder / "y.npy", (2, 32), right)).out)
        right[40] += 0.01
        y = write_npy(self.folder / "wrong.npy", (2, 32), right)
        self.assertIn("WRONG", self.verify(bundle, x, y, code=9).out)
        output, = json.loads(self.verify(bundle, x, y, "-o", "json", code=9).out)["outputs"]
        self.assertEqual((output["verdict"], output["worst"]["index"]), ("wrong", [1, 8]))
        self.assertGreater(output["max_ulps"], 1000)
        y = write_npy(self.folder / "short.npy", (2, 16), right[:32])
        self.assertIn("its shape is [2, 32]", self.verify(bundle, x, y, code=9).out)
        y = write_npy(self.folder / "integers.npy", (2, 32), [0] * 64, "int64")
        self.assertIn("'y' is f32, the reference's i64", self.verify(bundle, x, y, code=3).err)

    def test_a_mask_hides_nothing(self):
        bundle = self.unary("Identity", [1, 32])
        values = [-3.4e38] * 31 + [0.5]
        x = write_npy(self.folder / "x.npy", (1, 32), values)
        self.verify(bundle, x, x)
        y = write_npy(self.folder / "y.npy", (1, 32), values[:31] + [0.51])
        self.assertIn("[0, 31]", self.verify(bundle, x, y, code=9).out)

    def test_nothing_to_compare_is_named(self):
        bundle = self.unary("Log", [8])
        x = write_npy(self.folder / "x.npy", (8,), [-1] * 8)
        y = write_npy(self.folder / "y.npy", (8,), [float("nan")] * 8)
        self.assertIn("'y' is not compared: it is NaN throughout", self.verify(bundle, x, y, code=9).out)
        self.verify(bundle, x, y, "--allow-not-compared")
        # A wrong output is not excused.
        y = write_npy(self.folder / "ones.npy", (8,), [1] * 8)
        self.verify(bundle, x, y, "--allow-not-compared", code=9)

    def test_an_empty_output_is_named(self):
        bundle = self.compile("places", om.model([om.node("NonZero", ["x"], ["y"])], [om.value("x", [4])],
                                                 [om.value("y", [1, "n"], 7)]))
        x = write_npy(self.folder / "x.npy", (4,), [0] * 4)
        y = write_npy(self.folder / "y.npy", (1, 0), [], "int64")
        self.assertIn("'y' is not compared: it is empty", self.verify(bundle, x, y, code=9).out)
        self.verify(bundle, x, y, "--allow-not-compared")

    def test_an_output_without_expectation_is_named(self):
        bundle = self.compile("two", om.model([om.node("Relu", ["x"], ["y"]), om.node("Neg", ["x"], ["z"])],
                                              [om.value("x", [4])], [om.value("y", [4]), om.value("z", [4])]))
        x = write_npy(self.folder / "x.npy", (4,), [1, 2, 3, 4])
        self.assertIn("'z' is not compared: no --expect names it", self.verify(bundle, x, x, code=9).out)
        self.verify(bundle, x, x, "--allow-not-compared")
        self.verify(bundle, x, x, "--expect", "z=%s" % write_npy(self.folder / "z.npy", (4,), [-1, -2, -3, -4]))

    def test_one_reference_and_names_that_exist(self):
        bundle = self.unary("Relu", [4])
        x = write_npy(self.folder / "x.npy", (4,), [1, 2, 3, 4])
        self.assertIn("--expect", self.call("fusionctl", "verify", bundle, code=2).err)
        self.verify(bundle, x, x, "--reference", bundle, code=2)
        refused = self.call("fusionctl", "verify", bundle, "--expect", "nope=%s" % x, code=2)
        self.assertIn("'y' f32[4]", refused.err)

    def test_help_offers_what_does_something_and_names_planners(self):
        plan, submit = (self.call("fusionctl", verb, "--help").out for verb in ("plan", "submit"))
        for option in ("--tune", "--queue-timeout"):
            self.assertNotIn(option, plan)
            self.assertIn(option, submit)
        planners = re.search(r"which planner: ([^\n]*)", self.call("fusion-compile", "--help").out).group(1).split(", ")
        self.assertIn("dnnfusion", planners)
        for planner in planners:
            self.assertRegex(plan, r"\b%s\b" % re.escape(planner))


if __name__ == "__main__":
    unittest.main()
