"""The server dies when it has stored a submission and has not answered yet. The client asks again, and that is the same
submission."""
import pathlib
import shutil
import tempfile
import unittest

import fault_shim
import harness
import history_check
import onnx_model


class LostAnswers(unittest.TestCase):
    def test_a_submission_whose_answer_is_lost_is_made_once(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shim = fault_shim.Shim(folder, folder / "state")
        self.addCleanup(shim.close)
        server = harness.Server(folder, "--no-local-worker", variables=shim.variables())
        self.addCleanup(server.stop)
        server.start()
        (folder / "m.onnx").write_bytes(onnx_model.mlp(seed=70))

        def submissions():
            with history_check.database(server.state) as db:
                return sum(db.execute("SELECT COUNT(*) FROM " + table).fetchone()[0] for table in ("jobs", "joined_submissions"))

        # Nobody is there who could do it. From now on the server has the model.
        submit = ("submit", "m.onnx", "--tune", "off", "--detach")
        self.assertEqual(server.ctl(*submit).code, 0)
        died = 0
        for planner in ("none", "souffle", "auto"):  # jobs of their own
            before = submissions()
            shim.set("die_after_sync", 1)
            client = server.start_ctl(*submit, "--planner", planner)
            server.process.wait(harness.HANG)
            shim.set("die_after_sync", 0)
            self.assertIsNone(client.poll(), "it has no answer yet")
            died += submissions() == before + 1  # else another commit was the first
            server.start(wait_for_worker=False)
            out, err = client.communicate(timeout=harness.HANG)
            self.assertEqual(client.returncode, 0, err)
            self.assertEqual(submissions(), before + 1)
            self.assertEqual(server.ctl("job", "get", out.split()[-1]).code, 0)
        self.assertGreater(died, 0, "no answer of a stored submission was lost")


if __name__ == "__main__":
    unittest.main()
