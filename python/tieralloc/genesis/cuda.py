"""genesis.cuda: the device memory manager, by Genesis' names."""

from ..aio import AsyncMemoryPool
from ..cuda import MemoryManager as CUDAMemoryManager
from ..cuda import Statistics as AllocationStatistics
from ..cuda import configure_memory_manager, get_memory_manager

__all__ = ["AllocationStatistics", "AsyncMemoryPool", "CUDAMemoryManager", "configure_memory_manager", "get_memory_manager"]
