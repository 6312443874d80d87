"""The page on security names tests that exist."""
import unittest

import attacks


class Page(unittest.TestCase):
    def test_each_attack_has_tests_that_exist(self):
        rows = attacks.attacks(attacks.PAGE.read_text())
        self.assertGreater(len(rows), 30)
        for row in rows:
            with self.subTest(row.threat):
                self.assertTrue(row.references, "no test")
            for reference in row.references:
                with self.subTest(reference.path):
                    self.assertTrue((attacks.ROOT / reference.path).exists())
                    if "/fuzz/" in reference.path:
                        continue
                    self.assertTrue(attacks.cases_of(reference))
                    if reference.path.endswith(".cc"):
                        self.assertTrue(attacks.program_of(reference.path))
                    named = {name for case in attacks.cases_of(reference) for name in case}
                    self.assertFalse(set(reference.names) - named, "no such tests")


if __name__ == "__main__":
    unittest.main()
