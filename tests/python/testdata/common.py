"""What the scripts share."""

import ctypes

import tieralloc_shim as t

process = ctypes.CDLL(None, use_errno=True)
process.malloc.restype = ctypes.c_void_p
process.malloc.argtypes = [ctypes.c_size_t]
process.free.argtypes = [ctypes.c_void_p]


def hint_now():
    """The calling thread's hint, asked of the library itself."""
    found = process.ta_set_hint(1)
    process.ta_set_hint(found)
    return t.HINTS[found]


def tier_now(size=50000):
    """The tier of a new block of the calling thread."""
    block = process.malloc(size)
    try:
        return t.tier_of(block)
    finally:
        process.free(block)
