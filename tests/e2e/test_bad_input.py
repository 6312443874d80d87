"""Bad input of every kind gets its message and exit code, and the server survives."""
import subprocess
import unittest

import harness
import onnx_model as om


class BadInputTest(harness.ServerTest):
    def tearDown(self):
        self.assertIsNone(self.server.process.poll(), self.server.log_text())
        self.ctl("job", "list")

    def refused(self, name, text, *words, code=3, args=()):
        model = self.write(name + ".onnx", text)
        result = self.ctl("submit", model, "-o", self.folder / (name + ".fusion"), *args, code=code)
        for word in words:
            self.assertIn(word, result.err)
        self.assertFalse((self.folder / (name + ".fusion")).exists())
        self.assertEqual([p for p in self.folder.iterdir() if ".tmp" in p.name], [])
        return result

    def one_node(self, op, x=(2, 3), y=(2, 3), **attributes):
        return om.model([om.node(op, ["x"], ["y"], "the_node", **attributes)], [om.value("x", x)], [om.value("y", y)])

    def test_not_a_protobuf(self):
        self.refused("words", b"this is no model, and was never meant to be one", "not an ONNX model")
        self.refused("nothing", b"", "empty")

    def test_truncated(self):
        self.refused("truncated", om.mlp()[:-40], "cut off")

    def test_unknown_operators_are_all_listed(self):
        text = om.model([om.node("Frobnicate", ["x"], ["a"], "first"), om.node("Defenestrate", ["a"], ["y"], "second")],
                        [om.value("x", [2])], [om.value("y", [2])])
        self.refused("unknown", text, "Frobnicate", "Defenestrate")

    def test_cycle(self):
        text = om.model([om.node("Add", ["x", "b"], ["a"], "first"), om.node("Relu", ["a"], ["b"], "second")],
                        [om.value("x", [2])], [om.value("b", [2])])
        self.refused("cycle", text, "cycle")

    def test_shape_mismatch(self):
        text = om.model([om.node("MatMul", ["x", "w"], ["y"], "the_node")], [om.value("x", [2, 5])],
                        [om.value("y", [2, 3])], [om.tensor("w", [4, 3], om.floats(12, 1))])
        self.refused("mismatch", text, "the_node", "[2, 5]", "[4, 3]")

    def test_short_initializer(self):
        text = om.model([om.node("Add", ["x", "w"], ["y"], "the_node")], [om.value("x", [100])],
                        [om.value("y", [100])], [om.tensor("w", [100], raw=b"\0" * 40)])
        self.refused("short", text, '"w"', "400 bytes", "40")

    def test_external_data_outside_the_folder(self):
        self.write("secret.bin", b"\0" * 48)
        for location in ("../secret.bin", "/etc/passwd"):
            text = om.model([om.node("MatMul", ["x", "w"], ["y"])], [om.value("x", [2, 4])], [om.value("y", [2, 3])],
                            [om.tensor("w", [4, 3], external=location)])
            self.refused("outside/m", text, location, "outside the model's folder")

    def test_missing_external_data(self):
        text = om.model([om.node("MatMul", ["x", "w"], ["y"])], [om.value("x", [2, 4])], [om.value("y", [2, 3])],
                        [om.tensor("w", [4, 3], external="gone.bin")])
        self.refused("gone", text, "gone.bin", "missing")

    def test_huge_expand(self):
        text = om.model([om.node("Expand", ["x", "shape"], ["y"], "the_node")], [om.value("x", [1])],
                        [om.value("y", [1 << 40])], [om.tensor("shape", [1], [1 << 40], om.INT64)])
        self.refused("huge", text, "the_node")

    def test_unbound_dimension(self):
        text = om.model([om.node("Relu", ["x"], ["y"])], [om.value("x", ["batch", 3])], [om.value("y", ["batch", 3])])
        self.refused("unbound", text, "batch", "--dim")

    def test_unknown_target_names_those_attached(self):
        self.refused("target", self.one_node("Relu"), "nonesuch", "cpu", code=7,
                     args=("--target", "nonesuch", "--queue-timeout", "1"))

    def test_usage(self):
        model = self.write("usage.onnx", self.one_node("Relu"))
        self.ctl("submit", code=2)
        self.ctl("frobnicate", code=2)
        self.ctl("submit", model, "--planner", "nonesuch", code=2)
        self.ctl("submit", model, "--dim", "batch", code=2)
        self.ctl("submit", model, "--shape", "x=2xy", code=2)
        self.ctl("submit", self.folder / "no-such.onnx", code=2)
        self.ctl("job", "get", "j-none", code=2)

    def test_damaged_and_foreign_bundles(self):
        model = self.write("whole.onnx", om.mlp())
        self.submit(model)
        bundle = (self.folder / "whole.fusion").read_bytes()
        for name, data in (("cut", bundle[:len(bundle) // 2]), ("text", b"no bundle"), ("empty", b""),
                           ("zip", b"PK\x05\x06" + b"\0" * 18),
                           ("flipped", bundle[:len(bundle) // 3] + bytes([bundle[len(bundle) // 3] ^ 0x40]) +
                            bundle[len(bundle) // 3 + 1:])):
            path = self.write(name + ".fusion", data)
            for verb in (("run", path, "--random", "1"), ("bench", path, "--runs", "1"), ("bundle", "inspect", path)):
                self.assertTrue(self.ctl(*verb, code=3).err.startswith("fusionctl: "))
        self.ctl("run", self.folder / "no-such.fusion", "--random", "1", code=2)

    def test_wrong_inputs_of_run(self):
        model = self.write("inputs.onnx", om.mlp())
        self.submit(model)
        bundle = self.folder / "inputs.fusion"
        self.assertIn("t_x", self.ctl("run", bundle, code=2).err)
        self.assertIn("t_x", self.ctl("run", bundle, "--input", "nope=a.npy", code=2).err)
        self.write("bad.npy", b"\x93NUMPY nonsense")
        self.ctl("run", bundle, "--input", "t_x=%s" % (self.folder / "bad.npy"), code=3)

    def test_verification_fails_on_wrong_numbers(self):
        self.submit(self.write("right.onnx", om.mlp(seed=1)))
        self.submit(self.write("wrong.onnx", om.mlp(seed=2)))
        result = self.ctl("verify", self.folder / "right.fusion", "--reference", self.folder / "wrong.fusion", "-o",
                          "json", code=9)
        self.assertFalse(result.json()["ok"])

    def test_full_disk_leaves_nothing(self):
        model = self.write("full.onnx", om.mlp(widths=(64, 256, 64)))
        target = self.folder / "full-disk"
        target.mkdir()
        result = self.ctl("submit", model, "-o", target / "m.fusion", code=1,
                          preexec_fn=harness.limit_file_size(64 << 10))
        self.assertIn("m.fusion", result.err)
        self.assertEqual(list(target.iterdir()), [])


class UnreachableTest(unittest.TestCase):
    def test_unreachable_server(self):
        for verb in (("job", "list"), ("worker", "list"), ("profile", "stats"), ("doctor",)):
            done = subprocess.run([harness.BIN / "fusionctl", "--server", "unix:/nonexistent/s.sock", *verb],
                                  capture_output=True, text=True, timeout=harness.HANG)
            self.assertEqual(done.returncode, 5, done)
            self.assertIn("no server at unix:/nonexistent/s.sock (No such file or directory)", done.stdout + done.stderr)

    def test_what_needs_no_server_is_said_first(self):
        cases = {
            ("frob", "x"): "no command 'frob'",
            ("job", "frob"): "no command 'job frob'",
            ("submit", "nowhere.onnx"): "nowhere.onnx",
            ("submit", __file__, "-o", "nowhere/m.fusion"): "the folder does not exist",
            ("submit", __file__, "-o", "/tmp"): "is a folder",
        }
        for verb, words in cases.items():
            done = subprocess.run([harness.BIN / "fusionctl", "--server", "unix:/nonexistent/s.sock", *verb],
                                  capture_output=True, text=True, timeout=harness.HANG)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
