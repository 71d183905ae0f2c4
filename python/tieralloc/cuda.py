"""Device memory by tieralloc, by hand.

    from tieralloc import cuda
    manager = cuda.get_memory_manager()
    manager.configure(cache_sizes={"stream_local": 200}, warmup_sizes=[(4096, 50)])
    with manager.performance_context() as perf:
        ...
    print(perf.stats.cache_hit_rate, perf.stats.efficiency_score())

What a program gets by cudaMalloc is served without any of this, where the library is
preloaded. The functions here are for work in the order of a stream: a block is for the
stream that it was allocated for, and once freed it may be reused on that stream at once. One
that was used on other streams, too, needs record_stream.

The library is in the process where it is preloaded, or after tieralloc.load(path). The driver is
loaded and initialised when the first block is asked for, unless the program has done so.

A stream is a number (0: the legacy default stream), or an object of PyTorch, CuPy or
numba. Controls that the library in this process does not have raise NotImplementedError.
Arguments that are not accepted raise TypeError or ValueError, and nothing is done.
"""

import collections.abc
import contextlib
import csv
import ctypes
import dataclasses
import errno
import gc
import io
import math
import os
import sys
import threading
import time
import warnings

from . import _driver, _library
from ._abi import DeviceStatistics
from ._arguments import (
    MOST_BYTES, MOST_COUNT, MOST_SETTING, address_number, fraction, real, stream_handle, switch,
    warmup_pairs, whole, wholes,
)
from ._patterns import patterns
from ._regions import region, sleep, wake
from ._statistics import Performance, Statistics, Watch, watches

__all__ = [
    "MemoryManager", "Statistics", "configure_memory_manager", "get_memory_manager", "region", "sleep", "wake",
]

_NO_LIMIT = 1 << 63

_lock = threading.RLock()
_managers = {}


def turned_off():
    """The setting that keeps the library from serving devices, or ""."""
    try:
        ctypes.set_errno(0)
        if _library.function("ta_cuda_trace")(0, ctypes.create_string_buffer(1), 1) or ctypes.get_errno() != errno.ENODEV:
            return ""
    except NotImplementedError:
        return ""
    found = [f"{name}={value}" for name, value in (("TA_DISABLE", "1"), ("TA_CUDA", "0")) if os.environ.get(name) == value]
    return found[0] if found else "TA_DISABLE=1 or TA_CUDA=0"


