"""What programs see of the limits. The library must be preloaded. Usage:

    TA_CUDA_HARD=8G limits.py torch|pluggable|cupy    8 GiB, the library's own error beyond them, and back
    TA_CUDA_HARD=1G TA_CUDA_ON_HARDCAP=spill limits.py spill    1.5 GiB in use, rightly

pluggable and spill need python/ on PYTHONPATH. Prints a summary; status 1 and what was
wrong, when something was."""

import gc
import sys

GIB = 1 << 30
HARD = 8 * GIB


def check(held, what):
    if not held:
        sys.exit(f"wrong: {what}")


def sees(who, free, total):
    check(total == HARD, f"{who} sees {total} bytes, not {HARD}")
    check(HARD * 3 // 4 <= free <= HARD, f"{who} sees {free} bytes free of {HARD}")


def fill_up(alloc, error):
    """Allocates by the GiB until the error comes; the blocks."""
    blocks = []
    try:
        for i in range(12):
            blocks.append(alloc(GIB, i + 1))
    except error as e:
        check(any(word in str(e).lower() for word in ("memory", "bad_alloc")), f"refused with {e!r}")
        e.__traceback__ = None  # it holds what the frames below hold
    else:
        sys.exit("wrong: 12 GiB were had under a limit of 8 GiB")
    check(7 <= len(blocks) <= 8, f"{len(blocks)} GiB were had under a limit of 8 GiB")
    return blocks


def torch(pluggable):
    import torch as t
    if pluggable:
        import tieralloc_shim
        tieralloc_shim.enable_cuda("torch")

    def alloc(n, value):
        return t.full((n // 4,), value, dtype=t.int32, device="cuda")

    sees("torch.cuda.mem_get_info", *t.cuda.mem_get_info())
    total = t.cuda.get_device_properties(0).total_memory
    check(total == HARD, f"torch.cuda.get_device_properties sees {total} bytes, not {HARD}")
    # Of other allocators PyTorch passes on what they throw.
    error = (t.cuda.OutOfMemoryError, MemoryError, RuntimeError) if pluggable else t.cuda.OutOfMemoryError
    for again in range(3):
        blocks = fill_up(alloc, error)
        free = t.cuda.mem_get_info()[0]
        check(free <= GIB + GIB // 4, f"{free} bytes are free with {len(blocks)} GiB in use")
        for i, b in enumerate(blocks):
            check(all(int(b[k]) == i + 1 for k in (0, b.numel() // 2, -1)), f"block {i} has other values")
        had = len(blocks)
        del blocks, b
        gc.collect()
        if again != 1 and not pluggable:
            t.cuda.empty_cache()
        one = alloc(6 * GIB if again != 1 else GIB, 5)
        check(int(one[0]) == 5 and int(one[-1]) == 5, "after the error: other values")
        del one
        gc.collect()
        if not pluggable:
            t.cuda.empty_cache()
    return f"8 GiB seen, {had} had, refused beyond, had again"


def cupy():
    import cupy as cp
    sees("cudaMemGetInfo", *cp.cuda.runtime.memGetInfo())
    total = cp.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]
    check(total == HARD, f"cudaGetDeviceProperties sees {total} bytes, not {HARD}")
    pool = cp.cuda.MemoryPool()
    rounds = (
        ("with its pool", pool.malloc, cp.cuda.memory.OutOfMemoryError),
        ("without a pool", None, cp.cuda.runtime.CUDARuntimeError),
    )

    def alloc(n, value):
        a = cp.empty(n // 4, dtype=cp.int32)
        a.fill(value)
        return a

    for name, allocator, error in rounds:
        cp.cuda.set_allocator(allocator)
        for again in range(2):
            blocks = fill_up(alloc, error)
            for i, b in enumerate(blocks):
                check(int(b[0]) == i + 1 and int(b[-1]) == i + 1, f"{name}: block {i} has other values")
            had = len(blocks)
            del blocks, b
            gc.collect()
            pool.free_all_blocks()
            one = alloc(6 * GIB, 5)
            check(int(one[0]) == 5 and int(one[-1]) == 5, f"{name}: after the error: other values")
            del one
            pool.free_all_blocks()
    return f"8 GiB seen, {had} had, refused beyond, had again, with and without its pool"


def spill():
    import cupy as cp
    import numpy as np
    import tieralloc_shim
    cp.cuda.set_allocator(None)  # no pool: each array is a cudaMalloc
    n, arrays = (128 << 20) // 4, 12
    fill = cp.RawKernel("""
        extern "C" __global__ void fill(unsigned *y, unsigned n, unsigned k)
        {
            for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                y[i] = i * 2654435761u + k;
        }""", "fill")
    index = np.arange(n, dtype=np.uint32) * np.uint32(2654435761)
    for again in range(2):
        blocks = [cp.empty(n, dtype=cp.uint32) for _ in range(arrays)]
        for k, b in enumerate(blocks):
            fill((1024,), (256,), (b, np.uint32(n), np.uint32(k)))
        acc = blocks[0]
        for b in blocks[1:]:
            cp.bitwise_xor(acc, b, out=acc)  # each lies on the device or on the host
        expected = index.copy()
        for k in range(1, arrays):
            values = index + np.uint32(k)
            check(np.array_equal(cp.asnumpy(blocks[k]), values), f"array {k} has other values")
            expected ^= values
        check(np.array_equal(cp.asnumpy(acc), expected), "the sum over all arrays is wrong")
        del acc, b, blocks
        gc.collect()
    device = tieralloc_shim.stats()["devices"][0]
    check(device["spills"] > 0, "nothing was spilled")
    check(device["bytes_reserved_peak"] <= GIB, f"{device['bytes_reserved_peak']} bytes were had of the device")
    return f"{device['spills']} spills, {device['bytes_reserved_peak'] >> 20} MiB of the device at most"


ways = {"torch": lambda: torch(False), "pluggable": lambda: torch(True), "cupy": cupy, "spill": spill}
print(ways[sys.argv[1]]())
