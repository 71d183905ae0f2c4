"""genesis.ndarray, as far as it is the memory manager."""

from . import cuda_memory_manager

__all__ = ["cuda_memory_manager"]
