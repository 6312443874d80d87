"""Measurements of workers with tokens: who is believed, and what happens to one that lies."""
import json
import pathlib
import re
import unittest

import onnx_model
import tls_server

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models" / "small"


class Sources(tls_server.TlsServerTest):
    server_args = ("--no-local-worker",)

    def attach(self, name, *args):
        """A simulated accelerator whose token has its name."""
        token = self.folder / (name + ".token")
        self.ctl("auth", "token", "create", name, "--role", "measure", "--role", "build", "--to", token)
        worker = self.server.start_worker("--tls-ca", self.authority.file, "--token-file", token, "--name", name,
                                          "--kinds=sim", "--simulated-measurement=5ms", *args, address=self.address)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(lambda: any(w["info"]["name"] == name for w in self.server.workers()),
                               name + " is attached")
        return worker

    def submit(self, model):
        self.ctl("submit", model, "--target", "sim", "--no-measure", "--no-verify", "-o", self.folder / "out.fusion")

    def rows(self):
        return self.ctl("profile", "query", "--limit", "10000", "-o", "json").json()["measurements"]

    def test_rows_of_a_liar_count_for_nothing(self):
        alone = self.attach("first")
        self.submit(MODELS / "tiny_encoder.onnx")
        rows = self.rows()
        self.assertTrue(rows)
        self.assertEqual({(row["source"], row["standing"]) for row in rows}, {("token first", "single source")})
        self.assertIn("single source", self.ctl("profile", "query").out)

        self.attach("second")
        self.attach("liar", "--simulated-pace=0.5")
        before = {row["question_key"] for row in rows}
        self.submit(MODELS / "tiny_resnet.onnx")
        for seed in range(20):  # it has to have been asked three times
            if re.search(r"liar +quarantined", self.ctl("worker", "list").out):
                break
            self.submit(self.write("more%d.onnx" % seed, onnx_model.mlp(widths=(24 + 8 * seed, 40 + 8 * seed, 8))))
        rows = self.rows()
        self.assertNotIn("token liar", {row["source"] for row in rows})
        new = [row for row in rows if row["question_key"] not in before]
        self.assertGreater(len(new), 10)
        self.assertIn("confirmed", {row["standing"] for row in new})
        self.assertLessEqual({row["standing"] for row in new}, {"confirmed", "checked"})
        times = {}
        for row in rows:
            times.setdefault(row["question_key"], set()).add(round(row["median_ns"]))
        self.assertEqual({len(of_one) for of_one in times.values()}, {1}, "simulated devices of a seed take the same time")
        described = self.ctl("worker", "describe", "liar").out
        self.assertRegex(described, r"quarantined +since .* by fusiond: caught 3 times in a row, at last: ")
        self.assertRegex(described, r"source +token liar")
        self.assertRegex(self.ctl("worker", "list").out, r"liar +quarantined")

        # An operator doubts another one, too, and then no more.
        self.assertIn("'token first' is quarantined", self.ctl("worker", "quarantine", "first", "--reason", "hot").out)
        self.assertIn("by local: hot", self.ctl("worker", "describe", "first").out)
        # Its rows behind the last one that another worker confirmed no longer count; there may be none.
        doubted = [row for row in self.rows() if row["source"] == "token first"]
        last = max((row["fence"] for row in doubted if row["standing"] == "confirmed"), default=0)
        for row in doubted:
            self.assertEqual(row["standing"] == "quarantined", row["fence"] > last, row)
        self.assertIn("is in quarantine", self.ctl("worker", "drain", "token first", code=7).err)
        self.assertIn("it was quarantined", self.ctl("worker", "release", "first").out)
        self.assertFalse(any(row["standing"] == "quarantined" for row in self.rows()))
        alone.terminate()

        # An imported row says so, and can be taken out of use by its source.
        exported = self.folder / "rows.jsonl"
        self.ctl("profile", "export", exported)
        for record in (lines := [json.loads(line) for line in exported.read_text().splitlines()]):
            if "measurement" in record:
                record["measurement"]["origin"] = "another server"
                record["measurement"]["time_ms"] = "1"
        exported.write_text("".join(json.dumps(record) + "\n" for record in lines))
        self.ctl("profile", "import", exported)
        imported = {row["source"] for row in self.rows() if row["standing"] == "imported"}
        self.assertLessEqual(imported, {"imported/token first", "imported/token second"})
        self.ctl("worker", "quarantine", "imported/token second")
        self.assertFalse(any(row["standing"] == "imported" and row["source"] == "imported/token second"
                             for row in self.rows()))


if __name__ == "__main__":
    unittest.main()
