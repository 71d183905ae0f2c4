"""With TA_DISABLE=1: what does nothing, and what says why it cannot."""

import ctypes
import unittest
import warnings

import tieralloc_shim as t


class Disabled(unittest.TestCase):
    def test_enable_says_so(self):
        with self.assertWarnsRegex(RuntimeWarning, r"is disabled in this process \(TA_DISABLE=1\): enable\(\) does nothing"):
            t.enable()
        self.assertFalse(t.available() or t.enabled())
        t.disable()

    def test_hints_do_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            t.enable()
        t.set_default_hint("hot")
        with t.hint("cold"):
            data = bytearray(1 << 20)
        self.assertEqual(len(data), 1 << 20)

    def test_calls_say_why(self):
        for call in t.stats, lambda: t.tier_of(b"x"), lambda: t.move(1, "fast"):
            with self.assertRaisesRegex(RuntimeError, r"is disabled in this process \(TA_DISABLE=1\)$"):
                call()

    def test_ta_alloc_is_malloc(self):
        process = ctypes.CDLL(None, use_errno=True)
        process.ta_alloc.restype = ctypes.c_void_p
        process.ta_alloc.argtypes = [ctypes.c_size_t, ctypes.c_int]
        process.malloc_usable_size.restype = ctypes.c_size_t
        for free in process.ta_free, process.free:
            free.argtypes = process.malloc_usable_size.argtypes = [ctypes.c_void_p]
            for hint in range(6):
                for size in 1, 1000, 1 << 20, 64 << 20:
                    block = process.ta_alloc(size, hint)
                    self.assertTrue(block)
                    self.assertGreaterEqual(process.malloc_usable_size(block), size)
                    ctypes.memset(block, 7, size)
                    free(block)
        ctypes.set_errno(0)
        self.assertIsNone(process.ta_alloc(1, 6))


unittest.main()
