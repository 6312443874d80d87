"""Several specialisations of a model in one bundle: the shapes of the inputs pick one."""
import struct
import unittest

import harness
import onnx_model as om


def block(seed=0, width=24):
    """A block of attention without heads over x[seq, width], and a sum over all of it; weights in two places."""
    weights = ["wq", "wk", "wv"]
    nodes = [om.node("MatMul", ["x", w], [w + "x"], w + "_mm") for w in weights]
    nodes += [
        om.node("Transpose", ["wkx"], ["kt"], "transpose", perm=[1, 0]),
        om.node("MatMul", ["wqx", "kt"], ["scores"], "scores_mm"),
        om.node("Softmax", ["scores"], ["p"], "softmax", axis=-1),
        om.node("MatMul", ["p", "wvx"], ["mixed"], "mixed_mm"),
        om.node("Add", ["mixed", "x"], ["y"], "residual"),
        om.node("ReduceSum", ["y"], ["total"], "total", keepdims=0),
    ]
    initializers = [om.tensor(w, [width, width], om.floats(width * width, seed + i)) for i, w in enumerate(weights)]
    return om.model(nodes, [om.value("x", ["seq", width])], [om.value("y", ["seq", width]), om.value("total", [])],
                    initializers)


def npy(shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % "".join("%d, " % d for d in shape)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(
        "<%df" % len(values), *values)


class SpecialisationsTest(harness.ServerTest):
    def test_shapes_pick_one(self):
        model = self.write("block.onnx", block())
        report = self.submit(model, "--tune", "off", "--dim", "seq=8,40,16")
        self.assertEqual([s["name"] for s in report["specialisations"]],
                         ["seq=8", "seq=40", "seq=16", "seq≤8", "seq≤40", "seq≤16"])
        self.assertEqual(report["kernels"], sum(s["kernels"] for s in report["specialisations"]))
        bundle = self.folder / "block.fusion"
        for seq in (8, 40, 16):
            self.write("x.npy", npy([seq, 24], om.floats(seq * 24, seq, scale=1)))
            outputs = self.ctl("run", bundle, "--input", self.folder / "x.npy", "-o", "json").json()["outputs"]
            self.assertEqual(outputs[0]["shape"], [seq, 24])
            self.ctl("verify", bundle, "--model", model, "--dim", "seq=%d" % seq)
            timed = self.ctl("bench", bundle, "--runs", "3", "--dim", "seq=%d" % seq, "-o", "json").json()
            self.assertEqual(timed["dims"], {"seq": seq})
        # The first specialisation runs if no shape is named.
        outputs = self.ctl("run", bundle, "--random", "1", "-o", "json").json()["outputs"]
        self.assertEqual(outputs[0]["shape"], [8, 24])
        inspected = self.ctl("bundle", "inspect", bundle)
        for words in ("seq=8", "seq=40", "seq=16", "x[40, 24]"):
            self.assertIn(words, inspected.out)
        self.ctl("run", bundle, "--random", "1", "--dim", "nope=3", code=2)
        plan = self.ctl("plan", model, "--dim", "seq=8,40").out
        self.assertIn("with seq=8:", plan)
        self.assertIn("with seq=40:", plan)

    def test_less_is_padded(self):
        model = self.write("padded.onnx", block(4))
        self.submit(model, "--tune", "off", "--dim", "seq=16,48")
        bundle = self.folder / "padded.fusion"
        for seq in (1, 7, 15, 17, 33, 47):
            outputs = self.ctl("run", bundle, "--random", "1", "--dim", "seq=%d" % seq, "-o", "json").json()["outputs"]
            self.assertEqual(outputs[0]["shape"], [seq, 24])
            self.ctl("verify", bundle, "--model", model, "--dim", "seq=%d" % seq)
        timed = self.ctl("bench", bundle, "--runs", "3", "--dim", "seq=7").out
        self.assertIn("seq≤16", timed)
        error = self.ctl("run", bundle, "--random", "1", "--dim", "seq=49", code=3).err
        self.assertIn("input 'x' is [49, 24]; this bundle was built for seq=16, 48", error)

    def test_what_cannot_be_padded_runs_exact_shapes(self):
        # Only linear and nearest interpolation accept sizes that are known at run time.
        text = om.model([om.node("LpNormalization", ["x"], ["y"], "the_node", axis=0, p=2),
                         om.node("Resize", ["x4", "", "scales"], ["z"], "resize", mode="cubic")],
                        [om.value("x", ["seq", 4]), om.value("x4", [1, 1, "seq", 4])],
                        [om.value("y", ["seq", 4]), om.value("z", [1, 1, "twice", 8])],
                        [om.tensor("scales", [4], [1, 1, 2, 2])])
        report = self.submit(self.write("exact.onnx", text), "--tune", "off", "--dim", "seq=8,16")
        self.assertEqual([s["name"] for s in report["specialisations"]], ["seq=8", "seq=16"])
        for one in report["specialisations"]:
            self.assertIn("resize", one["exact_only"])
        error = self.ctl("run", self.folder / "exact.fusion", "--random", "1", "--dim", "seq=7", code=3).err
        self.assertIn("this bundle was built for seq=8, 16", error)

    def test_weights_are_held_once(self):
        model = self.write("shared.onnx", block(2, width=64))
        # One plan, whatever measurements say: if products share kernels at one extent and not at the other, they pack
        # their weights differently.
        options = ["--tune", "off", "--planner", "none"]
        one = self.submit(model, *options, "--dim", "seq=32", output=self.folder / "one.fusion")
        both = self.submit(model, *options, "--dim", "seq=32,64", output=self.folder / "both.fusion")
        # A weight has 16 KiB; the tables with which programs mask have less than 1 KiB.
        self.assertLess(both["weight_bytes"], one["weight_bytes"] + 4096)

    def test_what_cannot_be_built(self):
        model = self.write("bad.onnx", block(3))
        for dims in (["seq=0,8"], ["seq=8,8"], ["seq=8,"], ["seq=8,x"], ["seq=8", "seq=16"], ["seq=8,16", "seq=4"]):
            self.ctl("submit", model, *[a for d in dims for a in ("--dim", d)], code=2)
        many = ",".join(str(n) for n in range(1, 18))
        self.assertIn("more than 16", self.ctl("submit", model, "--dim", "seq=" + many, code=3).err)
        error = self.ctl("submit", model, "--dim", "seq=8,16", "--shape", "x=4x24", code=3).err
        self.assertIn("--shape", error)
        self.assertIn("nope", self.ctl("submit", model, "--dim", "nope=8,16", code=3).err)


if __name__ == "__main__":
    unittest.main()
