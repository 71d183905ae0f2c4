"""Kernels for examples.py and manager.py, launched by whichever of CuPy, numba and cuda.core is there.

Each works on float32 and is given addresses of memory that the device reaches:

    axpy(y, x, w, n)        y[i] = 2 * x[i] + w[i]
    steps(y, x, s, m, n)    for each of n runs r: v = 0.5 * v + x[k, r], y[k, r] = v, for k < s;
                            rows of x and y are m apart
"""

import numpy as np

SOURCE = r"""
extern "C" __global__ void axpy(float *y, const float *x, const float *w, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2.0f * x[i] + w[i];
}
extern "C" __global__ void steps(float *y, const float *x, long long s, long long m, long long n)
{
    long long r = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    float v = 0.0f;
    if (r < n)
        for (long long k = 0; k < s; k++)
            y[k * m + r] = v = 0.5f * v + x[k * m + r];
}
"""
THREADS = 256


def blocks(n):
    return -(-n // THREADS)


def cupy():
    import cupy as cp

    def launcher(name, arrays):
        kernel = cp.RawKernel(SOURCE, name)

        def launch(stream, threads, *arguments):
            with cp.cuda.ExternalStream(stream):
                kernel((blocks(threads),), (THREADS,), tuple(np.uint64(a) if i < arrays else np.int64(a)
                                                             for i, a in enumerate(arguments)))
        return launch
    return launcher


def numba():
    from oldnumba import import_numba
    _, cuda = import_numba()

    @cuda.jit
    def axpy(y, x, w, n):
        i = cuda.grid(1)
        if i < n:
            y[i] = np.float32(2.0) * x[i] + w[i]

    @cuda.jit
    def steps(y, x, s, m, n):
        r = cuda.grid(1)
        if r < n:
            v = np.float32(0.0)
            for k in range(s):
                v = np.float32(0.5) * v + x[k * m + r]
                y[k * m + r] = v

    class Memory:
        def __init__(self, address, n):
            self.__cuda_array_interface__ = {"shape": (n,), "typestr": "<f4", "data": (address, False), "version": 3}

    def launcher(name, arrays):
        kernel = {"axpy": axpy, "steps": steps}[name]

        def launch(stream, threads, *arguments):
            n = arguments[-1] if name == "axpy" else arguments[-3] * arguments[-2]
            views = [cuda.as_cuda_array(Memory(a, n)) for a in arguments[:arrays]]
            kernel[blocks(threads), THREADS, cuda.external_stream(stream)](*views, *arguments[arrays:])
        return launch
    return launcher


def cuda_core():
    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch as start
    except ImportError:
        from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch as start

    class Foreign:
        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return 0, self.stream

    device = Device(0)
    device.set_current()
    code = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")

    def launcher(name, arrays):
        kernel = code.get_kernel(name)

        def launch(stream, threads, *arguments):
            config = LaunchConfig(grid=blocks(threads), block=THREADS)
            start(device.create_stream(Foreign(stream)), config, kernel,
                  *(int(a) if i < arrays else np.int64(a) for i, a in enumerate(arguments)))
        return launch
    return launcher


def load(name):
    """Functions axpy and steps: each takes a stream's handle, how many threads are needed, and the kernel's arguments."""
    make = {"cupy": cupy, "numba": numba, "cuda.core": cuda_core}[name]()
    return make("axpy", 3), make("steps", 2)
