"""Device memory by tieralloc, by hand.

    import tieralloc_shim as t
    manager = t.get_memory_manager()
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

import collections
import collections.abc
import contextlib
import csv
import ctypes
import dataclasses
import errno
import gc
import io
import itertools
import json
import math
import numbers
import operator
import os
import sys
import threading
import time
import warnings

from tieralloc import _driver, _library

__all__ = ["MemoryManager", "Statistics", "configure_memory_manager", "get_memory_manager"]

_NO_LIMIT = 1 << 63

# The largest numbers that reach the library whole: as its ssize_t, int and pointer, and as
# the double that settings are given as. ctypes would cut off what is above without a word.
_MOST_BYTES, _MOST_COUNT, _MOST_ADDRESS, _MOST_SETTING = (1 << 63) - 1, (1 << 31) - 1, (1 << 64) - 1, 1 << 53

_pointer, _size, _int, _word = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64
_sizes, _ints, _pointers = ctypes.POINTER(_size), ctypes.POINTER(_int), ctypes.POINTER(_pointer)

# The C functions (tieralloc.h): result, arguments.
_SIGNATURES = {
    "ta_cuda_malloc": (_pointer, [ctypes.c_ssize_t, _int, _pointer]),
    "ta_cuda_free": (None, [_pointer, ctypes.c_ssize_t, _int, _pointer]),
    "ta_cuda_torch_malloc": (_pointer, [ctypes.c_ssize_t, _int, _pointer]),
    "ta_cuda_record_stream": (None, [_pointer, _pointer]),
    "ta_cuda_malloc_batch": (_int, [_int, _pointer, _sizes, _pointers, _int]),
    "ta_cuda_warmup": (_int, [_int, _sizes, _ints, _int]),
    "ta_cuda_trim_to": (_int, [_int, _size]),
    "ta_cuda_coalesce": (_int, [_int]),
    "ta_cuda_configure": (_int, [_int, ctypes.c_char_p, ctypes.c_double]),
    "ta_cuda_get_stats": (_int, [_int, _pointer]),
    "ta_cuda_trace": (_size, [_int, _pointer, _size]),
    "ta_cuda_pool_begin": (None, [_int, _word, _word, _pointer]),
    "ta_cuda_pool_end": (None, [_int, _word, _word]),
    "ta_cuda_pool_release": (None, [_int, _word, _word]),
    "ta_stats_json": (_size, [_pointer, _size]),
    "ta_set_hint": (_int, [_int]),
}

_lock = threading.RLock()
_managers = {}
_watches = {}  # for each device, the _Watch of the whole process and of each performance_context that is open


_library.declare(_SIGNATURES)
_function = _library.function


def _require():
    """Raise RuntimeError where the library is not in this process."""
    _function("ta_cuda_malloc")


def _address(name):
    """A function's address, or 0."""
    try:
        return ctypes.cast(_function(name), _pointer).value
    except NotImplementedError:
        return 0


def _off():
    """The setting that keeps the library from serving devices, or ""."""
    try:
        ctypes.set_errno(0)
        if _function("ta_cuda_trace")(0, ctypes.create_string_buffer(1), 1) or ctypes.get_errno() != errno.ENODEV:
            return ""
    except NotImplementedError:
        return ""
    found = [f"{name}={value}" for name, value in (("TA_DISABLE", "1"), ("TA_CUDA", "0")) if os.environ.get(name) == value]
    return found[0] if found else "TA_DISABLE=1 or TA_CUDA=0"


class _Figures(ctypes.Structure):
    """ta_cuda_stats of tieralloc.h."""

    _fields_ = [("size", _size)] + [(name, _word) for name in (
        "alloc_calls", "free_calls", "hits_local", "hits_global", "hits_split", "misses", "foreign_calls", "refused", "frees_invalid",
        "blocks_live", "bytes_live", "bytes_peak", "bytes_reserved", "bytes_cached_local", "bytes_cached_global", "largest_free",
        "segments", "splits", "merges", "blocks_warmed", "bytes_released", "bytes_device", "bytes_current", "capacity_hard",
        "segment_size", "cache_limit", "stream_local", "global_limit", "recording")]

    @property
    def cached(self):
        return self.bytes_cached_local + self.bytes_cached_global