class MemoryManager:
    """The device heap of one device, by hand. get_memory_manager makes one."""

    def __init__(self, device=0):
        self.device = whole(device, "device", 0, MOST_COUNT)
        _library.require()
        self._warmup = []
        self._warms = True  # GENESIS_CUDA_WARMUP_ENABLED: whether sizes are warmed as soon as they are known

    # Blocks

    def allocate_memory(self, size, stream=0):
        """The address of a new block for a stream.

        MemoryError where there is no room, OSError without the device, RuntimeError without a driver.
        """
        size = whole(size, "size")
        if size == 0:
            return 0
        malloc, stream = _library.function("ta_cuda_malloc"), stream_handle(stream)
        address = malloc(size, self.device, stream)
        if not address and self._initialized():
            address = malloc(size, self.device, stream)
        if not address:
            self._fail(f"no {size} bytes")
        return address

    def allocate_batch(self, sizes, stream=0):
        """The addresses of new blocks, all or none."""
        sizes = wholes(sizes, "size", 1, MOST_BYTES)
        out = (ctypes.c_void_p * len(sizes))()
        self._call("ta_cuda_malloc_batch", stream_handle(stream), (ctypes.c_size_t * len(sizes))(*sizes), out, len(sizes))
        return list(out)

    def allocate_async(self, size, stream=0):
        """A concurrent.futures.Future of a new block's address (tieralloc.aio)."""
        from . import _futures  # its thread is for programs that allocate so
        return _futures.allocate_async(self, size, stream)

    def free_memory(self, address, size=0, stream=0):
        """Give a block back, after what the stream has been given so far. Its size need not be known.

        ValueError for the address of no block that is in use; nothing is freed then. OSError where the
        device has failed, or is not served.
        """
        address, size, stream = address_number(address), whole(size, "size"), stream_handle(stream)
        if address:
            ctypes.set_errno(0)
            _library.function("ta_cuda_free")(address, size, self.device, stream)
            error = ctypes.get_errno()
            if error == errno.EINVAL:
                raise ValueError(f"free of {address:#x} on device {self.device}: expected the address of a block that is in use:"
                                 " this one was freed before, begins within a block, or is not the library's")
            if error:
                self._fail(f"no free of {address:#x}")

    def record_stream(self, address, stream):
        """Have a block's reuse wait for what the stream has been given when it is freed.

        ValueError for an address that was freed, or lies within a block.
        """
        address, stream = address_number(address), stream_handle(stream)
        ctypes.set_errno(0)
        _library.function("ta_cuda_record_stream")(address, stream)
        error = ctypes.get_errno()
        if error == errno.EINVAL:
            raise ValueError(f"record_stream of {address:#x} on device {self.device}: expected the address of a block that is in use:"
                             " this one was freed before, or begins within a block")
        if error:
            self._fail(f"no record of {address:#x}")

    # The cache

    def warmup_cache(self, sizes, counts):
        """Have counts[i] free blocks of sizes[i] ready."""
        sizes, counts = wholes(sizes, "size", 1, MOST_BYTES), wholes(counts, "count", 1, MOST_COUNT)
        if len(sizes) != len(counts):
            raise ValueError(f"{len(sizes)} sizes and {len(counts)} counts")
        n = len(sizes)
        self._call("ta_cuda_warmup", (ctypes.c_size_t * n)(*sizes), (ctypes.c_int * n)(*counts), n)

    def cleanup_cache(self, threshold=0.9, force=False):
        """Give free memory back to the driver; return how many bytes that were.

        So much is given back that what the library holds of the device, in all of its
        contexts, is at most threshold of the hard cap, or of the device's memory where
        there is none: as far as whole segments are free. With force: all.
        """
        threshold = fraction(threshold, "threshold")
        device = self._figures()
        keep = 0
        if not force and device.bytes_device:
            most = int(threshold * (device.capacity_hard or device.bytes_device))
            keep = max(0, device.cached - max(0, device.bytes_current - most))
            if keep == device.cached:
                return 0
        return self._released(lambda: self._cleanup("ta_cuda_trim_to", keep))

    def expand_cache_size(self, factor):
        """Multiply what the cache may hold: blocks for each stream, and the limits that there are."""
        factor = real(factor, "factor", lambda number: 0 < number < math.inf, "a number above 0")
        now = self._figures()
        limits = {"stream_local": now.stream_local, "global": now.global_limit, "cache_limit": now.cache_limit}
        expanded = [(key, math.ceil(min(limit * factor, 2.0 * MOST_SETTING))) for key, limit in limits.items() if limit < _NO_LIMIT]
        for key, value in expanded:
            if value > MOST_SETTING:
                raise ValueError(f"factor {factor!r}: expected one that leaves {key} at most {MOST_SETTING}")
        for key, value in expanded:
            self._configure(key, value)

    def enable_aggressive_coalescing(self, on=True):
        """Merge each freed block with its neighbours at once, rather than keep it as it is."""
        self._configure("coalescing", switch(on, "on"))

    def coalesce_free_blocks(self):
        """Merge all free blocks that are neighbours; return how many mergers that were."""
        before = self._figures().merges
        self._cleanup("ta_cuda_coalesce")
        return self._figures().merges - before

    def garbage_collect(self):
        """Collect Python's garbage, merge, and give all free memory back; return how many bytes that were."""
        gc.collect()
        return self._released(lambda: (self.coalesce_free_blocks(), self._cleanup("ta_cuda_trim_to", 0)))

    # Settings

    def configure(self, segment_size=None, cache_sizes=None, warmup_sizes=None, enable_warmup=None, enable_stats=None,
                  allocation_strategy=None, coalescing_threshold=None):
        """Change settings; what is None stays as it is. Nothing is changed if one of them is wrong.

        segment_size          bytes taken from the driver at once, in steps of 2 MiB
        cache_sizes           free blocks kept: {"stream_local": for each stream, "global": for all, as far
                              as segments of one such block can be given back}
        warmup_sizes          pairs of a size and how many blocks of it to have ready, at once
        enable_warmup         False: warmup_sizes are only remembered; True: had ready now
        enable_stats          whether allocations are recorded, for dump_allocation_trace and
                              analyze_allocation_patterns
        allocation_strategy   "best_fit" or "first_fit"
        coalescing_threshold  fragmentation, 0 to 1, above which free blocks are merged
        """
        settings = self._checked(segment_size, cache_sizes, enable_stats, allocation_strategy, coalescing_threshold)
        if warmup_sizes is not None:
            warmup_sizes = warmup_pairs(warmup_sizes)
        if enable_warmup is not None:
            enable_warmup = switch(enable_warmup, "enable_warmup")
        for key, value in settings:
            self._configure(key, value)
        if warmup_sizes is not None:
            self._warmup = warmup_sizes
        if self._warmup and (enable_warmup or enable_warmup is None and warmup_sizes is not None and self._warms):
            self.warmup_cache(*zip(*self._warmup))

    @staticmethod
    def _checked(segment_size, cache_sizes, enable_stats, allocation_strategy, coalescing_threshold):
        """The settings as the library has them."""
        settings = []
        if segment_size is not None:
            expected = "a whole number of bytes from 2 MiB to 64 GiB, in steps of 2 MiB"
            size = whole(segment_size, "segment_size", 2 << 20, 64 << 30, expected)
            if size % (2 << 20):
                raise ValueError(f"segment_size {segment_size!r}: expected {expected}")
            settings.append(("segment_size", size))
        if cache_sizes is not None and not isinstance(cache_sizes, collections.abc.Mapping):
            raise TypeError(f"cache_sizes {cache_sizes!r}: expected a dict such as {{'stream_local': 100, 'global': 500}}")
        for name, blocks in (cache_sizes or {}).items():
            if name not in ("stream_local", "global"):
                raise ValueError(f"cache_sizes has {name!r}: expected 'stream_local' or 'global'")
            settings.append((name, whole(blocks, f"{name} in cache_sizes", 0, MOST_SETTING)))
        if enable_stats is not None:
            settings.append(("trace", switch(enable_stats, "enable_stats")))
        if allocation_strategy is not None:
            if allocation_strategy not in ("best_fit", "first_fit"):
                raise ValueError(f"allocation_strategy {allocation_strategy!r}: expected 'best_fit' or 'first_fit'")
            settings.append(("strategy", int(allocation_strategy == "first_fit")))
        if coalescing_threshold is not None:
            settings.append(("coalescing_threshold", fraction(coalescing_threshold, "coalescing_threshold")))
        return settings

    # Figures

    def get_statistics(self):
        """The device's Statistics; all 0 before it is used."""
        with _lock:
            figures = self._figures()
            Watch.tell(self.device, figures.bytes_peak)
            return Statistics.of(figures, watches[self.device][0].peak, self.device)

    @contextlib.contextmanager
    def performance_context(self):
        """A with block whose value gets, at its end, .stats of what happened inside, and .seconds.

        Blocks nest, and each has its own peak. The library starts its one peak again for
        each, so bytes_peak in the report is that of the last one.
        """
        performance, watch = Performance(), Watch()
        with _lock:
            before = self.get_statistics()
            with contextlib.suppress(NotImplementedError):
                self._configure("peak", 0)  # the peak is then one of the block
            watches[self.device].append(watch)
        start = time.perf_counter()
        try:
            yield performance
        finally:
            performance.seconds = time.perf_counter() - start
            with _lock:
                figures = self.get_statistics()
                watches[self.device].remove(watch)
            performance.stats = dataclasses.replace(figures.since(before), peak_memory_usage=watch.peak)

    def dump_allocation_trace(self, file=None):
        """Write the recorded allocations as CSV to a path, a file, or standard output; return how many.

        The columns are those of RMM's replay benchmark. Recording is switched on by configure(enable_stats=True),
        at any time, for what is allocated and freed from then on. RuntimeWarning where it is off and there is nothing.
        """
        if not (file is None or isinstance(file, (str, os.PathLike)) or hasattr(file, "write")):
            raise TypeError(f"file {file!r}: expected a path, a file, or None")
        text = self._trace()
        if isinstance(file, (str, os.PathLike)):
            with open(file, "w", encoding="ascii") as out:
                out.write(text)
        else:
            (sys.stdout if file is None else file).write(text)
        return max(0, text.count("\n") - 1)

    def analyze_allocation_patterns(self, top=10):
        """What the recorded allocations have in common, as a dict.

        sizes: the most frequent ones, (bytes, how often); classes: how many by the power of
        two that they are below; reuse: the part of allocations whose size was freed on the
        same stream before; lifetime: the median number of events between an allocation and
        its free; live: blocks not freed; streams: how many on each; warmup_sizes: what to
        give to configure, so that these allocations would have met a warm cache; unfreed: the
        first of the live blocks, (address, bytes, stream), as many as top says. RuntimeWarning where
        recording is off and there is nothing.
        """
        return patterns(csv.DictReader(io.StringIO(self._trace())), whole(top, "top"))

    # Calls

    def _trace(self):
        """The recorded allocations, as ta_cuda_trace has them."""
        text = _library.text_of(lambda buffer, room: _library.function("ta_cuda_trace")(self.device, buffer, room)).decode()
        if text.count("\n") < 2 and not self._figures().recording:
            warnings.warn(f"nothing is recorded of device {self.device}: recording is off. configure(enable_stats=True) switches it on"
                          " for what is allocated and freed from then on", RuntimeWarning, stacklevel=3)
        return text

    def _figures(self):
        """What the library has counted on this device; zeros where it does not serve it."""
        figures = DeviceStatistics(size=ctypes.sizeof(DeviceStatistics))
        _library.function("ta_cuda_get_stats")(self.device, ctypes.byref(figures))
        return figures

    def _call(self, name, *arguments):
        """Call a function that returns 0, or -1 and errno."""
        function = _library.function(name)
        if function(self.device, *arguments) != 0 and not (self._initialized() and function(self.device, *arguments) == 0):
            self._fail(name)

    @staticmethod
    def _initialized():
        """Initialise the driver where the last call may have found none; whether that was done.

        RuntimeError where there is none, or it does not start.
        """
        error = ctypes.get_errno()
        done = error == errno.ENODEV and not turned_off()
        if done:
            _driver.initialize()
        ctypes.set_errno(error)
        return done

    def _fail(self, what):
        """Raise what errno says."""
        error = ctypes.get_errno()
        text = f"{what} on device {self.device}: {os.strerror(error)}" + self._because()
        raise MemoryError(text) if error == errno.ENOMEM else OSError(error, text)

    def _cleanup(self, name, *arguments):
        """_call, for a device on which there may be nothing yet."""
        if _library.function(name)(self.device, *arguments) != 0 and ctypes.get_errno() != errno.ENODEV:
            self._fail(name)

    @staticmethod
    def _because():
        """What explains a refusal, in brackets, or ""."""
        off = turned_off()
        return f" ({off} is set)" if off else ""

    def _configure(self, key, value):
        if _library.function("ta_cuda_configure")(self.device, key.encode(), float(value)) != 0:
            why = os.strerror(ctypes.get_errno()) + self._because()
            raise NotImplementedError(f"the library does not take {key} = {value} for device {self.device}: {why}")

    def _released(self, work):
        before = self._figures().bytes_released
        work()
        return self._figures().bytes_released - before


def get_memory_manager(device=0):
    """The MemoryManager of a device, the same one each time."""
    device = whole(device, "device", 0, MOST_COUNT)
    with _lock:
        if device not in _managers:
            _managers[device] = manager = MemoryManager(device)
            if any(name.startswith("GENESIS_CUDA_") for name in os.environ):
                from . import _genesis_variables
                _genesis_variables.apply(manager)
        return _managers[device]


def configure_memory_manager(settings, device=0):
    """MemoryManager.configure with a dict."""
    get_memory_manager(device).configure(**settings)
