"""Futures of addresses and the pool on the library itself, with the driver loaded by hand."""
import concurrent.futures
import ctypes
import gc
import os
import threading

MIB = 1 << 20

cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
assert cuda.cuInit(0) == 0

import tieralloc_shim as t
from tieralloc import aio as a

LONG = 60  # seconds after which what hangs is given up


context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0


def stream():
    handle = ctypes.c_void_p()
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(handle), 1) == 0
    return handle


m = t.get_memory_manager()
m.free_memory(m.allocate_memory(1000))
m.garbage_collect()
start = m.get_statistics()

# A pool's memory is the process's from its start to its end, and blocks are cut from it.
pool = a.AsyncMemoryPool(64 * MIB)
made = m.get_statistics()
assert made.reserved_bytes == start.reserved_bytes + 64 * MIB, (start, made)
s = stream()
addresses = [f.result(LONG) for f in [pool.allocate_async(8 * MIB, s) for _ in range(8)]]
used = m.get_statistics()
assert used.reserved_bytes == made.reserved_bytes and used.live_bytes == start.live_bytes + 64 * MIB, (made, used)
assert sorted(b - min(addresses) for b in addresses) == [i * 8 * MIB for i in range(8)], addresses
beyond = pool.allocate_async(8 * MIB, s).result(LONG)
assert m.get_statistics().reserved_bytes > used.reserved_bytes  # a reserve, no limit
for block in addresses + [beyond]:
    m.free_memory(block, stream=s)
assert cuda.cuStreamSynchronize(s) == 0
m.coalesce_free_blocks()
pool.close()
m.garbage_collect()
assert m.get_statistics().reserved_bytes == start.reserved_bytes, (start, m.get_statistics())
with a.AsyncMemoryPool(32 * MIB):
    assert m.get_statistics().reserved_bytes == start.reserved_bytes + 32 * MIB
assert m.get_statistics().reserved_bytes == start.reserved_bytes, (start, m.get_statistics())

# A pool that there is no room for leaves nothing behind.
try:
    a.AsyncMemoryPool(1 << 50)
except MemoryError as error:
    assert "device 0" in str(error), error
else:
    raise AssertionError("a pool of a PiB was had")
assert m.get_statistics().reserved_bytes == start.reserved_bytes

# Ten thousand requests of eight threads, a third of them cancelled, a third never fetched.
counts = []


def ask(k):
    mine, had = stream(), 0
    for i in range(1250):
        future = m.allocate_async(1 + (i * 7919 + k) % (2 * MIB), mine)
        if i % 3 == 0:
            future.cancel()
        elif i % 3 == 1:
            m.free_memory(future.result(LONG), stream=mine)
            had += 1
    m.allocate_async(0).result(LONG)
    assert cuda.cuStreamSynchronize(mine) == 0
    assert cuda.cuStreamDestroy_v2(mine) == 0
    counts.append(had)


threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
with m.performance_context() as perf:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    m.allocate_async(0).result(LONG)
    gc.collect()
assert len(counts) == 8 and sum(counts) <= perf.stats.total_allocations <= 10000, (counts, perf)
assert perf.stats.total_freed == perf.stats.total_allocations, perf
assert perf.stats.live_bytes == start.live_bytes, (start.live_bytes, perf)

# The stream of a future that nobody fetched may have ended before.
gone = stream()
future = m.allocate_async(40 * MIB, gone)
concurrent.futures.wait([future])
assert cuda.cuStreamDestroy_v2(gone) == 0
del future
gc.collect()
assert m.get_statistics().live_bytes == start.live_bytes

# Errors come in the future, and the thread goes on.
held = m.allocate_async(1 << 50)
assert isinstance(held.exception(LONG), MemoryError), held
assert m.allocate_async(1000).result(LONG)

# In a forked child there is no driver: the future says so, soon.
pid = os.fork()
if pid == 0:
    error = m.allocate_async(1000).exception(LONG)
    os._exit(0 if isinstance(error, RuntimeError) else 1)
assert os.waitpid(pid, 0)[1] == 0
m.allocate_async(1000)  # one that the end of the process finds
print("ok")
