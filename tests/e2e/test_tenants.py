"""Tenants: models, bundles and jobs of one are nothing to another."""
import json
import subprocess
import unittest

import harness
import onnx_model
import tls_server


class Tenants(tls_server.TlsServerTest):
    server_args = ("--no-local-worker",)

    def as_tenant(self, token, *args, code=0):
        command = [harness.BIN / "fusionctl", "--server", self.address, "--tls-ca", self.authority.file, "--token-file",
                   token, *args]
        result = harness.Result(subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=self.folder,
                                               timeout=harness.HANG, env=self.server.environment()))
        self.assertEqual(result.code, code, result)
        return result

    def submit_as(self, token, name):
        done = self.as_tenant(token, "submit", self.folder / "model.onnx", "--target", "sim", "--tune", "off",
                              "--no-measure", "--no-verify", "-o", self.folder / (name + ".fusion"), "--json",
                              self.folder / (name + ".json"))
        return done.err, json.loads((self.folder / (name + ".json")).read_text())

    def test_one_tenant_does_not_learn_what_another_has(self):
        worker = self.server.start_worker("--kinds=sim", "--simulated-measurement=1ms")
        self.addCleanup(worker.wait)
        self.addCleanup(worker.terminate)
        self.server.wait_until(self.server.workers, "the worker is attached")
        self.write("model.onnx", onnx_model.mlp(seed=71))
        for name, tenant in (("ada", "acme"), ("bob", "acme"), ("eve", "other")):
            self.ctl("auth", "token", "create", name, "--role", "client", "--tenant", tenant, "--to", self.folder / name)
        self.assertRegex(self.ctl("auth", "token", "list").out, r"ada .* acme ")
        self.assertIn("role client alone", self.ctl("auth", "token", "create", "x", "--role", "admin", "--tenant", "acme",
                                                    code=3).err)

        said, first = self.submit_as(self.folder / "ada", "first")
        self.assertIn("2.7 KiB new, 0 B already there", said)
        self.assertFalse(first["from_store"])
        said, shared = self.submit_as(self.folder / "bob", "shared")
        self.assertIn("0 B new, 2.7 KiB already there", said)
        self.assertTrue(shared["from_store"], "tenants share within")
        said, own = self.submit_as(self.folder / "eve", "own")
        self.assertIn("2.7 KiB new, 0 B already there", said)
        self.assertFalse(own["from_store"])
        self.assertNotEqual(own["key"], first["key"])
        self.as_tenant(self.folder / "eve", "job", "get", first["job"], code=2)
        self.assertEqual(len(self.as_tenant(self.folder / "eve", "job", "list", "-o", "json").json()["jobs"]), 1)
        self.assertEqual(len(self.ctl("job", "list", "-o", "json").json()["jobs"]), 3, "the operator sees all")


if __name__ == "__main__":
    unittest.main()
