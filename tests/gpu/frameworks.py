"""Allocates and frees through a framework, and prints the nanoseconds of a pair, and a
sum that must not depend on who serves the memory. Usage: frameworks.py
cupy|cupy_async|numba|torch

The time is that of the framework's calls; with numba, whose own Python takes as long as the
driver, that of the two driver calls made from it."""

import sys
import time

ROUNDS = 300
SIZES = [4096, 200_000, 3 << 20, 40 << 20]


def cupy_async():
    import cupy as cp

    cp.cuda.set_allocator(cp.cuda.MemoryAsyncPool().malloc)
    return with_cupy(cp)


def cupy():
    import cupy as cp

    cp.cuda.set_allocator(None)  # no pool: each array is a cudaMalloc
    return with_cupy(cp)


def with_cupy(cp):
    warm = cp.arange(10, dtype=cp.float32)
    total = float(warm.sum())
    spent = 0
    for _ in range(ROUNDS):
        for n in SIZES:
            cp.cuda.runtime.deviceSynchronize()
            t = time.perf_counter_ns()
            m = cp.cuda.alloc(n)
            spent += time.perf_counter_ns() - t
            a = cp.ndarray((n // 4,), dtype=cp.float32, memptr=m)
            a.fill(2)
            total += float(a[-1])
            t = time.perf_counter_ns()
            del a, m
            spent += time.perf_counter_ns() - t
    return spent, total


def numba():
    from oldnumba import import_numba
    np, cuda = import_numba()
    from numba.cuda.cudadrv.driver import driver

    context = cuda.current_context()
    spent, calls, total, ours = 0, 0, 0.0, False

    def timed(call):
        def run(*arguments):
            nonlocal spent, calls
            t = time.perf_counter_ns()
            result = call(*arguments)
            if ours:
                spent += time.perf_counter_ns() - t
                calls += 1
            return result
        return run

    driver.cuMemAlloc, driver.cuMemFree = timed(driver.cuMemAlloc), timed(driver.cuMemFree)
    for _ in range(ROUNDS):
        for n in SIZES:
            cuda.synchronize()
            ours = True
            a = cuda.device_array(n // 4, np.float32)
            ours = False
            a[n // 4 - 1] = 2.0  # by an array of its own
            total += float(a[n // 4 - 1])
            context.deallocations.clear()
            ours = True
            del a
            context.deallocations.clear()  # numba frees by the batch otherwise
            ours = False
    arrays = ROUNDS * len(SIZES)
    if abs(calls - 2 * arrays) > arrays // 100:  # some version has one less
        sys.exit(f"numba made {calls} driver calls for {arrays} arrays")
    return spent, total


def torch():
    import torch as t_

    spent, total = 0, 0.0
    dev = t_.device("cuda")
    t_.zeros(1, device=dev)
    for _ in range(ROUNDS):
        for n in SIZES:
            t_.cuda.synchronize()
            t = time.perf_counter_ns()
            a = t_.empty(n // 4, device=dev)
            spent += time.perf_counter_ns() - t
            a.fill_(2)
            total += float(a[-1])
            t = time.perf_counter_ns()
            del a
            spent += time.perf_counter_ns() - t
    return spent, total


which = {"cupy": cupy, "cupy_async": cupy_async, "numba": numba, "torch": torch}
spent, total = which[sys.argv[1]]()
print(sys.argv[1], round(spent / (ROUNDS * len(SIZES))), total)
