"""Futures of addresses and the pool, on a library that only pretends (fake_cuda.c)."""

import asyncio
import collections
import concurrent.futures
import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import types
import unittest
import weakref
from unittest import mock

import tieralloc_shim as t
from tieralloc import _futures, _library, _statistics
from tieralloc import aio as a
from tieralloc import cuda as c

fake = ctypes.CDLL(None)
fake.fake_journal.restype = ctypes.c_char_p
LONG = 60  # seconds after which a test that hangs is given up


def journal():
    return [line for line in fake.fake_journal().decode().splitlines() if not line.startswith("stats ")]


@contextlib.contextmanager
def busy():
    """The thread that allocates, held in an allocation from which it comes back when the block ends."""
    begun, ends, real = threading.Event(), threading.Event(), _library.function("ta_cuda_malloc")

    def malloc(*arguments):
        begun.set()
        assert ends.wait(LONG)
        return real(*arguments)

    with mock.patch.dict(_library._functions, ta_cuda_malloc=malloc):
        try:
            yield begun
        finally:
            ends.set()


class Futures(unittest.TestCase):
    def setUp(self):
        self.manager = t.get_memory_manager()
        self.manager.allocate_async(0).result(LONG)  # what the tests before have dropped is done
        gc.collect()
        journal()

    def test_result(self):
        stream = types.SimpleNamespace(cuda_stream=77)
        first, second = self.manager.allocate_async(1000), self.manager.allocate_async(2.0, stream)
        self.assertIsInstance(first, concurrent.futures.Future)
        addresses = {first.result(LONG), second.result(LONG)}
        self.assertEqual((len(addresses), first.result()), (2, first.result(LONG)))
        self.assertEqual(journal(), ["malloc 1000 0 0", "malloc 2 0 77"])
        del first, second
        gc.collect()
        self.assertEqual(journal(), [])  # who had the addresses has the blocks
        self.assertEqual(self.manager.allocate_async(0).result(LONG), 0)
        self.assertEqual(journal(), [])

    def test_does_not_wait(self):
        with busy() as begun:
            futures = [self.manager.allocate_async(n) for n in (10, 20, 30)]
            self.assertTrue(begun.wait(LONG))
            self.assertTrue(futures[0].running())
            self.assertFalse(any(future.done() for future in futures))
            with self.assertRaises(concurrent.futures.TimeoutError):
                futures[0].result(0.01)
        done = concurrent.futures.wait(futures, LONG).done
        self.assertEqual(len({future.result() for future in done}), 3)
        self.assertEqual(journal(), ["malloc 10 0 0", "malloc 20 0 0", "malloc 30 0 0"])

    def test_cancelled(self):
        with busy() as begun:
            running, waiting, last = (self.manager.allocate_async(n) for n in (10, 20, 30))
            begun.wait(LONG)
            self.assertTrue(waiting.cancel())
            self.assertFalse(running.cancel())
        self.assertNotEqual(last.result(LONG), running.result(LONG))
        self.assertEqual(journal(), ["malloc 10 0 0", "malloc 30 0 0"])
        self.assertRaises(concurrent.futures.CancelledError, waiting.result)
        self.assertEqual(len(concurrent.futures.wait([waiting], LONG).done), 1)

    def test_nothing_is_lost(self):
        """The block of a future that is gone without its result goes back, once, on its stream."""
        late = self.manager.allocate_async(100, 5)
        concurrent.futures.wait([late])
        self.assertFalse(late.cancel())
        del late
        end, seen = time.monotonic() + LONG, []
        while "free 0 0 5" not in seen and time.monotonic() < end:  # the other thread holds it a moment longer
            seen += journal()
        self.assertEqual(seen, ["malloc 100 0 5", "free 0 0 5"])
        with busy() as begun:
            self.manager.allocate_async(200, types.SimpleNamespace(ptr=6))  # nobody holds it while it is served
            begun.wait(LONG)
        self.manager.allocate_async(0).result(LONG)
        gc.collect()
        self.assertEqual(journal(), ["malloc 200 0 6", "free 0 0 6"])
        kept = self.manager.allocate_async(300)
        concurrent.futures.wait([kept])
        kept.add_done_callback(lambda future: future.result())  # had in a callback
        del kept
        gc.collect()
        self.assertEqual(journal(), ["malloc 300 0 0"])

    def test_errors(self):
        future = self.manager.allocate_async(1 << 31)
        with self.assertRaisesRegex(MemoryError, "no 2147483648 bytes on device 0"):
            future.result(LONG)
        self.assertIsInstance(future.exception(), MemoryError)
        with self.assertRaisesRegex(OSError, "on device 8: No such device"), mock.patch("tieralloc._driver.initialize"):
            c.MemoryManager(8).allocate_async(1).result(LONG)
        self.assertTrue(self.manager.allocate_async(1).result(LONG))  # the thread goes on
        journal()
        for error, size in ((ValueError, -1), (ValueError, 1.5), (TypeError, "64M"), (TypeError, None), (ValueError, 1 << 63)):
            with self.assertRaisesRegex(error, "size .*: expected a whole number"):
                self.manager.allocate_async(size)
        with self.assertRaisesRegex(TypeError, "stream 'x': expected a number"):
            self.manager.allocate_async(1, "x")
        with self.assertRaisesRegex(ValueError, "stream 2: expected any other than the per-thread default stream"):
            self.manager.allocate_async(1, 2)
        self.assertEqual(journal(), [])

    def test_error_does_not_keep_its_future(self):
        gc.disable()
        self.addCleanup(gc.enable)
        future = self.manager.allocate_async(1 << 31)
        self.assertIsInstance(future.exception(LONG), MemoryError)
        self.manager.allocate_async(0).result(LONG)
        gone = weakref.ref(future)
        del future
        self.assertIsNone(gone())

    def test_hint(self):
        """The block has the hint of who asked for it."""
        seen, set_hint = [], _library.function("ta_set_hint")
        with mock.patch.dict(_library._functions, ta_cuda_malloc=lambda *_: seen.append(set_hint(1)) or 4096):
            for hint in (2, 0, 3):
                set_hint(hint)
                self.manager.allocate_async(1).result(LONG)
                self.assertEqual(set_hint(hint), hint)  # as it was
        set_hint(1)
        self.assertEqual(seen, [2, 0, 3])

    def test_one_thread(self):
        """However many ask: one thread for a device, a daemon."""
        counts, managers = [], [c.MemoryManager(1) for _ in range(4)]

        def ask(manager):
            counts.append(len({manager.allocate_async(8).result(LONG) for _ in range(50)}))

        threads = [threading.Thread(target=ask, args=(manager,)) for manager in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(counts, [50] * 4)
        mine = [thread for thread in threading.enumerate() if thread.name == "tieralloc-1"]
        self.assertEqual([thread.daemon for thread in mine], [True])

    def test_asyncio(self):
        async def ask():
            return await asyncio.wait_for(asyncio.wrap_future(self.manager.allocate_async(64)), LONG)

        self.assertTrue(asyncio.run(ask()))
        gc.collect()
        self.assertEqual(journal(), ["malloc 64 0 0"])

    def test_end_of_a_callback(self):
        """A callback that would end its thread, or a result that is not ours, leaves it for those who wait."""
        def ends(_):
            raise SystemExit(3)

        with self.assertLogs("concurrent.futures") as log:
            with busy() as begun:
                first, second, third = (self.manager.allocate_async(n) for n in (1, 2, 3))
                begun.wait(LONG)
                first.add_done_callback(ends)
                second.set_result(7)
            self.assertTrue(third.result(LONG))
        self.assertEqual((bool(first.result()), second.result()), (True, 7))
        self.assertEqual(journal(), ["malloc 1 0 0", "malloc 3 0 0"])
        self.assertIn("SystemExit: 3", "".join(log.output))

    def test_within_itself(self):
        """A finalizer may ask wherever it runs: while the first request makes the device's thread, too."""
        manager, real, inner, outer = c.MemoryManager(2), _futures.Worker, [], []

        def worker(its):
            if not inner:
                inner.append(None)
                inner[0] = manager.allocate_async(8)
            return real(its)

        with mock.patch.object(_futures, "Worker", worker):
            thread = threading.Thread(target=lambda: outer.append(manager.allocate_async(8)), daemon=True)
            thread.start()
            thread.join(LONG)
        self.assertEqual(len({future.result(LONG) for future in inner + outer}), 2)
        self.assertEqual(sum(thread.name == "tieralloc-2" for thread in threading.enumerate()), 1)

    def test_performance_context(self):
        """What the other thread allocates counts, and blocks of several threads may overlap in any order."""
        first, second, results = threading.Barrier(2, timeout=LONG), threading.Barrier(2, timeout=LONG), {}

        def other():
            with c.MemoryManager(0).performance_context() as perf:
                first.wait()
                second.wait()
                self.manager.free_memory(self.manager.allocate_memory(1 << 10), 1 << 10)
            results["other"] = perf.stats

        thread = threading.Thread(target=other)
        live = self.manager.get_statistics().live_bytes
        with self.assertRaises(KeyError), self.manager.performance_context() as perf:
            thread.start()
            first.wait()
            self.manager.free_memory(self.manager.allocate_async(1 << 20).result(LONG), 1 << 20)
            raise KeyError
        second.wait()
        thread.join()
        self.assertEqual((perf.stats.total_allocations, perf.stats.total_freed, perf.stats.peak_memory_usage - live), (1, 1, 1 << 20))
        other = results["other"]
        self.assertEqual((other.total_allocations, other.total_freed, other.peak_memory_usage - live), (2, 2, 1 << 20))
        self.assertEqual(len(_statistics.watches[0]), 1)


class Pool(unittest.TestCase):
    def setUp(self):
        self.manager = t.get_memory_manager()
        self.manager.allocate_memory(1)
        self.manager.cleanup_cache(force=True)
        journal()

    def test_pool(self):
        with a.AsyncMemoryPool(64 << 20) as pool:
            self.assertEqual(journal(), ["warmup 67108864 1 0"])
            self.assertEqual(self.manager.get_statistics().cached_bytes, 64 << 20)
            futures = [pool.allocate_async(1 << 20, 9) for _ in range(20)]
        self.assertTrue(all(future.done() for future in futures))  # what waited was served
        self.assertEqual(journal(), ["malloc 1048576 0 9"] * 20 + ["trim 0 0"])
        self.assertEqual(len({future.result() for future in futures}), 20)
        pool.close()
        self.assertEqual(journal(), [])
        with self.assertRaisesRegex(RuntimeError, r"no allocate_async after close\(\)"):
            pool.allocate_async(1)
        self.assertTrue(self.manager.allocate_async(1).result(LONG))

    def test_keeps_what_others_have_cached(self):
        self.manager.warmup_cache([8 << 20], [2])
        with a.AsyncMemoryPool(64 << 20):
            journal()
        self.assertEqual(journal(), [f"trim {16 << 20} 0"])

    def test_default(self):
        with self.assertRaisesRegex(MemoryError, "ta_cuda_warmup on device 0"), mock.patch.dict(_library._functions, ta_cuda_warmup=self.full):
            a.AsyncMemoryPool()
        self.assertEqual(self.asked, 1 << 30)

    def full(self, device, sizes, counts, n):
        self.asked = sizes[0]
        ctypes.set_errno(12)  # ENOMEM
        return -1

    def test_bad_sizes(self):
        threads = threading.active_count()
        for error, size in ((ValueError, 0), (ValueError, -1), (TypeError, "1G"), (TypeError, True), (ValueError, 1 << 63)):
            with self.assertRaisesRegex(error, "pool_size .*: expected a whole number from 1 to"):
                a.AsyncMemoryPool(size)
        with self.assertRaisesRegex(ValueError, "device -1: expected"):
            a.AsyncMemoryPool(1, -1)
        self.assertEqual((journal(), threading.active_count()), ([], threads))

    def test_dropped(self):
        """The thread of a pool that was never closed ends with it."""
        pool = a.AsyncMemoryPool(1 << 20)
        pool.allocate_async(1).result(LONG)
        thread = pool._worker._thread
        self.assertTrue(thread.is_alive())
        del pool
        gc.collect()
        thread.join(LONG)
        self.assertFalse(thread.is_alive())


def status_of(child):
    """The exit status of a forked child that runs a function; 1 for an exception, 9 for one that hangs."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.01)
    os.kill(pid, 9)
    return os.waitpid(pid, 0)[1]


class Fork(unittest.TestCase):
    def test_child(self):
        manager = t.get_memory_manager()
        unfetched = manager.allocate_async(10, 3)
        concurrent.futures.wait([unfetched])
        gc.collect()
        with busy() as begun:
            futures = [manager.allocate_async(n) for n in (1, 2, 3)]
            begun.wait(LONG)
            holds, let_go = threading.Event(), threading.Event()

            def hold():  # a thread that the child does not have
                with futures[1]._condition, _futures._lock:
                    holds.set()
                    let_go.wait(LONG)

            holder = threading.Thread(target=hold)
            holder.start()
            holds.wait(LONG)
            journal()

            def child():
                nonlocal unfetched
                for future in futures:
                    try:
                        future.result(LONG)
                    except RuntimeError as error:
                        assert "forked before this allocation was done" in str(error), error
                    else:
                        raise AssertionError("a request of the parent was served")
                assert len(concurrent.futures.wait(futures, 0).done) == 3
                del unfetched
                gc.collect()
                assert journal() == [], "the parent's block was freed"
                _library._functions.pop("ta_cuda_malloc")
                assert manager.allocate_async(7).result(LONG)
                assert journal() == ["malloc 7 0 0"]
                assert sum(thread.name == "tieralloc-0" for thread in threading.enumerate()) == 1

            status = status_of(child)
            let_go.set()
            holder.join()
        self.assertEqual(status, 0)
        self.assertEqual(len({future.result(LONG) for future in futures}), 3)  # the parent has all of its own

    def test_fork_between(self):
        """A fork when a request is no longer waiting, and not yet served."""
        manager, statuses, future = t.get_memory_manager(), [], None
        manager.allocate_async(0).result(LONG)
        worker = _futures._of_devices[0]

        def child():
            try:
                future.result(LONG)
            except RuntimeError as error:
                assert "forked before this allocation was done" in str(error), error
            else:
                raise AssertionError("a request of the parent was served")

        class Forks(collections.deque):
            def popleft(self):
                request = super().popleft()
                statuses.append(status_of(child))
                return request

        with worker._changed:
            waiting, worker._requests = worker._requests, Forks()
            future = manager.allocate_async(5)
        self.assertTrue(future.result(2 * LONG))
        worker._requests = waiting
        self.assertEqual(statuses, [0])

    def test_fork_in_a_callback(self):
        """The thread that serves goes on in the parent alone."""
        manager, statuses, done = t.get_memory_manager(), [], threading.Event()

        def fork(_):
            pid = os.fork()
            if pid == 0:
                return  # the child's only thread: it has nothing to serve, and ends
            statuses.append(os.waitpid(pid, 0)[1])
            done.set()

        with busy():
            future = manager.allocate_async(10)
            future.add_done_callback(fork)
        self.assertTrue(done.wait(LONG))
        self.assertTrue(manager.allocate_async(1).result(LONG))
        self.assertEqual(statuses, [0])

    def test_end(self):
        """A process ends though its thread is held by the driver, and who waits is told."""
        code = (
            "import atexit, concurrent.futures, sys, threading, time\n"
            "from tieralloc import _library, cuda as c\n"
            "waits, begun, let_go = None, threading.Event(), threading.Event()\n"
            "def malloc(*_):\n"
            "    begun.set()\n"
            "    let_go.wait(600)\n"
            "    return 4096\n"
            # Before tieralloc._futures is loaded, so that it runs after that one's own end.
            "atexit.register(lambda: print(waits.cancelled(), len(concurrent.futures.wait([waits], 5).done), flush=True))\n"
            "manager = c.get_memory_manager()\n"
            "manager.allocate_async(0).result()\n"
            "_library._functions['ta_cuda_malloc'] = malloc\n"
            "held, waits = manager.allocate_async(1), manager.allocate_async(2)\n"
            "begun.wait()\n"
            "if sys.argv[1] == 'goes on':\n"
            "    waits.add_done_callback(lambda _: let_go.set())\n")
        for held in "for good", "goes on":
            done = subprocess.run([sys.executable, "-c", code, held], timeout=LONG, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True 1\n", ""), held)


unittest.main()
