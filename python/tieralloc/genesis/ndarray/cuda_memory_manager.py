"""genesis.ndarray.cuda_memory_manager: the names of tieralloc.genesis.cuda."""

from ..cuda import AllocationStatistics, AsyncMemoryPool, CUDAMemoryManager, configure_memory_manager, get_memory_manager

__all__ = ["AllocationStatistics", "AsyncMemoryPool", "CUDAMemoryManager", "configure_memory_manager", "get_memory_manager"]
