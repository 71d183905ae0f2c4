"""Regions that sleep, on a driver whose device memory is the host's."""
import ctypes
import errno

MIB = 1 << 20

cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
assert cuda.cuInit(0) == 0

from tieralloc import cuda as t

m = t.get_memory_manager()


def used():
    cuda.fake_used.restype = ctypes.c_size_t
    return cuda.fake_used(0)


def refused(error, call, *args, code=None, **kwargs):
    try:
        call(*args, **kwargs)
    except error as e:
        assert code is None or e.errno == code, e
    else:
        raise AssertionError(f"{call.__name__} {args} {kwargs} was accepted")


def inside(name, size):
    with t.region(name):
        return m.allocate_memory(size)


outside = m.allocate_memory(30 * MIB)
before = used()
weights = [inside("weights", n) for n in (5000, 3 * MIB, 60 * MIB)]
cache = inside("kv", 50 * MIB)
for i, (p, n) in enumerate(zip(weights, (5000, 3 * MIB, 60 * MIB))):
    ctypes.memset(p, i + 1, n)
ctypes.memset(outside, 9, 30 * MIB)
all_used = used()

for _ in range(3):
    t.sleep("weights")
    t.sleep("kv", keep=False)
    t.sleep("kv")
    assert used() == before, (used(), before)
    refused(MemoryError, inside, "kv", 5000)
    big = m.allocate_memory(950 * MIB)
    refused(MemoryError, t.wake, "weights")
    m.free_memory(big)
    t.wake("kv")
    t.wake("weights")
    assert used() == all_used, (used(), all_used)
    for i, (p, n) in enumerate(zip(weights, (5000, 3 * MIB, 60 * MIB))):
        assert ctypes.string_at(p, n) == bytes([i + 1]) * n
    ctypes.memset(cache, 7, 50 * MIB)
assert ctypes.string_at(outside, 30 * MIB) == bytes([9]) * (30 * MIB)

# What is freed while it sleeps is free afterwards, at the same address.
t.sleep("kv", keep=False)
m.free_memory(cache)
t.wake("kv")
assert inside("kv", 50 * MIB) == cache

refused(ValueError, t.sleep, "none")
refused(ValueError, t.wake, "none")
refused(ValueError, t.sleep, "sixteen bytes ..")
refused(ValueError, t.sleep, "")
refused(TypeError, t.sleep, 5)
refused(OSError, t.sleep, "kv", device=99, code=errno.ENODEV)
t.sleep("weights")  # and the process ends
print("ok")