def _stream(stream):
    """A stream's handle."""
    found = stream
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, numba
        found = getattr(found, name, found)
    found = getattr(found, "value", found)  # of a ctypes object
    if found is None:
        return 0
    expected = f"stream {stream!r}: expected a number from 0 to {_MOST_ADDRESS}, or a stream of PyTorch, CuPy or numba"
    if isinstance(found, (bool, str, bytes)) or isinstance(found, numbers.Number) and not isinstance(found, numbers.Integral):
        raise TypeError(expected)
    try:
        number = int(found)
    except (TypeError, ValueError):
        raise TypeError(expected) from None
    if not 0 <= number <= _MOST_ADDRESS:
        raise ValueError(expected)
    return number


def _whole(value, what, least=0, most=_MOST_BYTES, expected=""):
    """A whole number; TypeError for what is no number, ValueError for one that is not accepted."""
    expected = f"{what} {value!r}: expected " + (expected or f"a whole number from {least} to {most}")
    try:
        if isinstance(value, bool):
            raise TypeError
        number = int(value) if isinstance(value, float) else operator.index(value)
    except TypeError:
        raise TypeError(expected) from None
    except (ValueError, OverflowError):  # not a number, infinity
        raise ValueError(expected) from None
    if number != value or not least <= number <= most:
        raise ValueError(expected)
    return number


def _wholes(values, what, least, most):
    """A list of whole numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise TypeError(f"{what}s {values!r}: expected a list of whole numbers")
    return [_whole(value, what, least, most) for value in values]


def _real(value, what, holds, expected):
    """A number that holds() accepts."""
    expected = f"{what} {value!r}: expected {expected}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(expected)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not holds(number):
        raise ValueError(expected)
    return number


def _fraction(value, what):
    return _real(value, what, lambda number: 0 <= number <= 1, "a number from 0 to 1")


def _switch(value, what):
    """True or False, as 1 or 0."""
    if isinstance(value, numbers.Integral) and value in (0, 1):
        return int(value)
    raise TypeError(f"{what} {value!r}: expected True or False")


def _block(block):
    """A block's address; None counts as 0."""
    return 0 if block is None else _whole(block, "address", 0, _MOST_ADDRESS)


def _warmups(pairs):
    """Pairs of a size and a count."""
    expected = f"warmup_sizes {pairs!r}: expected pairs of a size and a count, such as [(4096, 50)]"
    try:
        pairs = [(size, count) for size, count in pairs]
    except (TypeError, ValueError):
        raise TypeError(expected) from None
    return [(_whole(size, "size in warmup_sizes", 1), _whole(count, "count in warmup_sizes", 1, _MOST_COUNT)) for size, count in pairs]


def _text(function):
    """What a function like snprintf writes."""
    room = 0
    while True:
        buffer = ctypes.create_string_buffer(room + 1)
        need = function(buffer, room)
        if need < room or need == 0:
            return buffer.raw[:need]
        room = need + 4096  # it may be longer next time


