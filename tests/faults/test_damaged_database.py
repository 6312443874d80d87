"""Pages of the database are overwritten while the server is away, as by a bad disk: it says which table is damaged and
what to do, and takes no new jobs."""
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import harness
import onnx_model

PAGE = 4096
CHECKED_AT_THE_START = 64 << 20  # bytes: a larger database is checked behind the start


def is_event(text):
    return text[4:] == b"r" * (PAGE - 4)


class DamagedDatabase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fusion-faults-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.server = harness.Server(self.folder, "--no-local-worker")
        self.addCleanup(self.server.stop)
        (self.folder / "model.onnx").write_bytes(onnx_model.mlp())

    def start_and_stop(self, more_bytes):
        """Leaves a database with a job, and that many bytes of events of the job."""
        self.server.start()
        self.job = self.server.ctl("submit", "model.onnx", "--detach").out.split()[0]
        self.server.process.terminate()
        self.server.process.wait()
        database = sqlite3.connect(self.server.state / "fusion.db")
        event = b"r" * (1 << 20)
        for seq in range(more_bytes // len(event)):
            database.execute("INSERT INTO job_events (job_id, seq, event) VALUES (?, ?, ?)",
                             (self.job, 1000 + seq, event))
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()

    def overwrite(self, page_is_meant):
        """Zeroes the pages for which that is true, and returns how many."""
        path, damaged = self.server.state / "fusion.db", 0
        with open(path, "r+b") as file:
            for page in range(1, path.stat().st_size // PAGE):
                file.seek(page * PAGE)
                if page_is_meant(page, file.read(PAGE)):
                    file.seek(page * PAGE)
                    file.write(b"\0" * PAGE)
                    damaged += 1
        return damaged

    def doctor(self):
        return {check["check"]: check for check in json.loads(self.server.ctl("doctor", "-o", "json").out)}

    def assert_refuses(self, table):
        self.server.wait_until(lambda: "not serving" in self.server.log_text(), "the damage is found")
        self.assertRegex(self.server.log_text(), r"fusion\.db is damaged%s: .*[Rr]estore a backup" % table)
        self.assertFalse(self.doctor()["serving"]["ok"])
        refused = self.server.ctl("submit", "model.onnx", "--detach")
        self.assertNotEqual(refused.code, 0, refused)
        self.assertRegex(refused.err, r"fusion\.db is damaged%s: .*restore a backup.*admin check" % table)

    def test_a_large_one_is_found_by_the_check_behind_the_start(self):
        self.start_and_stop(CHECKED_AT_THE_START + (4 << 20))
        self.server.start()
        self.assertNotIn("serving", self.doctor(), "it is whole")
        self.assertEqual(self.server.ctl("submit", "model.onnx", "--detach").code, 0)
        self.server.stop()

        # Pages in the middle of what the first events hold. A start looks for the last one, and meets others on the way.
        self.assertGreater(self.overwrite(lambda page, text: page % 100 == 0 and page < 1200 and is_event(text)), 5)
        self.server = harness.Server(self.folder, "--no-local-worker")
        self.addCleanup(self.server.stop)
        self.server.start()
        self.assert_refuses(" in table job_events")
        self.assertEqual(self.server.ctl("job", "list").code, 0, "what is whole is still answered")
        found = self.server.ctl("admin", "check")
        self.assertEqual(found.code, 9, found)

    def test_a_small_one_does_not_start(self):
        self.start_and_stop(1 << 20)
        self.assertGreater(self.overwrite(lambda page, text: is_event(text)), 5)
        self.assert_does_not_start()

    def test_a_large_one_does_not_start_where_the_start_meets_the_damage(self):
        self.start_and_stop(CHECKED_AT_THE_START + (4 << 20))
        self.assertGreater(self.overwrite(lambda page, text: is_event(text)), 5)
        self.assert_does_not_start()

    def assert_does_not_start(self):
        ended = subprocess.run([harness.BIN / "fusiond", "--state", self.server.state, "--no-local-worker"],
                               capture_output=True, text=True, timeout=harness.HANG)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertRegex(ended.stderr, r"fusion\.db is damaged: .*restore a backup")


if __name__ == "__main__":
    unittest.main()
