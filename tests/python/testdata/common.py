"""What the scripts share."""

import ctypes
import threading

import tieralloc_shim as t

process = ctypes.CDLL(None, use_errno=True)
process.malloc.restype = ctypes.c_void_p
process.malloc.argtypes = [ctypes.c_size_t]
process.free.argtypes = [ctypes.c_void_p]


_asking = threading.Lock()  # the default is another one for a moment, also for other threads


def hint_now():
    """The calling thread's hint, or else the process's, asked of the library itself."""
    with _asking:
        for set_hint in process.ta_set_hint, process.ta_set_default_hint:
            found = set_hint(1)
            set_hint(found)
            if found:
                return t.HINTS[found - 1]


def tier_now(size=50000):
    """The tier of a new block of the calling thread."""
    block = process.malloc(size)
    try:
        return t.tier_of(block)
    finally:
        process.free(block)