@dataclasses.dataclass
class Statistics:
    """Figures of one device, or what they rose by in a performance_context."""

    total_allocations: int = 0
    total_freed: int = 0
    peak_memory_usage: int = 0  # bytes of live blocks
    cache_hits: int = 0
    cache_misses: int = 0
    stream_hits: int = 0  # the hits, by where the block was found
    global_hits: int = 0
    split_hits: int = 0
    live_bytes: int = 0
    reserved_bytes: int = 0
    cached_bytes: int = 0
    fragmentation_ratio: float = 0.0
    ordinal: int = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def device(self):
        """All that the report says of the device at the moment; {} where it was not used yet."""
        devices = json.loads(_text(_function("ta_stats_json"))).get("devices", []) if self.ordinal is not None else []
        return next((device for device in devices if device["ordinal"] == self.ordinal), {})

    @property
    def cache_hit_rate(self):
        """Hits of those requests that the cache was asked for; 0 without any."""
        asked = self.cache_hits + self.cache_misses
        return self.cache_hits / asked if asked else 0.0

    def efficiency_score(self):
        """Hits of all allocations, those of the driver's own too, 0 to 1; 1 before the first."""
        return min(1.0, self.cache_hits / self.total_allocations) if self.total_allocations else 1.0

    @classmethod
    def _of(cls, figures, peak, ordinal):
        hits, cached = (figures.hits_local, figures.hits_global, figures.hits_split), figures.cached
        return cls(figures.alloc_calls, figures.free_calls, peak, sum(hits), figures.misses, *hits, figures.bytes_live,
                   figures.bytes_reserved, cached, max(0.0, 1 - figures.largest_free / cached) if cached else 0.0, ordinal)

    def _since(self, before):
        """What the counters rose by; the other figures are those at the end."""
        rose = {name: getattr(self, name) - getattr(before, name) for name in (
            "total_allocations", "total_freed", "cache_hits", "cache_misses", "stream_hits", "global_hits", "split_hits")}
        return dataclasses.replace(self, **rose)


@dataclasses.dataclass
class Performance:
    """What a performance_context saw; stats is None inside of it."""

    stats: Statistics = None
    seconds: float = 0.0


class _Watch:
    """The peak of a device since a moment. The library has one peak; whoever starts it again tells all watches first."""

    def __init__(self):
        self.peak = 0

    @staticmethod
    def tell(device, peak):
        for watch in _watches.setdefault(device, [_Watch()]):
            watch.peak = max(watch.peak, peak)


