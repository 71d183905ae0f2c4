"""The names of Genesis' memory manager (https://github.com/phonism/genesis), on the device heap of tieralloc.

    from tieralloc import genesis
    from tieralloc.genesis.ndarray.cuda_memory_manager import get_memory_manager

    mm = get_memory_manager()
    genesis.cuda.configure_memory_manager({"segment_size": 1 << 30, "enable_stats": True})

The manager is the one of tieralloc.cuda. GENESIS_CUDA_SEGMENT_SIZE, _CACHE_SIZE, _WARMUP_ENABLED and
_STATS_ENABLED are read where the variable of tieralloc is not set (_genesis_variables). docs/coming-from.md tells
what differs.
"""

from . import cuda, ndarray

__all__ = ["cuda", "ndarray"]
