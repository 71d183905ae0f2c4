"""The shim with the library preloaded."""

import array
import concurrent.futures
import ctypes
import errno
import mmap
import os
import threading
import unittest

import tieralloc_shim as t
from common import hint_now, process, tier_now
from tieralloc import hints

BIG = 300 * 1024


class Shim(unittest.TestCase):
    def setUp(self):
        t.enable()
        self.addCleanup(process.ta_set_hint, 0)
        self.addCleanup(setattr, hints, "_default", None)
        self.addCleanup(t.disable)

    def test_available(self):
        self.assertTrue(t.available() and t.enabled())
        t.disable()
        self.assertTrue(t.available() and not t.enabled())

    def test_default_hint(self):
        for word, tier in zip(t.HINTS, ("fast", "normal", "slow", "fast", "fast")):
            for spelling in word, word.upper(), word.title():
                t.set_default_hint(spelling)
                self.assertEqual((hint_now(), tier_now()), (word, tier))

    def test_bad_words_change_nothing(self):
        t.set_default_hint("cold")
        for word in "lukewarm", "", None, 2:
            with self.assertRaises(ValueError):
                t.set_default_hint(word)
            with self.assertRaises(ValueError):
                t.hint(word)
        self.assertEqual(hint_now(), "cold")

    def test_disable_restores(self):
        t.disable()
        process.ta_set_default_hint(3)
        self.addCleanup(process.ta_set_default_hint, 0)
        t.enable()
        self.assertEqual(hint_now(), "cold")
        t.set_default_hint("hot")
        t.set_default_hint("pin_fast")
        t.enable()  # again: it is on
        self.assertEqual(hint_now(), "pin_fast")
        t.disable()
        t.disable()
        self.assertEqual(hint_now(), "cold")
        t.set_default_hint("hot")  # remembered
        self.assertEqual(hint_now(), "cold")
        t.enable()
        self.assertEqual(hint_now(), "hot")
        t.disable()
        self.assertEqual(hint_now(), "cold")

    def test_blocks_nest(self):
        t.set_default_hint("hot")
        with t.hint("cold"):
            self.assertEqual(hint_now(), "cold")
            with t.hint("Warm"):
                self.assertEqual((hint_now(), tier_now()), ("warm", "normal"))
                with t.hint("cold"):
                    self.assertEqual(tier_now(), "slow")
                self.assertEqual(hint_now(), "warm")
            self.assertEqual(hint_now(), "cold")
        self.assertEqual(hint_now(), "hot")

    def test_one_block_twice(self):
        block = t.hint("cold")
        for _ in range(2):
            with block:
                with t.hint("hot"), block:
                    self.assertEqual(hint_now(), "cold")
                self.assertEqual(hint_now(), "cold")
            self.assertEqual(hint_now(), "warm")

    def test_exceptions_restore(self):
        with self.assertRaises(KeyError):
            with t.hint("cold"), t.hint("hot"):
                raise KeyError
        self.assertEqual(hint_now(), "warm")

    def test_decorator(self):
        @t.hint("cold")
        def depth(n, *, end="cold"):
            """Doc."""
            self.assertEqual(hint_now(), "cold")
            if n == 0 and end == "raise":
                raise KeyError
            with t.hint("hot"):
                return depth(n - 1, end=end) + 1 if n else 0
        self.assertEqual((depth(3), depth.__name__, depth.__doc__), (3, "depth", "Doc."))
        with self.assertRaises(KeyError):
            depth(3, end="raise")
        self.assertEqual(hint_now(), "warm")

    def test_decorator_refuses_what_runs_later(self):
        def generator():
            yield

        async def coroutine():
            pass

        async def both():
            yield
        for function in generator, coroutine, both:
            with self.assertRaisesRegex(TypeError, function.__name__):
                t.hint("cold")(function)

    def test_generators_interleave(self):
        def inside(word):
            with t.hint(word):
                yield hint_now()
        a, b = inside("cold"), inside("hot")
        self.assertEqual((next(a), next(b)), ("cold", "hot"))
        a.close()  # gives back what it found, though b goes on
        self.assertEqual(hint_now(), "warm")
        b.close()
        self.assertEqual(hint_now(), "cold")

    def test_disable_inside_a_block(self):
        process.ta_set_hint(5)
        with t.hint("cold"):
            t.disable()
            self.assertEqual(hint_now(), "prefer_fast")
        self.assertEqual(hint_now(), "prefer_fast")
        with t.hint("cold"):
            t.enable()
            self.assertEqual(hint_now(), "prefer_fast")

    def test_disabled_elsewhere_inside_a_block(self):
        with t.hint("cold"):
            in_thread(t.disable)
            self.assertEqual(hint_now(), "cold")
        self.assertEqual(hint_now(), "warm")

    def test_blocks_are_the_thread_s(self):
        block = t.hint("cold")
        inside, done, seen = threading.Event(), threading.Event(), []

        def other():
            with block:
                inside.set()
                done.wait()
                seen.append(hint_now())
            seen.append(hint_now())
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait()
        self.assertEqual(hint_now(), "warm")
        with block:
            with t.hint("hot"):
                done.set()
                thread.join()
            self.assertEqual(hint_now(), "cold")
        self.assertEqual((seen, hint_now()), (["cold", "warm"], "warm"))

    def test_later_threads(self):
        self.assertEqual(in_thread(hint_now), "warm")
        t.set_default_hint("cold")
        self.assertEqual(in_thread(lambda: (hint_now(), tier_now())), ("cold", "slow"))
        with t.hint("hot"):  # a block is not handed on
            self.assertEqual(in_thread(hint_now), "cold")
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                self.assertEqual(list(pool.map(lambda _: hint_now(), range(4))), ["cold"] * 4)

        class Own(threading.Thread):
            def run(self):
                self.seen = hint_now()
        thread = Own()
        thread.start()
        thread.join()
        self.assertEqual(thread.seen, "cold")
        t.disable()
        self.assertEqual(in_thread(hint_now), "warm")

    def test_running_threads(self):
        """The default is that of threads that run already, too, but for those in a block."""
        start, seen = threading.Barrier(3), {}

        def follows():
            self.assertEqual(hint_now(), "warm")
            start.wait(), start.wait()
            seen["follows"] = hint_now(), tier_now(9 << 20)

        def inside():
            with t.hint("hot"):
                start.wait(), start.wait()
                seen["inside"] = hint_now(), tier_now(9 << 20)
            seen["after"] = hint_now()
        threads = [threading.Thread(target=call) for call in (follows, inside)]
        for thread in threads:
            thread.start()
        start.wait()
        t.set_default_hint("cold")
        start.wait()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, {"follows": ("cold", "slow"), "inside": ("hot", "fast"), "after": "cold"})

    def test_forked_child(self):
        t.set_default_hint("cold")
        pid = os.fork()
        if pid == 0:
            ok = hint_now() == "cold" and tier_now() == "slow" and t.stats()["pid"] == os.getpid()
            with t.hint("hot"):
                ok = ok and tier_now() == "fast"
            os._exit(0 if ok and in_thread(hint_now) == "cold" else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_tier_of(self):
        with t.hint("cold"):
            block = process.malloc(5000)
            cases = [
                block, ctypes.c_void_p(block), ctypes.cast(block, ctypes.POINTER(ctypes.c_int)),
                bytearray(5000), bytes(5000), array.array("d", range(1000)), (ctypes.c_char * 5000)(),
                memoryview(bytearray(5000)),
            ]
        for case in cases:
            self.assertEqual(t.tier_of(case), "slow", case)
        process.free(block)
        with mmap.mmap(-1, 4096) as pages:
            for foreign in 0, 1, block + 8, -1, 2**64 - 1, id(None), pages, ctypes.c_void_p():
                self.assertIsNone(t.tier_of(foreign), foreign)
        for neither in "text", None, 1.5, [1], {}, object(), memoryview(bytearray(9))[::2]:
            with self.assertRaises(TypeError):
                t.tier_of(neither)

    def test_move_by_address(self):
        for size, stays in (100, False), (BIG, True), (20 << 20, True):
            block = process.malloc(size)
            ctypes.memset(block, 7, size)
            for tier in "slow", "FAST", "normal", "normal":
                to = t.move(block, tier)
                self.assertEqual(t.tier_of(to), tier.lower())
                self.assertEqual(ctypes.string_at(to, size), b"\7" * size)
                if stays:
                    self.assertEqual(to, block)
                block = to
            process.free(block)

    def test_move_by_object(self):
        data = bytearray(b"x" * BIG)
        address = t.move(data, "slow")
        self.assertEqual((t.tier_of(data), t.tier_of(address), data), ("slow", "slow", b"x" * BIG))
        small = bytearray(1000)
        with self.assertRaisesRegex(ValueError, "256 KiB"):
            t.move(small, "slow")
        self.assertEqual(t.tier_of(small), "normal")

    def test_move_refused(self):
        block = process.malloc(BIG)
        for tier in "hot", "", None, 0:
            with self.assertRaisesRegex(ValueError, "expected fast, normal or slow"):
                t.move(block, tier)
        with t.hint("pin_fast"):
            pinned = process.malloc(BIG)
        with self.assertRaises(OSError) as caught:
            t.move(pinned, "slow")
        self.assertEqual((caught.exception.errno, t.tier_of(pinned)), (errno.EPERM, "fast"))
        process.free(pinned)
        process.free(block)
        for foreign in 0, id(None), block + 16:
            with self.assertRaisesRegex(ValueError, "not a block"):
                t.move(foreign, "slow")

    def test_stats(self):
        with t.hint("cold"):
            data = bytearray(10 << 20)
        report = t.stats()
        self.assertEqual((report["schema"], report["pid"]), ("tieralloc.stats/1", os.getpid()))
        self.assertGreaterEqual(report["tiers"]["slow"]["bytes_current"], len(data))
        self.assertGreaterEqual(report["hints"]["cold"], len(data))

    def test_hello(self):
        t.set_default_hint("hot")
        line = t.hello()
        for part in "tieralloc.stats/1", t.stats()["backend"], "shim on", "default hint hot", str(os.getpid()):
            self.assertIn(part, line)
        self.assertNotIn("\n", line)
        t.disable()
        self.assertIn("shim off, default hint warm", t.hello())


def in_thread(call):
    """What the call returns in a thread of its own."""
    seen = []
    thread = threading.Thread(target=lambda: seen.append(call()))
    thread.start()
    thread.join()
    return seen[0]


unittest.main()
