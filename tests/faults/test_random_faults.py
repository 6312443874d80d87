"""Fifty faults of one seed against real processes; `random_faults.py --faults 2000` makes more."""
import unittest

import random_faults


class RandomFaults(unittest.TestCase):
    def run_faults(self, count, **options):
        run = random_faults.Run(**options)
        self.addCleanup(run.close)
        run.faults(count)
        print("\n%s" % run.report())
        return run

    def test_nothing_acknowledged_is_lost_doubled_or_torn(self):
        run = self.run_faults(50, seed=1, log=print)
        self.assertEqual(run.problems, [])
        self.assertGreater(len(run.acknowledged), 10)
        self.assertGreater(sum(run.counts[kind] for kind in run.counts if kind.startswith("server")), 15)
        self.assertGreater(run.lost_writes, 0)  # else nothing was unsynced at any kill, and the shim has shown nothing

    def test_a_database_that_does_not_sync_is_found_out(self):
        for seed in range(1, 6):
            if self.run_faults(10, seed=seed, synchronous_off=True, workers=1).problems:
                return
        self.fail("SQLite synced nothing, and five runs have lost nothing: the shim shows nothing")


if __name__ == "__main__":
    unittest.main()
