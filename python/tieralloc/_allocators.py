"""The classes by which numba gets device memory for what the program asks of it."""

import ctypes
from typing import Any

NAMES = ("default", "tieralloc", "cupy", "cupy_async")


def manager_class(cuda: Any, name: str) -> Any:
    """The class of a name, for numba.cuda.set_memory_manager. ImportError where CuPy is not there."""
    if name == "default":
        from numba.cuda.cudadrv.driver import NumbaCUDAMemoryManager
        return NumbaCUDAMemoryManager
    if name == "tieralloc":
        from .frameworks import numba_manager
        return numba_manager()
    return _cupy_manager(cuda, name == "cupy_async")


def _cupy_manager(cuda: Any, asynchronous: bool) -> Any:
    """A class that has numba's arrays in a pool of CuPy's."""
    import cupy
    from numba.cuda.cudadrv import driver

    pool_class = cupy.cuda.MemoryAsyncPool if asynchronous else cupy.cuda.MemoryPool

    class Manager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):  # type: ignore[misc]
        """Memory of CuPy's, which is given back when the last array over it goes."""

        pool: Any = None

        @property
        def interface_version(self) -> int:
            return 1

        def initialize(self) -> None:
            if self.pool is None:
                self.pool = pool_class()

        def reset(self) -> None:
            super().reset()
            self.pool = None

        def memalloc(self, size: int) -> Any:
            self.initialize()
            block = self.pool.malloc(size)
            kept = self.allocations  # numba empties it when the context is reset
            kept[block.ptr] = block
            binding = getattr(driver, "binding", None) if getattr(driver, "USE_NV_BINDING", True) else None
            handle = ctypes.c_uint64(block.ptr) if binding is None else binding.CUdeviceptr(block.ptr)
            address = block.ptr
            return cuda.MemoryPointer(self.context, handle, size, finalizer=lambda: kept.pop(address, None))

        def get_memory_info(self) -> Any:
            free, total = cupy.cuda.runtime.memGetInfo()
            return cuda.MemoryInfo(free=free, total=total)

    return Manager
