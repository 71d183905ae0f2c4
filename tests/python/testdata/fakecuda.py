"""The device heap by hand and for other libraries, on a library that only pretends (fake_cuda.c)."""

import contextlib
import ctypes
import io
import os
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

import tieralloc_shim as t
from tieralloc import _abi, _library, _statistics
from tieralloc import cuda as c

fake = ctypes.CDLL(None)
fake.fake_journal.restype = ctypes.c_char_p
configure = fake.ta_cuda_configure
configure.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_double]


def journal():
    """What was asked of the library since the last call, but for figures."""
    return [line for line in everything() if not line.startswith("stats ")]


def everything():
    return fake.fake_journal().decode().splitlines()


class Manager(unittest.TestCase):
    def setUp(self):
        self.manager = t.get_memory_manager()
        journal()

    def test_same_manager(self):
        self.assertIs(t.get_memory_manager(0), self.manager)
        self.assertEqual(t.get_memory_manager(1).device, 1)
        for device in -1, 0.5, 1 << 31, (1 << 32) + 1:
            with self.assertRaisesRegex(ValueError, f"device {device}: expected a whole number from 0 to 2147483647"):
                t.get_memory_manager(device)
        for device in [0], "0", None, True:
            with self.assertRaisesRegex(TypeError, r"device .*: expected a whole number from 0"):
                t.get_memory_manager(device)

    def test_blocks(self):
        m = self.manager
        stream = types.SimpleNamespace(cuda_stream=77)
        a, b = m.allocate_memory(1000), m.allocate_memory(2.0, stream)
        m.record_stream(a, types.SimpleNamespace(ptr=5))
        m.free_memory(a, 1000)
        m.free_memory(b, 2, types.SimpleNamespace(handle=ctypes.c_void_p(77)))
        m.free_memory(0)
        self.assertEqual(m.allocate_memory(0), 0)
        self.assertTrue(a and b and a != b)
        self.assertEqual(journal(), ["malloc 1000 0 0", "malloc 2 0 77", "record 1 5", "free 1000 0 0", "free 2 0 77"])
        for size in -1, 1.5, (1 << 63), (1 << 64) + 4096, float("nan"), float("inf"):
            with self.assertRaisesRegex(ValueError, r"size .*: expected a whole number from 0 to 9223372036854775807"):
                m.allocate_memory(size)
        for size in "64M", None, [4096], True, 1j:
            with self.assertRaisesRegex(TypeError, r"size .*: expected a whole number"):
                m.allocate_memory(size)
        for stream in "x", b"x", 1.0, True, [], types.SimpleNamespace(ptr="x"):
            with self.assertRaisesRegex(TypeError, r"stream .*: expected a number .*, or a stream"):
                m.allocate_memory(1, stream)
        for stream in -1, 1 << 64:
            with self.assertRaisesRegex(ValueError, f"stream {stream}: expected a number from 0 to 18446744073709551615"):
                m.allocate_memory(1, stream)
        for call in m.free_memory, lambda block: m.record_stream(block, 0):
            for block in "x", 1.5, [a], False:
                with self.assertRaisesRegex((TypeError, ValueError), r"address .*: expected a whole number from 0 to"):
                    call(block)
            self.assertRaises(ValueError, call, 1 << 64)
            self.assertRaises(ValueError, call, -a)
        self.assertRaises(ValueError, m.free_memory, a, -1)
        self.assertRaises(TypeError, m.free_memory, 0, "x")
        m.free_memory(None)
        self.assertEqual(journal(), [])  # nothing of this reached the library
        with self.assertRaisesRegex(MemoryError, "2147483648 bytes on device 0"):
            m.allocate_memory(1 << 31)
        with self.assertRaisesRegex(OSError, "no 1 bytes on device 8: No such device"), mock.patch("tieralloc._driver.initialize") as start:
            c.MemoryManager(8).allocate_memory(1)
        start.assert_called_once_with()  # that could have been why
        nobody = RuntimeError("there is no CUDA driver: libcuda.so.1")
        for call in (lambda: c.MemoryManager(8).allocate_memory(1), lambda: c.MemoryManager(8).allocate_async(1).result(60)):
            with mock.patch("tieralloc._driver.initialize", side_effect=nobody), self.assertRaisesRegex(RuntimeError, "no CUDA driver"):
                call()

    def test_wrong_frees(self):
        journal()
        with self.assertRaisesRegex(ValueError, r"free of 0x7f0000000200 on device 0: expected the address of a block that is in use: this"
                                    " one was freed before, begins within a block, or is not the library's"):
            self.manager.free_memory(0x7f0000000200)
        with self.assertRaisesRegex(OSError, "no free of 0x100000 on device 0: Input/output error"):
            self.manager.free_memory(1 << 20)
        block = self.manager.allocate_memory(100)
        ctypes.set_errno(22)  # of something before
        self.manager.free_memory(block, 100)
        self.assertEqual(journal(), ["malloc 100 0 0", "free 100 0 0"])

    def test_batch(self):
        blocks = self.manager.allocate_batch([10, 20, 30], 9)
        self.assertEqual(len(set(blocks)), 3)
        self.assertEqual(journal(), ["batch 3", "malloc 10 0 9", "malloc 20 0 9", "malloc 30 0 9"])
        self.assertRaises(MemoryError, self.manager.allocate_batch, [10, 1 << 31])
        journal()
        for sizes in [10, 0], [10, (1 << 64) + 4096]:
            with self.assertRaisesRegex(ValueError, r"size \d+: expected a whole number from 1 to 9223372036854775807"):
                self.manager.allocate_batch(sizes)
        for sizes in 10, "10", [10, "10"]:
            with self.assertRaisesRegex(TypeError, r"sizes? .*10.*: expected"):
                self.manager.allocate_batch(sizes)
        self.assertEqual(journal(), [])

    def test_warmup(self):
        self.manager.warmup_cache([4096, 65536], [50, 20])
        self.assertEqual(journal(), ["warmup 4096 50 0", "warmup 65536 20 0"])
        self.assertRaises(ValueError, self.manager.warmup_cache, [1, 2], [1])
        self.assertRaises(ValueError, self.manager.warmup_cache, [0], [1])
        self.assertRaises(MemoryError, self.manager.warmup_cache, [1 << 40], [1])
        journal()
        with self.assertRaisesRegex(ValueError, "count 4294967297: expected a whole number from 1 to 2147483647"):
            self.manager.warmup_cache([4096], [(1 << 32) + 1])
        with self.assertRaisesRegex(ValueError, "size 18446744073709555712: expected a whole number from 1"):
            self.manager.warmup_cache([(1 << 64) + 4096], [1])
        for sizes, counts in ((4096, [1]), ([4096], 1), ([4096], ["1"])):
            self.assertRaises(TypeError, self.manager.warmup_cache, sizes, counts)
        self.assertEqual(journal(), [])

    def test_cleanup(self):
        m = self.manager
        m.allocate_memory(1)
        m.garbage_collect()
        live = m.get_statistics().live_bytes
        m.warmup_cache([1 << 20], [512])  # half of the device
        self.assertEqual(m.cleanup_cache(), 0)  # not above 90%
        journal()
        self.assertEqual(m.cleanup_cache(threshold=0.25), (256 << 20) + live)
        self.assertEqual(journal(), [f"trim {(256 << 20) - live} 0"])
        self.assertEqual(m.get_statistics().cached_bytes, (256 << 20) - live)
        self.assertEqual(m.cleanup_cache(force=True), (256 << 20) - live)
        self.assertEqual(m.get_statistics().cached_bytes, 0)
        for threshold in -0.1, 1.1, float("nan"):
            self.assertRaises(ValueError, m.cleanup_cache, threshold)
        for threshold in "0.5", None, True:
            with self.assertRaisesRegex(TypeError, "threshold .*: expected a number from 0 to 1"):
                m.cleanup_cache(threshold)

    def test_garbage(self):
        self.manager.warmup_cache([4096], [50])
        cached = self.manager.get_statistics().cached_bytes
        journal()
        self.assertEqual(self.manager.garbage_collect(), cached)
        self.assertEqual(journal(), ["coalesce 0", "trim 0 0"])

    def test_expand(self):
        m = self.manager
        m.allocate_memory(1)
        m.configure(cache_sizes={"stream_local": 100})
        configure(0, b"global", -1)  # no limit
        journal()
        m.expand_cache_size(1.5)
        self.assertEqual(journal(), ["configure stream_local 150 0"])
        m.configure(cache_sizes={"global": 500})
        m.expand_cache_size(0.5)
        self.assertEqual(journal(), ["configure global 500 0", "configure stream_local 75 0", "configure global 250 0"])
        for factor in 0, -1, float("nan"), float("inf"), 10**400, 1e18, 1e300:
            with self.assertRaisesRegex(ValueError, "^factor "):
                m.expand_cache_size(factor)
        for factor in "2", None, True:
            with self.assertRaisesRegex(TypeError, "^factor .*: expected a number above 0"):
                m.expand_cache_size(factor)
        self.assertEqual(journal(), [])

    def test_expand_before_use(self):
        """Each time from what it is by then."""
        m = c.MemoryManager(1)
        m.expand_cache_size(2)
        m.expand_cache_size(2)
        c.MemoryManager(1).expand_cache_size(0.5)
        self.assertEqual(journal(), [f"configure stream_local {n} 1" for n in (200, 400, 200)])
        m.configure(cache_sizes={"stream_local": 10, "global": 7})
        journal()
        m.expand_cache_size(3)
        self.assertEqual(journal(), ["configure stream_local 30 1", "configure global 21 1"])
        configure(1, b"cache_limit", 1000)
        m.expand_cache_size(2)
        self.assertEqual(journal()[1:], [f"configure {key} 1" for key in ("stream_local 60", "global 42", "cache_limit 2000")])

    def test_coalescing(self):
        m = self.manager
        m.allocate_memory(1)
        journal()
        m.enable_aggressive_coalescing()
        m.enable_aggressive_coalescing(False)
        self.assertRaises(TypeError, m.enable_aggressive_coalescing, "no")
        self.assertEqual(m.coalesce_free_blocks(), 3)
        self.assertEqual(journal(), ["configure coalescing 1 0", "configure coalescing 0 0", "coalesce 0"])

    def test_configure(self):
        m = self.manager
        m.configure(segment_size=512 << 20, cache_sizes={"stream_local": 100, "global": 500}, warmup_sizes=[(4096, 50), (65536, 20)],
                    enable_stats=True, coalescing_threshold=0.1)
        self.assertEqual(journal(), [
            "configure segment_size 536870912 0", "configure stream_local 100 0", "configure global 500 0", "configure trace 1 0",
            "configure coalescing_threshold 0.10000000000000001 0", "warmup 4096 50 0", "warmup 65536 20 0"])
        m.configure(warmup_sizes=[(8, 1)], enable_warmup=False)
        m.configure(coalescing_threshold=1)
        self.assertEqual(journal(), ["configure coalescing_threshold 1 0"])
        c.configure_memory_manager({"enable_warmup": True})
        self.assertEqual(journal(), ["warmup 8 1 0"])
        m.configure()
        self.assertEqual(journal(), [])

    def test_bad_settings_change_nothing(self):
        for bad in ({"segment_size": 3 << 20}, {"segment_size": 1 << 50}, {"segment_size": 0}, {"cache_sizes": {"local": 1}},
                    {"segment_size": (1 << 64) + (2 << 20)}, {"segment_size": 2097152.5}, {"cache_sizes": {"stream_local": 1 << 63}},
                    {"cache_sizes": {"global": 1 << 63}}, {"cache_sizes": {"global": (1 << 53) + 1}},
                    {"cache_sizes": {"global": -1}}, {"allocation_strategy": "worst_fit"}, {"coalescing_threshold": 2},
                    {"coalescing_threshold": -0.1}, {"coalescing_threshold": float("nan")}, {"warmup_sizes": [(0, 1)]},
                    {"warmup_sizes": [(1, 0)]}, {"warmup_sizes": [(1, (1 << 32) + 1)]}, {"warmup_sizes": [((1 << 64) + 1, 1)]}):
            with self.assertRaises(ValueError) as raised:
                self.manager.configure(**{"enable_stats": True, "segment_size": 2 << 20, **bad})
            self.assertRegex(str(raised.exception), rf"{next(iter(bad))}.*: expected ")
        for bad in ({"segment_size": "64M"}, {"segment_size": True}, {"cache_sizes": [1, 2]}, {"cache_sizes": "global"},
                    {"cache_sizes": {"global": "5"}}, {"coalescing_threshold": "0.5"}, {"coalescing_threshold": True},
                    {"warmup_sizes": 4096}, {"warmup_sizes": [4096]}, {"warmup_sizes": [("4K", 1)]}, {"warmup_sizes": [(1, 2, 3)]},
                    {"enable_warmup": "no"}, {"enable_stats": "no"}, {"enable_stats": 2}):
            with self.assertRaises(TypeError) as raised:
                self.manager.configure(**{"enable_stats": True, "segment_size": 2 << 20, **bad})
            self.assertRegex(str(raised.exception), rf"{next(iter(bad))}.*: expected ")
        self.assertEqual(journal(), [])

    def test_refused_setting(self):
        with self.assertRaisesRegex(NotImplementedError, "strategy = 1"):
            self.manager.configure(allocation_strategy="first_fit")

    def test_statistics(self):
        m = self.manager
        m.allocate_memory(1)
        m.cleanup_cache(force=True)
        before = m.get_statistics()
        with m.performance_context() as perf:
            self.assertIsNone(perf.stats)
            a = m.allocate_memory(1 << 20)  # a miss
            m.free_memory(a, 1 << 20)
            for _ in range(3):
                m.free_memory(m.allocate_memory(1 << 20), 1 << 20)
        s = perf.stats
        self.assertEqual((s.total_allocations, s.total_freed, s.cache_hits, s.stream_hits, s.cache_misses), (4, 4, 3, 3, 1))
        self.assertEqual((s.cache_hit_rate, s.efficiency_score(), s.fragmentation_ratio), (0.75, 0.75, 0.25))
        self.assertEqual(s.peak_memory_usage, before.live_bytes + (1 << 20))
        self.assertGreater(perf.seconds, 0)
        self.assertEqual(m.get_statistics().total_allocations, before.total_allocations + 4)
        self.assertEqual(m.get_statistics().device, {"ordinal": 0, "bytes_device": 1 << 30})
        self.assertEqual((c.Statistics().device, c.Statistics().efficiency_score(), c.Statistics().cache_hit_rate), ({}, 1, 0))
        with self.assertRaises(KeyError), m.performance_context() as perf:
            raise KeyError
        self.assertEqual(perf.stats.total_allocations, 0)

    def test_statistics_are_one_call(self):
        """Not the report, which all of the process's memory is walked for."""
        m = self.manager
        everything()
        before = m.get_statistics()
        self.assertEqual(everything(), ["stats 0"])
        m.cleanup_cache()
        m.expand_cache_size(1)
        self.assertNotIn("json", everything())
        self.assertEqual(before, m.get_statistics())

    def test_nested_contexts(self):
        """Each block has its own peak, whatever blocks in it or beside it are measured."""
        m, unit = self.manager, 1 << 20

        def peak(units):
            m.free_memory(m.allocate_memory(units * unit), units * unit)

        peak(8)
        live, ever = m.get_statistics().live_bytes, m.get_statistics().peak_memory_usage
        self.assertGreaterEqual(ever, live + 8 * unit)
        with m.performance_context() as outer:
            peak(5)
            with m.performance_context() as inner:
                peak(2)
                with m.performance_context() as innermost:
                    peak(1)
            with c.MemoryManager(0).performance_context() as second:
                peak(3)
        self.assertEqual([p.stats.peak_memory_usage - live for p in (outer, inner, innermost, second)],
                         [5 * unit, 2 * unit, unit, 3 * unit])
        self.assertEqual(m.get_statistics().peak_memory_usage, ever)  # of the process
        with m.performance_context() as outer, m.performance_context() as inner:
            peak(4)
        with contextlib.ExitStack() as first:  # ends before the one that began in it
            early = first.enter_context(m.performance_context())
            last = contextlib.ExitStack()
            late = last.enter_context(m.performance_context())
            peak(1)
        peak(6)
        last.close()
        self.assertEqual([p.stats.peak_memory_usage - live for p in (outer, inner, early, late)], [4 * unit, 4 * unit, unit, 6 * unit])
        self.assertEqual(len(_statistics.watches[0]), 1)

    def test_unused_device(self):
        s = c.MemoryManager(7).get_statistics()
        self.assertEqual((s.total_allocations, s.cache_hit_rate, s.efficiency_score()), (0, 0, 1))
        self.assertEqual(c.MemoryManager(7).cleanup_cache(force=True), 0)
        with self.assertRaisesRegex(OSError, "ta_cuda_trim_to on device 9: "):
            c.MemoryManager(9).cleanup_cache()

    def test_trace(self):
        m = self.manager
        m.configure(enable_stats=True)
        a = [m.allocate_memory(1000), m.allocate_memory(1000), m.allocate_memory(5000, 9)]
        m.free_memory(a[0], 1000)
        m.free_memory(a[2], 5000, 9)
        m.allocate_memory(1000)
        m.allocate_memory(5000)  # on another stream
        out = io.StringIO()
        self.assertEqual(m.dump_allocation_trace(out), 7)
        lines = out.getvalue().splitlines()
        self.assertEqual(lines[0], "Thread,Action,Pointer,Size,Stream")
        self.assertEqual(lines[3], f"1,allocate,{a[2]:#x},5000,9")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.csv")
            m.dump_allocation_trace(path)
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), out.getvalue())
        self.assertEqual(m.analyze_allocation_patterns(), {
            "allocations": 5, "live": 3, "sizes": [(1000, 3), (5000, 2)], "classes": {1024: 3, 8192: 2}, "streams": {"0": 4, "9": 1},
            "reuse": 0.2, "lifetime": 3, "warmup_sizes": [(1000, 2), (5000, 1)],
            "unfreed": [(a[1], 1000, "0"), (a[2] + (1 << 20), 1000, "0"), (a[2] + (2 << 20), 5000, "0")]})
        self.assertEqual(m.analyze_allocation_patterns(top=1)["unfreed"], [(a[1], 1000, "0")])
        m.configure(enable_stats=False)
        for call in (lambda: m.dump_allocation_trace(io.StringIO()), m.analyze_allocation_patterns):
            for _ in range(2):
                with self.assertWarnsRegex(RuntimeWarning, r"^nothing is recorded of device 0: recording is off\. configure\(enable_stats=True\)"
                                           " switches it on for what is allocated and freed from then on$") as warned:
                    call()
                self.assertEqual(warned.filename, __file__)  # who asked
        self.assertEqual(m.analyze_allocation_patterns()["lifetime"], None)
        m.configure(enable_stats=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(m.dump_allocation_trace(io.StringIO()), 0)  # nothing has happened, and that is so
        m.configure(enable_stats=False)
        self.assertRaises(TypeError, m.dump_allocation_trace, 5)
        self.assertRaises(TypeError, m.analyze_allocation_patterns, "5")

    def test_missing_function(self):
        with mock.patch.dict(_library._functions, clear=True), mock.patch.dict(_abi.SIGNATURES, {"ta_cuda_later": (None, [])}):
            with self.assertRaisesRegex(NotImplementedError, "no ta_cuda_later"):
                _library.function("ta_cuda_later")


class Frameworks(unittest.TestCase):
    def setUp(self):
        journal()

    def test_names(self):
        self.assertRaises(ValueError, t.enable_cuda, "jax")
        with self.assertRaisesRegex(RuntimeError, "none of torch"):
            t.enable_cuda()

    def test_torch(self):
        for setters in (["set_record_stream_fn", "set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool"],
                        ["set_record_stream_fn", "set_begin_allocate_to_pool_fn", "set_end_allocate_to_pool_fn", "set_release_pool_fn"], []):
            inner = mock.Mock(spec=setters)
            torch = mock.Mock()
            torch.cuda.memory.CUDAPluggableAllocator.return_value.allocator.return_value = inner
            with mock.patch.dict(sys.modules, {"torch": torch}), mock.patch("tieralloc.frameworks._torch_allocator", None):
                self.assertEqual(t.enable_cuda(), ("torch",))
                t.enable_cuda("torch")  # once is enough
            make, change = torch.cuda.memory.CUDAPluggableAllocator, torch.cuda.memory.change_current_allocator
            make.assert_called_once_with(mock.ANY, "ta_cuda_malloc", "ta_cuda_free")
            change.assert_called_once_with(make.return_value)
            path = make.call_args[0][0]
            self.assertTrue(hasattr(ctypes.CDLL(path), "fake_journal"), path)
            for name in setters:
                self.assertTrue(getattr(inner, name).call_args[0][0] > 4096)
        # The pool's identity is a std::pair, by value: as two words.
        begin = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
        begin(_library.address("ta_cuda_pool_begin"))(1, 2, 3, 4096)
        self.assertEqual(journal(), ["pool 1 2 3 1"])

    def test_cupy(self):
        class OutOfMemoryError(MemoryError):
            pass

        cupy = mock.Mock()
        cupy.cuda.memory.OutOfMemoryError = OutOfMemoryError
        with mock.patch.dict(sys.modules, {"cupy": cupy, "cupy.cuda": cupy.cuda}):
            t.enable_cuda("cupy")
            malloc, free = cupy.cuda.memory.PythonFunctionAllocator.call_args[0]
            cupy.cuda.set_allocator.assert_called_once_with(cupy.cuda.memory.PythonFunctionAllocator.return_value.malloc)
            cupy.cuda.get_current_stream.return_value = types.SimpleNamespace(ptr=11)
            address = malloc(1000, 2)
            cupy.cuda.get_current_stream.return_value = types.SimpleNamespace(ptr=12)
            free(address, 2)
            self.assertEqual(journal(), ["malloc 1000 2 11", "free 1000 2 11"])
            self.assertRaises(OutOfMemoryError, malloc, 1 << 31, 0)

    def test_numba(self):
        cuda, driver, process = mock.Mock(), mock.Mock(spec=["USE_NV_BINDING"], USE_NV_BINDING=False), mock.Mock()
        cuda.GetIpcHandleMixin = type("Mixin", (), {})
        cuda.HostOnlyCUDAMemoryManager = type("Host", (), {"__init__": lambda self, context: self.__dict__.update(context=context, allocations={})})

        def give(address, size):
            address._obj.value = 0x7000
            return 2 if size.value > 4096 else 0

        process.cuMemAlloc_v2.side_effect = give
        process.cuMemGetInfo_v2.return_value = 0
        process.cuMemFree_v2.return_value = 0
        modules = {"numba": mock.Mock(cuda=cuda), "numba.cuda": cuda, "numba.cuda.cudadrv": mock.Mock(driver=driver), "numba.cuda.cudadrv.driver": driver}
        real = ctypes.CDLL
        with mock.patch.dict(sys.modules, modules), \
                mock.patch("ctypes.CDLL", lambda name, *a, **k: process if name == "libcuda.so.1" else real(name, *a, **k)):
            t.enable_cuda("numba")
            manager = cuda.set_memory_manager.call_args[0][0]("context")
            self.assertEqual(manager.interface_version, 1)
            manager.initialize()
            manager.memalloc(100)
            context, handle, size = cuda.MemoryPointer.call_args[0]
            self.assertEqual((context, handle.value, size), ("context", 0x7000, 100))
            free = cuda.MemoryPointer.call_args[1]["finalizer"]
            free()
            free()
            self.assertEqual([call[0][0].value for call in process.cuMemFree_v2.call_args_list], [0x7000])
            manager.memalloc(100)
            manager.allocations.clear()  # the context was reset
            cuda.MemoryPointer.call_args[1]["finalizer"]()
            self.assertEqual(process.cuMemFree_v2.call_count, 1)
            self.assertRaises(MemoryError, manager.memalloc, 5000)
            manager.get_memory_info()
            cuda.MemoryInfo.assert_called_once_with(free=0, total=0)


class Fresh(unittest.TestCase):
    def test_signatures(self):
        """All functions that are there have their types set."""
        for name, (result, arguments) in _abi.SIGNATURES.items():
            if hasattr(ctypes.CDLL(None), name):
                self.assertEqual((_library.function(name).restype, _library.function(name).argtypes), (result, arguments), name)


unittest.main()
