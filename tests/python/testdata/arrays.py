"""NumPy arrays lie where they are wanted."""

import unittest

import numpy

import tieralloc_shim as t

t.enable()


class Arrays(unittest.TestCase):
    def test_tiers(self):
        for word, tier in ("hot", "fast"), ("warm", "normal"), ("cold", "slow"):
            with t.hint(word):
                made = [numpy.zeros(10**6), numpy.ones(10**5), numpy.arange(5000), numpy.zeros((300, 300), order="F"),
                        numpy.full(3000, 1j), numpy.zeros(1000) + 1, numpy.random.rand(10**5)]
            for array in made:
                self.assertEqual(t.tier_of(array), tier, array.nbytes)

    def test_views(self):
        with t.hint("cold"):
            array = numpy.arange(10**5).reshape(100, 1000)
        for view in array[5:], array.T, array[::-2, 3:9], array.view("u1")[7], memoryview(array):
            self.assertEqual(t.tier_of(view), "slow")

    def test_move(self):
        array = numpy.arange(10**6)
        address = array.ctypes.data
        self.assertEqual(t.move(array[10:], "slow"), address)
        self.assertEqual((t.tier_of(array), array.ctypes.data, int(array.sum())), ("slow", address, 499999500000))
        with self.assertRaises(ValueError):
            t.move(numpy.zeros(1000), "slow")

    def test_foreign(self):
        self.assertIsNone(t.tier_of(numpy.frombuffer(memoryview(b"x" * 96))))


unittest.main()
