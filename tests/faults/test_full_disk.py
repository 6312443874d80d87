"""The server's disk is full (a limit on file sizes stands in for it): it refuses clearly, leaves nothing half-written,
and survives."""
import pathlib
import shutil
import tempfile
import unittest

import harness
import onnx_model


class FullDiskTest(unittest.TestCase):
    def test_upload_and_bundle_on_a_full_disk(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        server = harness.Server(folder, preexec_fn=harness.limit_file_size(2 << 20))
        self.addCleanup(server.stop)
        server.start()
        before = self.files(server)

        # One chunk is larger than any file may be.
        (folder / "large.onnx").write_bytes(onnx_model.mlp(widths=(512, 1400, 64)))
        refused = server.ctl("submit", "large.onnx", "-o", "large.fusion")
        self.assertEqual(refused.code, 8, refused)
        self.assertFalse((folder / "large.fusion").exists())
        self.assertEqual([f for f in self.files(server) - before if "tmp" in f or "part" in f], [])

        (folder / "small.onnx").write_bytes(onnx_model.mlp())
        fine = server.ctl("submit", "small.onnx", "-o", "small.fusion")
        self.assertEqual(fine.code, 0, fine)

    def files(self, server):
        return {str(p.relative_to(server.state)) for p in server.state.rglob("*") if p.is_file()}


if __name__ == "__main__":
    unittest.main()
