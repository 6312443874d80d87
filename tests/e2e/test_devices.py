"""Devices that fusiond finds on its own machine: every kind gets a worker, and a driver that hangs or crashes affects
only its own kind."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
import onnx_model

KINDS = ("--local-devices", "cpu,opencl,cuda")


class Devices(unittest.TestCase):
    def start(self, *args, wait_for_worker=True, **options):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.server = harness.Server(folder, *args, **options)
        self.addCleanup(self.server.stop)
        (folder / "mlp.onnx").write_bytes(onnx_model.mlp())
        return self.server.start(wait_for_worker)

    def ctl(self, *args, code=0):
        result = self.server.ctl(*args, timeout=600)
        self.assertEqual(result.code, code, "fusionctl %s\n%s\n%s" % (" ".join(map(str, args)), result,
                                                                      self.server.log_text()))
        return result

    def checks(self):
        """What `doctor` says, by the name of the check."""
        return {check["check"]: check for check in json.loads(self.server.ctl("doctor", "-o", "json").out)}

    def await_words(self, kind, words):
        self.server.wait_until(lambda: words in self.checks()["device " + kind]["found"], words)
        return self.checks()["device " + kind]

    def driver(self, text):
        """A folder with a libOpenCL.so.1 that does this when it is opened."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-e2e-driver-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "driver.c").write_text(
            "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void opened(void) { %s }\n" % text)
        compiler = shutil.which("clang") or shutil.which("clang-14") or shutil.which("cc")
        subprocess.run([compiler, "-shared", "-fPIC", folder / "driver.c", "-o", folder / "libOpenCL.so.1"],
                       check=True)
        return {"LD_LIBRARY_PATH": str(folder)}

    def test_opencl_without_a_second_process(self):
        found = subprocess.run([harness.BIN / "fusion-worker", "--describe", "--kinds=opencl"], capture_output=True,
                               text=True)
        if found.returncode == 3:
            self.skipTest(found.stderr)
        self.assertEqual(found.returncode, 0, found.stderr)
        name = json.loads(found.stdout)["name"]

        # No worker has attached yet: the submission waits for the device that fusiond is looking for.
        self.start(*KINDS, wait_for_worker=False)
        done = self.ctl("submit", "mlp.onnx", "-o", "opencl.fusion", "--target", "opencl", "--tune", "off")
        self.assertNotIn("no worker", done.err)
        self.ctl("submit", "mlp.onnx", "-o", "cpu.fusion", "--planner", "none", "--math", "strict", "--tune", "off")
        self.assertIn("verified", self.ctl("verify", "opencl.fusion", "--reference", "cpu.fusion").out)
        listed = self.ctl("worker", "list").out
        self.assertRegex(listed, r"(?m)^local +\w+ +cpu ")
        self.assertRegex(listed, r"(?m)^local-opencl +\w+ +opencl ")

        self.await_words("cuda", "")
        self.server.wait_until(lambda: "being looked for" not in self.checks()["device cuda"]["found"], "the search ends")
        checks = self.checks()
        self.assertTrue(checks["device cpu"]["ok"])
        self.assertEqual(checks["device opencl"]["found"], "%s (local-opencl)" % name)
        if not checks["device cuda"]["ok"]:
            self.assertIn("CUDA", checks["device cuda"]["found"])
            self.assertFalse(checks["device cuda"]["needed"])
        self.assertEqual(self.ctl("doctor").code, 0)

    def test_a_driver_that_hangs_delays_nobody(self):
        variables = self.driver("for (;;) pause();")
        self.start(*KINDS, "--device-limit", "100000", variables=variables)
        self.ctl("submit", "mlp.onnx", "--tune", "off")
        self.assertIn("being looked for", self.checks()["device opencl"]["found"])
        self.server.stop()
        self.assertEqual(self.server.process.returncode, 0, "asked to stop while the driver hangs")

    def test_a_driver_that_hangs_is_named(self):
        self.start(*KINDS, "--device-limit", "1", variables=self.driver("for (;;) pause();"))
        check = self.await_words("opencl", "did not finish within")
        self.assertIn("Its driver is at fault", check["found"])
        self.assertRegex(self.ctl("submit", "mlp.onnx", "--target", "opencl", code=7).err, "no worker for target 'opencl'")

    def test_a_driver_that_crashes_is_named(self):
        self.start(*KINDS, variables=self.driver("abort();"))
        self.await_words("opencl", "was ended by signal 6")
        self.ctl("submit", "mlp.onnx", "--tune", "off")

    def test_a_driver_that_is_not_there(self):
        # A loader without functions simulates a machine without a loader.
        self.start(*KINDS, variables=self.driver(""))
        self.assertIn("OpenCL 1.2 is needed", self.await_words("opencl", "libOpenCL.so.1 has no ")["found"])


if __name__ == "__main__":
    unittest.main()
