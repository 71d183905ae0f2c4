"""Regions of a program that does what it reads, a line at a time, and is idle otherwise."""
import ctypes
import sys

MIB = 1 << 20

cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
assert cuda.cuInit(0) == 0
cuda.fake_used.restype = ctypes.c_size_t
cuda.fake_launch.argtypes = (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)

from tieralloc import cuda as t

m = t.get_memory_manager()
context, stream = ctypes.c_void_p(), ctypes.c_void_p()


def inside(name, size):
    with t.region(name):
        return m.allocate_memory(size)


if sys.argv[1:] == ["regions"]:
    outside = m.allocate_memory(30 * MIB)
    weights = inside("weights", 60 * MIB)
    cache = inside("kv", 40 * MIB)
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
elif sys.argv[1:] == ["none"]:
    outside = m.allocate_memory(30 * MIB)

print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "used":
        print(cuda.fake_used(0) // MIB, flush=True)
    elif word == "launch":
        assert cuda.fake_launch(weights, 60 * MIB, 7, stream) == 0
        print("launched", flush=True)
    elif word == "contents":
        same = ctypes.string_at(weights, 60 * MIB) == bytes([7]) * (60 * MIB)
        print("kept" if same else "lost", flush=True)
    elif word == "fill":
        big = m.allocate_memory(950 * MIB)
        print("filled", flush=True)
    elif word == "empty":
        m.free_memory(big)
        print("emptied", flush=True)
    elif word == "busy":
        while True:
            [bytearray(5000 + i) for i in range(1000)]
