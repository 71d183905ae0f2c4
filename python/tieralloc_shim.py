"""Hints, tiers and device memory under the name of TierAlloc's module. See tieralloc.hints."""

from tieralloc.hints import (
    HINTS, TIERS, available, disable, enable, enabled, hello, hint, move, set_default_hint, stats,
    tier_of,
)

__all__ = [
    "HINTS", "TIERS", "available", "disable", "enable", "enable_cuda", "enabled",
    "get_memory_manager", "hello", "hint", "move", "set_default_hint", "stats", "tier_of",
]


def enable_cuda(*names):
    """Have "torch", "cupy" or "numba" take device memory from tieralloc (tieralloc.frameworks)."""
    from tieralloc import frameworks  # few programs need it
    return frameworks.enable(*names)


def get_memory_manager(device=0):
    """The device heap of a device, by hand (tieralloc.cuda.MemoryManager)."""
    from tieralloc import cuda
    return cuda.get_memory_manager(device)
