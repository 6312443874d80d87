"""What a server keeps: collection, a check of everything that finds damage, and a backup that a server runs on."""
import hashlib
import unittest

import harness
import onnx_model


class Keeping(harness.ServerTest):
    def blobs(self):
        return {path.name: path for path in (self.server.state / "blobs").glob("[0-9a-f][0-9a-f]/*")}

    def collect(self, *args):
        return self.ctl("admin", "gc", "-o", "json", *args).json()

    def test_old_jobs_go_and_what_is_needed_stays(self):
        old = self.write("old.onnx", onnx_model.mlp(seed=1))
        self.submit(old)
        self.collect("--grace", "0s")  # trials and payloads that are over
        before = self.blobs()
        self.assertGreater(len(before), 0)
        self.assertEqual(int(self.collect()["blobs"]), 0, "nothing is old enough")
        jobs = len(self.ctl("job", "list", "-o", "json").json()["jobs"])
        collected = self.collect("--keep", "0s", "--grace", "0s")
        self.assertEqual(int(collected["jobs"]), jobs)
        self.assertGreaterEqual(int(collected["blobs"]), len(before))
        self.assertEqual(self.blobs(), {})
        self.assertEqual(self.ctl("job", "list", "-o", "json").json().get("jobs", []), [])
        self.submit(old)  # from nothing
        bundle = old.with_suffix(".fusion")
        self.ctl("verify", bundle, "--model", old)

    def test_a_pinned_job_stays_with_what_it_names(self):
        model = self.write("pinned.onnx", onnx_model.mlp(seed=7))
        self.submit(model)
        job = self.ctl("job", "list", "-o", "json").json()["jobs"][0]["job_id"]
        self.assertTrue(self.ctl("job", "pin", job, "-o", "json").json()["pinned"])
        self.collect("--keep", "0s", "--grace", "0s")
        self.assertRegex(self.ctl("job", "get", job).out, r"pinned +yes")
        self.ctl("bundle", "get", job, "-o", self.folder / "pinned2.fusion")
        self.ctl("verify", self.folder / "pinned2.fusion", "--model", model)
        self.ctl("job", "unpin", job)
        self.collect("--keep", "0s", "--grace", "0s")
        self.ctl("job", "get", job, code=2)
        self.ctl("job", "pin", job, code=2)

    def test_damage_is_named_and_what_was_damaged_is_made_again(self):
        model = self.write("damaged.onnx", onnx_model.mlp(seed=2))
        digest = self.submit(model)["bundle"]["sha256"]
        self.assertIn("all sound", self.ctl("admin", "check").out)
        path = self.blobs()[digest]
        good = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(bytes([good[0] ^ 1]) + good[1:])
        # Nobody gets a damaged bundle.
        job = self.ctl("job", "list", "-o", "json").json()["jobs"][0]["job_id"]
        result = self.server.ctl("bundle", "get", job, "-o", self.folder / "copy.fusion")
        self.assertNotEqual(result.code, 0, result)
        self.assertRegex(result.err, "damaged|digest")
        self.assertFalse((self.folder / "copy.fusion").exists())

        found = self.ctl("admin", "check", code=9)
        self.assertRegex(found.out, "blob %s is damaged: .*the bundle of job %s" % (digest, job))
        self.assertIn("--repair", found.err)
        self.assertIn("(set aside)", self.ctl("admin", "check", "--repair").out)
        self.assertEqual((self.server.state / "blobs" / "damaged" / digest).read_bytes()[0], good[0] ^ 1)
        self.assertEqual(self.submit(model)["bundle"]["sha256"], digest)
        self.assertEqual(self.blobs()[digest].read_bytes(), good)
        self.assertIn("all sound", self.ctl("admin", "check").out)

    def test_a_server_runs_on_a_backup(self):
        model = self.write("saved.onnx", onnx_model.mlp(seed=3))
        digest = self.submit(model)["bundle"]["sha256"]
        folder = self.folder / "backup"
        self.assertRegex(self.ctl("admin", "backup", folder).out, r"backup  database and [0-9,]+ files?, ")
        self.submit(self.write("later.onnx", onnx_model.mlp(seed=4)))
        self.assertIn("exists", self.ctl("admin", "backup", folder, code=2).err)
        self.ctl("admin", "backup", "not/absolute", code=2)

        restored = harness.Server(self.folder / "restored", "--no-local-worker")
        restored.folder.mkdir(exist_ok=True)
        folder.rename(restored.state)
        self.addCleanup(restored.stop)
        restored.start()
        names = {job["model_name"] for job in restored.ctl("job", "list", "-o", "json").json()["jobs"]}
        self.assertIn("saved.onnx", names)
        self.assertNotIn("later.onnx", names)
        self.assertIn("all sound", restored.ctl("admin", "check").out)
        copy = self.folder / "restored.fusion"
        done = restored.ctl("submit", model, "-o", copy)
        self.assertEqual(done.code, 0, done)
        self.assertIn("(from the store)", done.err)
        self.assertEqual(hashlib.sha256(copy.read_bytes()).hexdigest(), digest)

    def test_measurements_go_only_when_they_are_asked_to(self):
        self.submit(self.write("measured.onnx", onnx_model.elementwise_and_softmax(seed=5)))
        stats = self.ctl("profile", "stats", "-o", "json").json()
        self.assertGreater(int(stats["measurements"]), 0)
        self.assertIn("removed 0 measurements", self.ctl("profile", "prune", "--older-than", "1d").out)
        for bad in ("soon", "-1d", "0s"):
            self.ctl("profile", "prune", "--older-than", bad, code=2)


if __name__ == "__main__":
    unittest.main()
