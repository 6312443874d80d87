"""The arithmetic of cost_model.py."""
import unittest

import cost_model


class Summary(unittest.TestCase):
    def test_ranks_share_ties(self):
        self.assertEqual(cost_model.ranks([5, 1, 5, 7]), [1.5, 0, 1.5, 3])

    def test_a_model_off_by_a_factor_is_without_error(self):
        correlation, median, error, factor = cost_model.summary([(1, 2), (3, 6), (2, 4)])
        self.assertAlmostEqual(correlation, 1)
        self.assertEqual((median, error, factor), (2, 0, 1))

    def test_order_decides_on_the_rank(self):
        self.assertAlmostEqual(cost_model.summary([(1, 9), (2, 4), (3, 1)])[0], -1)

    def test_errors_are_those_after_calibration(self):
        # measured / estimated is 1, 1, 1, 2, 4; its median is 1
        _, median, error, factor = cost_model.summary([(1, 1), (2, 2), (3, 3), (4, 8), (5, 20)])
        self.assertEqual((median, error, factor), (1, 0, 4))

    def test_one_kernel_has_no_order(self):
        self.assertEqual(cost_model.summary([(1, 3)])[0], 0)

    def test_equal_estimates_have_no_order(self):
        self.assertEqual(cost_model.summary([(2, 3), (2, 5)])[0], 0)


if __name__ == "__main__":
    unittest.main()
