"""Device memory by tieralloc for PyTorch, CuPy and numba."""

import ctypes
import sys

from . import _library
from ._arguments import stream_handle
from .cuda import turned_off

__all__ = ["enable"]


def enable(*names):
    """Have libraries take device memory from tieralloc: "torch", "cupy", "numba".

    Without names: those of them that are imported. Returns their names. Raises RuntimeError
    where the library is not in the process or was told not to serve devices, where there is
    none to enable, or where it has begun to use another allocator, which PyTorch and numba
    cannot change any more.
    """
    _library.require()
    if turned_off():
        raise RuntimeError(f"tieralloc serves no device memory in this process: it was started with {turned_off()}")
    ways = {"torch": _enable_torch, "cupy": _enable_cupy, "numba": _enable_numba}
    for name in names:
        if name not in ways:
            raise ValueError(f"unknown library {name!r}: expected 'torch', 'cupy' or 'numba'")
    names = names or tuple(name for name in ways if name in sys.modules)
    if not names:
        raise RuntimeError("none of torch, cupy and numba is imported: name what to enable")
    for name in names:
        ways[name]()
    return names


def _library_path():
    """The file that the library in this process came from."""
    begins = _library.address("ta_cuda_malloc")
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            first, end = (int(word, 16) for word in words[0].split("-"))
            if first <= begins < end and len(words) == 6:
                return words[5].rstrip("\n")
    raise RuntimeError("the library's file is not in /proc/self/maps")


_torch_allocator = None  # PyTorch does not keep it alive


def _enable_torch():
    global _torch_allocator
    import torch
    if _torch_allocator is not None:
        return
    memory = torch.cuda.memory
    malloc = "ta_cuda_torch_malloc" if _library.address("ta_cuda_torch_malloc") else "ta_cuda_malloc"
    allocator = memory.CUDAPluggableAllocator(_library_path(), malloc, "ta_cuda_free")
    inner = allocator.allocator()
    # How they are named depends on the version of PyTorch.
    for name, setters in (
        ("ta_cuda_record_stream", ["set_record_stream_fn"]),
        ("ta_cuda_pool_begin", ["set_begin_allocate_to_pool", "set_begin_allocate_to_pool_fn"]),
        ("ta_cuda_pool_end", ["set_end_allocate_to_pool_fn", "set_end_allocate_to_pool"]),
        ("ta_cuda_pool_release", ["set_release_pool", "set_release_pool_fn"]),
    ):
        for setter in setters:
            if hasattr(inner, setter) and _library.address(name):
                getattr(inner, setter)(_library.address(name))
                break
    memory.change_current_allocator(allocator)
    _torch_allocator = allocator


_cupy_blocks = {}  # address: size, stream of the allocation; so it is freed in the order of the same


def _enable_cupy():
    import cupy

    def malloc(size, device):
        stream = stream_handle(cupy.cuda.get_current_stream())
        address = _library.function("ta_cuda_malloc")(size, device, stream)
        if not address:
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        _cupy_blocks[address] = size, stream
        return address

    def free(address, device):
        size, stream = _cupy_blocks.pop(address)
        _library.function("ta_cuda_free")(address, size, device, stream)

    cupy.cuda.set_allocator(cupy.cuda.memory.PythonFunctionAllocator(malloc, free).malloc)


def _enable_numba():
    from numba import cuda
    cuda.set_memory_manager(numba_manager())


def numba_manager():
    """The class for numba's External Memory Manager interface.

    numba does not say on which streams an array is used. So its blocks are asked of
    cuMemAlloc and cuMemFree, which the preloaded library serves and which are safe on all; but they are
    given back at once, and not in batches.
    """
    from numba import cuda
    from numba.cuda.cudadrv import driver

    process = ctypes.CDLL("libcuda.so.1")

    def check(result):
        if result == 2:  # CUDA_ERROR_OUT_OF_MEMORY
            raise MemoryError("no room on the device")
        if result != 0:
            raise RuntimeError(f"CUDA error {result}")

    class Manager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
        @property
        def interface_version(self):
            return 1

        def memalloc(self, size):
            address = ctypes.c_uint64()
            check(process.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
            blocks = self.allocations  # numba empties it when the context is reset, and the memory is gone
            blocks[address.value] = size

            def free():
                if blocks.pop(address.value, None) is not None:
                    process.cuMemFree_v2(address)

            binding = getattr(driver, "binding", None) if getattr(driver, "USE_NV_BINDING", True) else None
            handle = ctypes.c_uint64(address.value) if binding is None else binding.CUdeviceptr(address.value)
            return cuda.MemoryPointer(self.context, handle, size, finalizer=free)

        def get_memory_info(self):
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            check(process.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
            return cuda.MemoryInfo(free=free.value, total=total.value)

        def initialize(self):
            pass

    return Manager
