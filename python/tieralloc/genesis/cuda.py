"""genesis.cuda: the device memory manager, by Genesis' names."""

from tieralloc_async import AsyncMemoryPool
from tieralloc_cuda import MemoryManager as CUDAMemoryManager
from tieralloc_cuda import Statistics as AllocationStatistics
from tieralloc_cuda import configure_memory_manager, get_memory_manager

__all__ = ["AllocationStatistics", "AsyncMemoryPool", "CUDAMemoryManager", "configure_memory_manager", "get_memory_manager"]
