"""Runs a program of tests/gpu with kernels that the host computes, on a driver whose devices'
memory is the host's. Usage: onhost.py PROGRAM ARGUMENT..."""

import ctypes
import os
import runpy
import sys
import types

import numpy as np

cuda = ctypes.CDLL("libcuda.so.1")
for call in cuda.cuInit, cuda.cuDevicePrimaryCtxRetain, cuda.cuCtxSetCurrent, cuda.cuStreamSynchronize:
    call.argtypes = [ctypes.c_void_p] if call is not cuda.cuDevicePrimaryCtxRetain else [ctypes.c_void_p, ctypes.c_int]
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0


def at(address, n):
    return np.ctypeslib.as_array((ctypes.c_float * n).from_address(address))


def axpy(stream, threads, y, x, w, n):
    assert cuda.cuStreamSynchronize(stream) == 0 and threads == n
    at(y, n)[:] = np.float32(2) * at(x, n) + at(w, n)


def steps(stream, threads, y, x, s, m, n):
    assert cuda.cuStreamSynchronize(stream) == 0 and threads == n
    v, into, of = np.zeros(n, dtype=np.float32), at(y, s * m).reshape(s, m), at(x, s * m).reshape(s, m)
    for k in range(s):
        v = np.float32(0.5) * v + of[k, :n]
        into[k, :n] = v


def load(name):
    assert name == "host", name
    return axpy, steps


sys.modules["kernels"] = types.ModuleType("kernels")
sys.modules["kernels"].load = load
sys.argv[:] = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
