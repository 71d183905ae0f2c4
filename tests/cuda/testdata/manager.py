"""The Python controls on the library itself, with the driver loaded by hand."""
import ctypes
import io

MIB = 1 << 20

cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
assert cuda.cuInit(0) == 0

import tieralloc_shim as t


def refused(error, call, *args, **kwargs):
    """The call must be refused, with nothing changed."""
    before = m.get_statistics().device
    try:
        call(*args, **kwargs)
    except error:
        assert m.get_statistics().device == before, (before, m.get_statistics().device)
    else:
        raise AssertionError(f"{call.__name__} {args} {kwargs} was accepted")


# Before a device is used its settings are not in the report, and hold all the same.
second = t.get_memory_manager(1)
second.configure(cache_sizes={"stream_local": 30, "global": 5}, segment_size=4 * MIB)
second.expand_cache_size(2)
second.expand_cache_size(2)
second.free_memory(second.allocate_memory(1000))
used = second.get_statistics().device
assert (used["stream_local"], used["global_limit"], used["segment_size"]) == (120, 20, 4 * MIB), used
second.expand_cache_size(0.5)
used = second.get_statistics().device
assert (used["stream_local"], used["global_limit"]) == (60, 10), used

m = t.get_memory_manager()
m.free_memory(m.allocate_memory(1000))  # before anything is recorded
m.configure(enable_stats=True, coalescing_threshold=1)
a, b = m.allocate_memory(5000), m.allocate_memory(3 << 20)
m.free_memory(a)
c = m.allocate_memory(5000)
assert c == a
m.configure(enable_stats=False)
m.free_memory(b)
out = io.StringIO()
assert m.dump_allocation_trace(out) == 4
lines = [line.split(",")[1:] for line in out.getvalue().splitlines()]
assert lines == [["Action", "Pointer", "Size", "Stream"], ["allocate", hex(a), "5000", "0x0"],
                 ["allocate", hex(b), str(3 << 20), "0x0"], ["free", hex(a), "5000", "0x0"],
                 ["allocate", hex(c), "5000", "0x0"]], lines
found = m.analyze_allocation_patterns()
assert (found["allocations"], found["live"], found["reuse"]) == (3, 2, 1 / 3), found
assert found["warmup_sizes"] == [(5000, 1), (3 << 20, 1)], found
m.configure(warmup_sizes=found["warmup_sizes"])

# What is too large for the C functions never reaches them cut to size, and a wrong setting
# leaves the right ones beside it alone.
refused(ValueError, m.allocate_memory, 2**64 + 4096)
refused(ValueError, m.allocate_batch, [2**64 + 4096])
refused(ValueError, m.warmup_cache, [4096], [2**32 + 1])
refused(ValueError, t.get_memory_manager, 2**32)
for wrong in ({"cache_sizes": {"stream_local": 2**63}}, {"cache_sizes": {"global": 2**53 + 1}}, {"coalescing_threshold": 1.001},
              {"warmup_sizes": [(4096, 2**31)]}):
    refused(ValueError, m.configure, **{"segment_size": 8 * MIB, "cache_sizes": {"stream_local": 7}, **wrong})
refused(ValueError, m.expand_cache_size, 1e17)
m.configure(segment_size=8 * MIB, cache_sizes={"stream_local": 2**53, "global": 2**53}, coalescing_threshold=0)
m.configure(segment_size=20 * MIB, cache_sizes={"stream_local": 100}, coalescing_threshold=1.0, allocation_strategy="best_fit")

# Each of nested contexts has its own peak.
live = m.get_statistics().live_bytes
with m.performance_context() as outer:
    m.free_memory(m.allocate_memory(64 * MIB))
    with m.performance_context() as inner:
        m.free_memory(m.allocate_memory(16 * MIB))
peaks = [p.stats.peak_memory_usage - live for p in (outer, inner)]
assert peaks == [64 * MIB, 16 * MIB], peaks

# A device's cache is in all its contexts: so is what cleanup_cache gives back.
m.garbage_collect()
other, blocks = ctypes.c_void_p(), [ctypes.c_uint64() for _ in range(8)]
assert cuda.cuCtxCreate_v2(ctypes.byref(other), 0, 0) == 0
for block in blocks:
    assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(8 * MIB)) == 0
for block in blocks:
    assert cuda.cuMemFree_v2(block) == 0
m.warmup_cache([8 * MIB], [8])
held = m.get_statistics()
assert held.cached_bytes >= 128 * MIB, held.cached_bytes
room = held.device["bytes_device"]
now = held.device["tiers"]["fast"]["bytes_current"]
assert m.cleanup_cache(threshold=(now + 1) / room) == 0
given = m.cleanup_cache(threshold=(now - 96 * MIB) / room)
after = m.get_statistics()
assert 96 * MIB <= given < 128 * MIB and after.cached_bytes == held.cached_bytes - given, (given, held, after)
assert after.device["tiers"]["fast"]["bytes_current"] == now - given
print("ok")
