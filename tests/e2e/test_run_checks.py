"""Conditions that only a run can decide: extents that depend on data are combined; a mismatch is an error of the run
with a clear message, and only in the branch that is taken."""
import pathlib
import struct
import unittest

import harness

MODEL = pathlib.Path(__file__).resolve().parent.parent / "conformance" / "dynamic" / "extents_that_are_equal" / "model.onnx"
X = [float(i) for i in range(24)]


def npy(dtype, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, tuple(shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def rows(mask):
    return [X[4 * i:4 * i + 4] for i, kept in enumerate(mask) if kept]


class RunChecks(harness.ServerTest):
    server_args = ("--no-local-worker",)

    def run_bundle(self, bundle, a, b, take, code=0):
        given = {"x": npy("<f4", (6, 4), struct.pack("<24f", *X)), "a": npy("|b1", (6,), bytes(a)),
                 "b": npy("|b1", (6,), bytes(b)), "take": npy("|b1", (), bytes([take]))}
        arguments = []
        for name, data in given.items():
            arguments += ["--input", "%s=%s" % (name, self.write(name + ".npy", data))]
        out = self.folder / "out"
        result = self.ctl("run", bundle, *arguments, "--output-dir", out, code=code)
        if code != 0:
            return result.err
        data = next(path for path in sorted(out.iterdir()) if "v" in path.name).read_bytes()
        values = data[data.index(b"\n") + 1:]
        return list(struct.unpack("<%df" % (len(values) // 4), values))

    def test_all_grid_barriers(self):
        for options in ((), ("--planner", "none", "--math", "strict")):
            bundle = self.folder / ("meet%d.fusion" % len(options))
            self.compile(MODEL, bundle, *options)
            three, two, one, none = [1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0], [0] * 6

            def added(a, b):
                left, right = rows(a), rows(b)
                count = len(right) if len(left) == 1 else len(left)
                left, right = (side * count if len(side) == 1 else side for side in (left, right))
                return [p + q for l, r in zip(left, right) for p, q in zip(l, r)]

            for a, b in ((three, [0, 1, 1, 0, 0, 1]), (three, one), (one, three), (one, one), (none, none), (none, one)):
                self.assertEqual(self.run_bundle(bundle, a, b, True), added(a, b), (a, b))
            for a, b in ((three, two), (two, three), (none, two)):
                self.assertRegex(self.run_bundle(bundle, a, b, True, code=3),
                                 r"Add '.*Add_1': its operands have the extents %d and %d in dimension 0" % (sum(a), sum(b)))
                # The other branch is taken: it combines no extents.
                self.assertEqual(self.run_bundle(bundle, a, b, False), [2 * v for row in rows(a) for v in row])
            # The session still works.
            self.assertEqual(self.run_bundle(bundle, three, one, True), added(three, one))

    def test_verify_says_so(self):
        bundle = self.folder / "verified.fusion"
        self.compile(MODEL, bundle)
        inputs = {"x": npy("<f4", (6, 4), struct.pack("<24f", *X)), "a": npy("|b1", (6,), bytes([1, 1, 1, 0, 0, 0])),
                  "b": npy("|b1", (6,), bytes([1, 1, 0, 0, 0, 0])), "take": npy("|b1", (), b"\1")}
        arguments = []
        for name, data in inputs.items():
            arguments += ["--input", "%s=%s" % (name, self.write("verified_%s.npy" % name, data))]
        result = self.server.ctl("verify", bundle, "--reference", bundle, *arguments)
        self.assertEqual(result.code, 3, result)
        self.assertIn("have the extents 3 and 2", result.err)


if __name__ == "__main__":
    unittest.main()
