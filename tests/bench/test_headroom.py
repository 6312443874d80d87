"""The arithmetic of headroom.py."""
import unittest

import headroom


def program(sizes, kinds, launches, outputs=()):
    return {"buffers": [{"size_bytes": size, "kind": kind} for size, kind in zip(sizes, kinds)],
            "launches": [{"buffers": buffers} for buffers in launches],
            "outputs": [{"buffer": buffer} for buffer in outputs]}


class PastL2(unittest.TestCase):
    # input 0 -> (weight 1) -> 2 -> (weight 3) -> output 4
    KINDS = ("input", "constant", "arena", "constant", "output")

    def chain(self, l2_bytes, sizes=(10, 20, 30, 40, 50)):
        return headroom.past_l2(program(sizes, self.KINDS, ([0, 1, 2], [2, 3, 4]), [4]), l2_bytes)

    def test_what_fits_moves_only_what_it_must(self):
        self.assertEqual(self.chain(1000), ([30, 90], [30, 90]))

    def test_a_result_that_does_not_fit_goes_out_and_comes_back(self):
        now, least = self.chain(29)
        self.assertEqual(now, [30 + 30, 30 + 40 + 50])
        self.assertEqual(least, [30, 90])

    def test_what_was_used_last_stays(self):
        self.assertEqual(self.chain(130)[0], [30, 40 + 50], "the input and the first weight made room")
        # The cache does not know that nobody reads the result again, and writes it back.
        self.assertEqual(self.chain(70)[0], [30 + 30, 40 + 50])

    def test_an_input_that_is_read_again_later_moves_again(self):
        kinds = ("input", "arena", "arena", "output")
        again = program((10, 50, 50, 5), kinds, ([0, 1], [1, 2], [0, 2, 3]), [3])
        self.assertEqual(headroom.past_l2(again, 60)[0][2], 10 + 5)
        self.assertEqual(headroom.past_l2(again, 1000)[0][2], 5)


class Gain(unittest.TestCase):
    def kernel(self, us, flops, now, least):
        return headroom.Kernel("k", us, flops, now, least)

    def test_a_kernel_near_the_peak_gains_nothing(self):
        self.assertEqual(headroom.gain_us(self.kernel(10, 9e6, 1e9, 0), 1e12, 1e10), 0)

    def test_bytes_and_arithmetic_both_limit_it(self):
        self.assertAlmostEqual(headroom.gain_us(self.kernel(10, 2e6, 1e9, 0), 1e12, 1e10), 8)
        self.assertAlmostEqual(headroom.gain_us(self.kernel(10, 2e6, 50e3, 20e3), 1e12, 1e10), 3)
        self.assertEqual(headroom.gain_us(self.kernel(10, 2e6, 20e3, 20e3), 1e12, 1e10), 0)


class Misses(unittest.TestCase):
    def test_only_functions_of_kernels_count(self):
        import json
        import pathlib
        import tempfile
        import zipfile
        text = ("events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfl=a\nfn=k0_0\n1 5 0 0 3 2 1 4 2 2\n0 1 0 0 1 1 1 0 0 0\n"
                "fn=memcpy\n7 1 1 1 9 9 9 9 9 9\nfn=k1_0(long)\n1 1 0 0 0 0 0 7 7 5\n")
        with tempfile.TemporaryDirectory() as folder:
            bundle = pathlib.Path(folder, "b.fusion")
            with zipfile.ZipFile(bundle, "w") as entries:
                kernels = [{"phases": [{"symbol": symbol}]} for symbol in ("k0_0", "k1_0")]
                entries.writestr("manifest.json", json.dumps({"kernels": kernels}))
            self.assertEqual(headroom.kernel_misses(text, bundle), 1 + 2 + 1 + 5)


if __name__ == "__main__":
    unittest.main()
