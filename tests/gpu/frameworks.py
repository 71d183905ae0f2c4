"""Allocates and frees through a framework, and prints the nanoseconds of a pair, and a
sum that must not depend on who serves the memory. Usage: frameworks.py cupy|numba|torch

The time is that of the framework's calls; with numba, whose own Python takes as long as the
driver, that of the two driver calls made from it."""

import sys
import time

ROUNDS = 300
SIZES = [4096, 200_000, 3 << 20, 40 << 20]


def cupy():
    import cupy as cp

    cp.cuda.set_allocator(None)  # no pool: each array is a cudaMalloc
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


def import_numba():
    """NumPy and numba.cuda.

    numba's CUDA part asks NumPy, when it is loaded, for functions under names that NumPy has
    dropped since: in 2.4 in1d and trapz, in 2.5 row_stack. Nothing here calls them, so the
    functions that took their place will do.
    """
    import numpy as np

    for gone, now in ("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid"):
        if not hasattr(np, gone) and hasattr(np, now):
            setattr(np, gone, getattr(np, now))
    try:
        from numba import cuda
    except Exception as error:  # its own check of NumPy's version is an ImportError
        from importlib import metadata
        versions = [f"{name} {metadata.version(name)}" for name in ("numba", "numba-cuda") if list(metadata.distributions(name=name))]
        text = " ".join(str(error).split())
        sys.exit(f"{', '.join(versions) or 'numba'} with NumPy {np.__version__}: {type(error).__name__}: {text}")
    return np, cuda


def numba():
    np, cuda = import_numba()
    from numba.cuda.cudadrv.driver import driver

    context = cuda.current_context()
    spent, calls, total = 0, 0, 0.0

    def timed(call):
        def run(*arguments):
            nonlocal spent, calls
            t = time.perf_counter_ns()
            result = call(*arguments)
            spent += time.perf_counter_ns() - t
            calls += 1
            return result
        return run

    driver.cuMemAlloc, driver.cuMemFree = timed(driver.cuMemAlloc), timed(driver.cuMemFree)
    for _ in range(ROUNDS):
        for n in SIZES:
            cuda.synchronize()
            a = cuda.device_array(n // 4, np.float32)
            a[n // 4 - 1] = 2.0
            total += float(a[n // 4 - 1])
            del a
            context.deallocations.clear()  # numba frees by the batch otherwise
    if calls != 2 * ROUNDS * len(SIZES):
        sys.exit(f"numba made {calls} driver calls for {ROUNDS * len(SIZES)} arrays")
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


spent, total = {"cupy": cupy, "numba": numba, "torch": torch}[sys.argv[1]]()
print(sys.argv[1], round(spent / (ROUNDS * len(SIZES))), total)