class MemoryManager:
    """The device heap of one device, by hand. get_memory_manager makes one."""

    def __init__(self, device=0):
        self.device = _whole(device, "device", 0, _MOST_COUNT)
        _require()
        self._warmup = []
        self._warms = True  # GENESIS_CUDA_WARMUP_ENABLED: whether sizes are warmed as soon as they are known

    # Blocks

    def allocate_memory(self, size, stream=0):
        """The address of a new block for a stream.

        MemoryError where there is no room, OSError without the device, RuntimeError without a driver.
        """
        size = _whole(size, "size")
        if size == 0:
            return 0
        malloc, stream = _function("ta_cuda_malloc"), _stream(stream)
        address = malloc(size, self.device, stream)
        if not address and self._initialized():
            address = malloc(size, self.device, stream)
        if not address:
            self._fail(f"no {size} bytes")
        return address

    def allocate_batch(self, sizes, stream=0):
        """The addresses of new blocks, all or none."""
        sizes = _wholes(sizes, "size", 1, _MOST_BYTES)
        out = (_pointer * len(sizes))()
        self._call("ta_cuda_malloc_batch", _stream(stream), (_size * len(sizes))(*sizes), out, len(sizes))
        return list(out)

    def allocate_async(self, size, stream=0):
        """A concurrent.futures.Future of a new block's address (tieralloc_async)."""
        import tieralloc_async
        return tieralloc_async.allocate_async(self.device, size, stream)

    def free_memory(self, address, size=0, stream=0):
        """Give a block back, after what the stream has been given so far. Its size need not be known.

        ValueError for the address of no block that is in use; nothing is freed then. OSError where the
        device has failed, or is not served.
        """
        address, size, stream = _block(address), _whole(size, "size"), _stream(stream)
        if address:
            ctypes.set_errno(0)
            _function("ta_cuda_free")(address, size, self.device, stream)
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
        address, stream = _block(address), _stream(stream)
        ctypes.set_errno(0)
        _function("ta_cuda_record_stream")(address, stream)
        error = ctypes.get_errno()
        if error == errno.EINVAL:
            raise ValueError(f"record_stream of {address:#x} on device {self.device}: expected the address of a block that is in use:"
                             " this one was freed before, or begins within a block")
        if error:
            self._fail(f"no record of {address:#x}")

    # The cache

    def warmup_cache(self, sizes, counts):
        """Have counts[i] free blocks of sizes[i] ready."""
        sizes, counts = _wholes(sizes, "size", 1, _MOST_BYTES), _wholes(counts, "count", 1, _MOST_COUNT)
        if len(sizes) != len(counts):
            raise ValueError(f"{len(sizes)} sizes and {len(counts)} counts")
        n = len(sizes)
        self._call("ta_cuda_warmup", (_size * n)(*sizes), (_int * n)(*counts), n)

    def cleanup_cache(self, threshold=0.9, force=False):
        """Give free memory back to the driver; return how many bytes that were.

        So much is given back that what the library holds of the device, in all of its
        contexts, is at most threshold of the hard cap, or of the device's memory where
        there is none: as far as whole segments are free. With force: all.
        """
        threshold = _fraction(threshold, "threshold")
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
        factor = _real(factor, "factor", lambda number: 0 < number < math.inf, "a number above 0")
        now = self._figures()
        limits = {"stream_local": now.stream_local, "global": now.global_limit, "cache_limit": now.cache_limit}
        expanded = [(key, math.ceil(min(limit * factor, 2.0 * _MOST_SETTING))) for key, limit in limits.items() if limit < _NO_LIMIT]
        for key, value in expanded:
            if value > _MOST_SETTING:
                raise ValueError(f"factor {factor!r}: expected one that leaves {key} at most {_MOST_SETTING}")
        for key, value in expanded:
            self._configure(key, value)

    def enable_aggressive_coalescing(self, on=True):
        """Merge each freed block with its neighbours at once, rather than keep it as it is."""
        self._configure("coalescing", _switch(on, "on"))

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
            warmup_sizes = _warmups(warmup_sizes)
        if enable_warmup is not None:
            enable_warmup = _switch(enable_warmup, "enable_warmup")
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
            size = _whole(segment_size, "segment_size", 2 << 20, 64 << 30, expected)
            if size % (2 << 20):
                raise ValueError(f"segment_size {segment_size!r}: expected {expected}")
            settings.append(("segment_size", size))
        if cache_sizes is not None and not isinstance(cache_sizes, collections.abc.Mapping):
            raise TypeError(f"cache_sizes {cache_sizes!r}: expected a dict such as {{'stream_local': 100, 'global': 500}}")
        for name, blocks in (cache_sizes or {}).items():
            if name not in ("stream_local", "global"):
                raise ValueError(f"cache_sizes has {name!r}: expected 'stream_local' or 'global'")
            settings.append((name, _whole(blocks, f"{name} in cache_sizes", 0, _MOST_SETTING)))
        if enable_stats is not None:
            settings.append(("trace", _switch(enable_stats, "enable_stats")))
        if allocation_strategy is not None:
            if allocation_strategy not in ("best_fit", "first_fit"):
                raise ValueError(f"allocation_strategy {allocation_strategy!r}: expected 'best_fit' or 'first_fit'")
            settings.append(("strategy", int(allocation_strategy == "first_fit")))
        if coalescing_threshold is not None:
            settings.append(("coalescing_threshold", _fraction(coalescing_threshold, "coalescing_threshold")))
        return settings

    # Figures

    def get_statistics(self):
        """The device's Statistics; all 0 before it is used."""
        with _lock:
            figures = self._figures()
            _Watch.tell(self.device, figures.bytes_peak)
            return Statistics._of(figures, _watches[self.device][0].peak, self.device)

    @contextlib.contextmanager
    def performance_context(self):
        """A with block whose value gets, at its end, .stats of what happened inside, and .seconds.

        Blocks nest, and each has its own peak. The library starts its one peak again for
        each, so bytes_peak in the report is that of the last one.
        """
        performance, watch = Performance(), _Watch()
        with _lock:
            before = self.get_statistics()
            with contextlib.suppress(NotImplementedError):
                self._configure("peak", 0)  # the peak is then one of the block
            _watches[self.device].append(watch)
        start = time.perf_counter()
        try:
            yield performance
        finally:
            performance.seconds = time.perf_counter() - start
            with _lock:
                figures = self.get_statistics()
                _watches[self.device].remove(watch)
            performance.stats = dataclasses.replace(figures._since(before), peak_memory_usage=watch.peak)

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
        return _patterns(csv.DictReader(io.StringIO(self._trace())), _whole(top, "top"))

    # Calls

    def _trace(self):
        """The recorded allocations, as ta_cuda_trace has them."""
        text = _text(lambda buffer, room: _function("ta_cuda_trace")(self.device, buffer, room)).decode()
        if text.count("\n") < 2 and not self._figures().recording:
            warnings.warn(f"nothing is recorded of device {self.device}: recording is off. configure(enable_stats=True) switches it on"
                          " for what is allocated and freed from then on", RuntimeWarning, stacklevel=3)
        return text

    def _figures(self):
        """What the library has counted on this device; zeros where it does not serve it."""
        figures = _Figures(size=ctypes.sizeof(_Figures))
        _function("ta_cuda_get_stats")(self.device, ctypes.byref(figures))
        return figures

    def _call(self, name, *arguments):
        """Call a function that returns 0, or -1 and errno."""
        function = _function(name)
        if function(self.device, *arguments) != 0 and not (self._initialized() and function(self.device, *arguments) == 0):
            self._fail(name)

    @staticmethod
    def _initialized():
        """Initialise the driver where the last call may have found none; whether that was done.

        RuntimeError where there is none, or it does not start.
        """
        error = ctypes.get_errno()
        done = error == errno.ENODEV and not _off()
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
        if _function(name)(self.device, *arguments) != 0 and ctypes.get_errno() != errno.ENODEV:
            self._fail(name)

    @staticmethod
    def _because():
        """What explains a refusal, in brackets, or ""."""
        off = _off()
        return f" ({off} is set)" if off else ""

    def _configure(self, key, value):
        if _function("ta_cuda_configure")(self.device, key.encode(), float(value)) != 0:
            why = os.strerror(ctypes.get_errno()) + self._because()
            raise NotImplementedError(f"the library does not take {key} = {value} for device {self.device}: {why}")

    def _released(self, work):
        before = self._figures().bytes_released
        work()
        return self._figures().bytes_released - before


