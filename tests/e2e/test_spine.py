"""A model goes in, fused kernels come out, run and give the right numbers; the second time costs nothing."""
import json
import pathlib
import unittest

import harness
import onnx_model


class SpineTest(harness.ServerTest):
    def test_submit_run_verify_bench(self):
        model = self.write("mlp.onnx", onnx_model.mlp())
        report = self.submit(model)
        self.assertEqual(report["nodes"], 5)
        self.assertLess(report["kernels"], 5)
        bundle = self.folder / "mlp.fusion"
        self.assertTrue(bundle.exists())

        outputs = self.ctl("run", bundle, "--random", "7", "--output-dir", self.folder / "out", "-o", "json").json()
        self.assertEqual([o["shape"] for o in outputs["outputs"]], [[4, 8]])
        data = (self.folder / "out" / "t_a1.npy").read_bytes()
        self.assertEqual(data[:6], b"\x93NUMPY")
        # The same seed gives the same bytes, and a file with that input gives the same outputs.
        self.ctl("run", bundle, "--random", "7", "--output-dir", self.folder / "again")
        self.assertEqual(data, (self.folder / "again" / "t_a1.npy").read_bytes())

        verified = self.ctl("verify", bundle, "--model", model, "-o", "json").json()
        self.assertTrue(verified["ok"])
        self.assertLessEqual(verified["max_rel_err"], verified["tolerance"])

        timed = self.ctl("bench", bundle, "--threads", "1", "--runs", "20", "--per-kernel", "-o", "json").json()
        self.assertLessEqual(timed["p10_ms"], timed["median_ms"])
        self.assertLessEqual(timed["median_ms"], timed["p90_ms"])
        self.assertEqual(len(timed["per_kernel"]), report["kernels"])

        self.submit(model, "--planner", "none", output=self.folder / "unfused.fusion")
        compared = self.ctl("bench", bundle, "--against", self.folder / "unfused.fusion", "--threads", "1",
                            "--runs", "20", "-o", "json").json()
        self.assertEqual(compared["kernels"], report["kernels"])
        self.assertGreater(compared["against_kernels"], report["kernels"])
        self.assertLessEqual(compared["speedup_p25"], compared["speedup_p75"])
        words = self.ctl("bench", bundle, "--against", bundle, "--runs", "5").out
        self.assertIn("× as fast", words)
        self.ctl("bench", bundle, "--against", bundle, "--per-kernel", code=2)

        inspected = self.ctl("bundle", "inspect", bundle).out
        self.assertIn("arena", inspected)
        self.assertIn("t_x", inspected)

    def test_equal_kernels_of_one_task_are_a_batch(self):
        rows = range(6)
        model = self.write("rows.onnx", onnx_model.model(
            [onnx_model.node("ReduceMax", ["x%d" % i], ["y%d" % i], "max%d" % i, axes=[1], keepdims=0) for i in rows],
            [onnx_model.value("x%d" % i, [1, 1 << 18]) for i in rows],
            [onnx_model.value("y%d" % i, [1]) for i in rows]))
        # The cost model answers for a device whose rates are fixed here. With this machine's measured rates a row might
        # be one task or several, and only kernels of one task become a batch.
        device = json.loads(next(self.server.state.rglob("device-cpu.json")).read_text().partition("\n")[2])
        device.update(parallel_units=4, launch_s=1e-6, barrier_s=1e-3, fma_f32_flops_per_s=1e11, special_cycles_ratio=10)
        for level in device["memory"]:
            level["bandwidth_bytes_per_s"] = 1e11
        bundle = self.folder / "rows.fusion"
        report = self.compile(model, bundle, "--device", self.write("device.json", json.dumps(device).encode()))
        self.assertEqual(report["kernels"], 1)
        self.compile(model, self.folder / "rows.none.fusion", "--planner", "none", "--math", "strict")
        for threads in ("1", "2"):
            verified = self.ctl("verify", bundle, "--reference", self.folder / "rows.none.fusion", "--threads", threads,
                                "-o", "json").json()
            self.assertTrue(verified["ok"], verified)

    def test_values_are_stored_as_halves(self):
        model = self.write("halved.onnx", onnx_model.mlp(seed=5))
        full = self.submit(model, "--tune", "off")
        half = self.submit(model, "--tune", "off", "--precision", "fp16", output=self.folder / "half.fusion")
        self.assertFalse(half["from_store"])
        self.assertLess(half["intermediate_bytes"]["before"], full["intermediate_bytes"]["before"])
        verified = self.ctl("verify", self.folder / "half.fusion", "--model", model, "-o", "json").json()
        self.assertGreater(verified["max_rel_err"], 1e-6)
        self.assertLess(verified["max_rel_err"], 1e-2)
        self.ctl("submit", model, "--precision", "fp8", code=2)

    def test_weights_stay_as_small_as_the_models(self):
        model = pathlib.Path(__file__).parents[1] / "models/small/tiny_resnet.onnx"
        small = self.submit(model, "--tune", "off", "--size", "small", output=self.folder / "small.fusion")
        self.assertNotIn("transformed", small["weight_causes"])
        self.assertGreater(small["size_time_ratio"], 0)
        held = json.loads(self.ctl("bundle", "inspect", self.folder / "small.fusion", "-o", "json").out)["weights"]
        self.assertEqual(held["model_bytes"], small["model_weight_bytes"])
        self.assertEqual(held["model_bytes"] + sum(held["causes"].values()), held["bundle_bytes"])
        self.assertLess(held["bundle_bytes"], 1.05 * held["model_bytes"])
        self.assertIn("of the estimated time", self.ctl("bundle", "inspect", self.folder / "small.fusion").out)
        self.assertTrue(self.ctl("verify", self.folder / "small.fusion", "--model", model, "-o", "json").json()["ok"])
        self.ctl("submit", model, "--size", "tiny", code=2)

    def test_the_second_time_asks_nothing(self):
        first = self.submit(self.write("first.onnx", onnx_model.elementwise_and_softmax(seed=1)))
        # Another name and other weights, but the same fusion blocks.
        second = self.submit(self.write("second.onnx", onnx_model.elementwise_and_softmax(seed=2)))
        self.assertFalse(second["from_store"])
        self.assertEqual(second["measurement_tasks"], 0)
        self.assertEqual(second["kernels"], first["kernels"])
        # An identical submission is answered from the store.
        again = self.submit(self.folder / "first.onnx", output=self.folder / "again.fusion")
        self.assertTrue(again["from_store"])
        bundle = (self.folder / "first.fusion").read_bytes()
        self.assertEqual((self.folder / "again.fusion").read_bytes(), bundle)
        # An existing bundle is not fetched again; a damaged one is.
        before = (self.folder / "again.fusion").stat()
        self.submit(self.folder / "first.onnx", output=self.folder / "again.fusion")
        self.assertEqual((self.folder / "again.fusion").stat().st_ino, before.st_ino)
        (self.folder / "again.fusion").write_bytes(bytes(len(bundle)))
        self.submit(self.folder / "first.onnx", output=self.folder / "again.fusion")
        self.assertEqual((self.folder / "again.fusion").read_bytes(), bundle)

    def test_planner_none_keeps_every_operator(self):
        model = self.write("unfused.onnx", onnx_model.elementwise_and_softmax(seed=3))
        fused = self.submit(model)
        unfused = self.submit(model, "--planner", "none", "--math", "strict", output=self.folder / "none.fusion")
        self.assertLess(fused["kernels"], unfused["kernels"])
        self.ctl("verify", self.folder / "unfused.fusion", "--reference", self.folder / "none.fusion")

    def test_planners_stand_side_by_side(self):
        model = self.write("compared.onnx", onnx_model.elementwise_and_softmax(seed=4))
        rows = {row["planner"]: row for row in self.ctl("plan", model, "--compare", "-o", "json").json()}
        for planner in ("none", "dnnfusion", "xla_like", "tvm_like", "fusion_stitching", "power_fusion"):
            self.assertGreater(rows[planner]["launches"], 0, planner)
            self.assertGreater(rows[planner]["estimate_ms"], 0, planner)
            self.assertGreater(sum(rows[planner]["bytes"].values()), 0, planner)
        self.assertLess(rows["dnnfusion"]["launches"], rows["none"]["launches"])
        self.assertLessEqual(rows["fusion_stitching"]["memory_intensive"], rows["xla_like"]["memory_intensive"])
        table = self.ctl("plan", model, "--compare").out
        self.assertRegex(table, r"PLANNER +LAUNCHES +MEMORY-BOUND +BARRIERS .* ESTIMATED +MEASURED +PLANNED IN\n")
        self.assertRegex(table, r"\nfusion_stitching +%d " % rows["fusion_stitching"]["launches"])

    def test_planners_are_measured_side_by_side(self):
        model = self.write("measured.onnx", onnx_model.elementwise_and_softmax(seed=6))
        rows = self.ctl("plan", model, "--compare", "--measure", "-o", "json", checks=True).json()
        for row in rows:
            self.assertGreater(row["measured_ms"], 0, row)
            self.assertGreater(row["unfused_ratio"], 0, row)
        self.assertIn("--measure is for --compare", self.ctl("plan", model, "--measure", code=2).err)

    def test_symbolic_dimensions_are_bound(self):
        text = onnx_model.model(
            [onnx_model.node("Relu", ["x"], ["y"])], [onnx_model.value("x", ["batch", 3])],
            [onnx_model.value("y", ["batch", 3])])
        model = self.write("symbolic.onnx", text)
        self.submit(model, "--dim", "batch=5")
        outputs = self.ctl("run", self.folder / "symbolic.fusion", "--random", "1", "-o", "json").json()
        self.assertEqual(outputs["outputs"][0]["shape"], [5, 3])
        self.submit(model, "--shape", "x=2x3")
        outputs = self.ctl("run", self.folder / "symbolic.fusion", "--random", "1", "-o", "json").json()
        self.assertEqual(outputs["outputs"][0]["shape"], [2, 3])

    def test_external_data_is_uploaded(self):
        raw = onnx_model.struct.pack("<12f", *onnx_model.floats(12, 5))
        self.write("ext/data/w.bin", raw)
        text = onnx_model.model(
            [onnx_model.node("MatMul", ["x", "w"], ["y"])], [onnx_model.value("x", [2, 4])],
            [onnx_model.value("y", [2, 3])], [onnx_model.tensor("w", [4, 3], external="data/w.bin")])
        self.submit(self.write("ext/m.onnx", text))
        self.ctl("verify", self.folder / "ext/m.fusion", "--model", self.folder / "ext/m.onnx")

    def test_names_are_only_names(self):
        hostile = '*/ system("x"); "\n${HOME} `id` \\ \x01é'
        model = self.write("hostile.onnx", onnx_model.mlp(seed=9, names=hostile))
        self.submit(model)
        self.ctl("verify", self.folder / "hostile.fusion", "--model", model)
        listed = self.ctl("run", self.folder / "hostile.fusion", "--random", "1", "--output-dir",
                          self.folder / "hostile-out", "-o", "json").json()
        self.assertEqual(listed["outputs"][0]["name"], hostile + "_a1")
        self.assertEqual(len(list((self.folder / "hostile-out").iterdir())), 1)

    def test_rewrite_rules(self):
        om = onnx_model
        nodes = [om.node("Mul", ["a", "c"], ["p"]), om.node("Mul", ["a", "b"], ["q"]), om.node("Add", ["p", "q"], ["y"])]
        model = self.write("rules.onnx", om.model(nodes, [om.value(n, [8, 4]) for n in "abc"], [om.value("y", [8, 4])]))
        relaxed = ("--math", "relaxed")
        explained = self.ctl("plan", model, "--explain", *relaxed).out
        self.assertRegex(explained, r"RULE +FLOP SAVED +BYTES SAVED +OPERATORS SAVED +WHERE\n")
        self.assertRegex(explained, r"\nfactor +32 +384 +1 +Add 'y'\n")
        self.assertIn("1 rewrite saved 32 FLOP, 384 bytes, 1 operator\n", explained)
        self.assertRegex(explained, r"\d+ hand-overs? inside kernels at lane scope\n|\nBLOCK +FROM +TO +PLANNED +SCOPE\n")
        self.assertNotIn("factor", self.ctl("plan", model, *relaxed).out)
        # Nothing is known about the operands: b + c may overflow although the products do not.
        self.assertIn("no rewrite rule fired", self.ctl("plan", model, "--explain").out)
        self.assertIn("no rewrite rule fired", self.ctl("plan", model, "--explain", "--math", "strict").out)
        listed = self.ctl("plan", model, "-o", "json", *relaxed).json()["rewrites"]
        self.assertEqual([(r["rule"], r["flops_saved"], r["bytes_saved"]) for r in listed], [("factor", 32, 384)])
        self.assertIn("no rewrite rule fired",
                      self.ctl("plan", model, "--explain", "--disable-rule", "factor", *relaxed).out)
        self.ctl("plan", model, "--math", "loose", code=2)

        # Answers with and without a rule do not mix.
        self.assertEqual(self.submit(model, *relaxed)["nodes_rewritten"], 2)
        self.assertEqual(self.submit(model, output=self.folder / "default.fusion")["nodes_rewritten"], 3)
        kept = self.submit(model, "--disable-rule", "factor", output=self.folder / "kept.fusion")
        self.assertFalse(kept["from_store"])
        self.assertEqual(kept["nodes_rewritten"], 3)
        self.assertTrue(self.submit(model, "--disable-rule", "factor", output=self.folder / "kept.fusion")["from_store"])
        for verb in ("plan", "submit"):
            error = self.ctl(verb, model, "--disable-rule", "factr", code=2).err
            self.assertIn("no rewrite rule is called 'factr'; nearest: factor", error)

    def test_what_is_printed(self):
        model = self.write("printed.onnx", onnx_model.mlp(seed=11))
        result = self.ctl("submit", model, "--progress", "plain")
        for word in ("fusion ", "model", "checked", "uploaded", "job", "planned", "done in"):
            self.assertIn(word, result.err)
        self.assertRegex(result.out, r"^printed\.fusion  \d+\.\d KiB  sha256:\w{4}…\w{2}\n$")
        self.assertEqual(self.ctl("submit", model, "--progress", "none").err, "")

        plan = self.ctl("plan", model)
        self.assertTrue(plan.out)
        jobs = self.ctl("job", "list", "-o", "json").json()["jobs"]
        job = self.ctl("job", "get", jobs[0]["job_id"], "-o", "json").json()
        self.assertEqual(job["state"], "succeeded")
        self.assertIn(jobs[0]["job_id"], self.ctl("job", "watch", jobs[0]["job_id"]).out)
        self.ctl("bundle", "get", jobs[0]["job_id"], "-o", self.folder / "fetched.fusion")
        self.assertIn("local", self.ctl("worker", "list").out)
        self.assertIn("measurements", self.ctl("profile", "stats").out)
        self.ctl("profile", "query", "--limit", "3")
        self.ctl("profile", "export", self.folder / "profile.jsonl")
        device, *records = map(json.loads, (self.folder / "profile.jsonl").read_text().splitlines())
        measured = [record["measurement"] for record in records if "measurement" in record]
        self.assertEqual(int(device["device"]["measurements"]), len(measured))
        for of_kernel in measured:
            self.assertGreater(of_kernel["median_ns"], 0)
        self.assertLessEqual({kind for record in records for kind in record}, {"measurement", "comparison", "plan"})
        self.assertIn("server", self.ctl("doctor").out)
        self.assertIn("fusiond", self.ctl("version").out)


if __name__ == "__main__":
    unittest.main()