def _patterns(events, top):
    """analyze_allocation_patterns of a list of events."""
    sizes, classes, streams = collections.Counter(), collections.Counter(), collections.Counter()
    live, free, lives, most = {}, collections.Counter(), [], collections.Counter()
    now, reused = collections.Counter(), 0
    for i, event in enumerate(events):
        size, stream, pointer = int(event["Size"]), event["Stream"], event["Pointer"]
        if event["Action"] == "allocate":
            sizes[size] += 1
            classes[1 << max(0, size - 1).bit_length()] += 1
            streams[stream] += 1
            if free[size, stream]:
                free[size, stream] -= 1
                reused += 1
            live[pointer] = (i, size, stream)
            now[size] += 1
            most[size] = max(most[size], now[size])
        elif event["Action"] == "free" and pointer in live:
            at, size, stream = live.pop(pointer)
            lives.append(i - at)
            free[size, stream] += 1
            now[size] -= 1
    total = sum(sizes.values())
    common = sizes.most_common(top)
    return {
        "allocations": total, "live": len(live), "sizes": common, "classes": dict(sorted(classes.items())),
        "streams": dict(streams), "reuse": reused / total if total else 0.0,
        "lifetime": sorted(lives)[len(lives) // 2] if lives else None,
        "warmup_sizes": [(size, most[size]) for size, _ in common if size],
        "unfreed": [(int(pointer, 16), size, stream) for pointer, (_, size, stream) in itertools.islice(live.items(), top)],
    }


def get_memory_manager(device=0):
    """The MemoryManager of a device, the same one each time."""
    device = _whole(device, "device", 0, _MOST_COUNT)
    with _lock:
        if device not in _managers:
            _managers[device] = manager = MemoryManager(device)
            if any(name.startswith("GENESIS_CUDA_") for name in os.environ):
                from tieralloc.genesis import _variables
                _variables.apply(manager)
        return _managers[device]


def configure_memory_manager(settings, device=0):
    """MemoryManager.configure with a dict."""
    get_memory_manager(device).configure(**settings)
