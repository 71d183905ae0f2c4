"""What tieralloc.h declares, for ctypes: the structures and the functions that the package uses."""

import ctypes
from typing import Any, Dict, Sequence, Tuple

_pointer, _int, _double = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
_size, _signed, _word = ctypes.c_size_t, ctypes.c_ssize_t, ctypes.c_uint64
_text = ctypes.c_char_p
_pointers, _sizes = ctypes.POINTER(_pointer), ctypes.POINTER(_size)
_ints, _doubles = ctypes.POINTER(_int), ctypes.POINTER(_double)


class DeviceStatistics(ctypes.Structure):
    """ta_cuda_stats: the figures of a device."""

    _fields_ = [("size", _size)] + [(name, _word) for name in (
        "alloc_calls", "free_calls", "hits_local", "hits_global", "hits_split", "misses",
        "foreign_calls", "refused", "frees_invalid", "blocks_live", "bytes_live", "bytes_peak",
        "bytes_reserved", "bytes_cached_local", "bytes_cached_global", "largest_free", "segments",
        "splits", "merges", "blocks_warmed", "bytes_released", "bytes_device", "bytes_current",
        "capacity_hard", "segment_size", "cache_limit", "stream_local", "global_limit",
        "recording")]

    @property
    def cached(self) -> int:
        """Bytes of free blocks that the library keeps."""
        return int(self.bytes_cached_local + self.bytes_cached_global)


class Info(ctypes.Structure):
    """ta_mm_info: the figures of an account."""

    _fields_ = [("size", _size), ("proportion", _double)] + [(name, _word) for name in (
        "cap", "bytes_live", "bytes_peak", "allocs", "frees", "refused", "evictions", "last_used",
        "manual")] + [("name", ctypes.c_char * 48), ("group", ctypes.c_char * 48)]


class Request(ctypes.Structure):
    """ta_mm_request: an array that an instance wants."""

    _fields_ = [("itemsize", _size), ("shape", _sizes), ("ndim", _int), ("chunk_axis", _int),
                ("unchunkable", _int), ("kind", _int)]


class Chunking(ctypes.Structure):
    """ta_mm_chunking: how requests are cut."""

    _fields_ = [("size", _size), ("chunkable", _size), ("unchunkable", _size),
                ("available", _size), ("chunk_length", _size), ("chunks", _size),
                ("far_too_large", _int), ("nearly_full", _int)]

    @property
    def whole(self) -> bool:
        """Whether the requests are not cut."""
        return bool(self.chunks == 1)


class Asked(ctypes.Structure):
    """ta_mm_asked: the instances that were asked already to give way."""

    _fields_ = [("after", _word), ("until", _word)]


class Location(ctypes.Structure):
    """ta_location: a CUmemLocationType and the device's or node's number."""

    _fields_ = [("kind", _int), ("id", _int)]


evict_callback = ctypes.CFUNCTYPE(None, _word, _pointer)

_ranges = [_pointers, _sizes, _size]
_targets = [ctypes.POINTER(Location), _size]

# For each function what it returns and what it takes.
SIGNATURES: Dict[str, Tuple[Any, Sequence[Any]]] = {
    # Hints, tiers and the report. The C library's functions are the ones that serve the process.
    "ta_hello": (_text, []),
    "ta_set_hint": (_int, [_int]),
    "ta_set_default_hint": (_int, [_int]),
    "ta_tier_of": (_int, [_pointer]),
    "ta_move": (_pointer, [_pointer, _int]),
    "ta_stats_json": (_size, [_pointer, _size]),
    "malloc_usable_size": (_size, [_pointer]),
    "malloc": (_pointer, [_size]),
    "free": (None, [_pointer]),
    # The device heap.
    "ta_cuda_malloc": (_pointer, [_signed, _int, _pointer]),
    "ta_cuda_free": (None, [_pointer, _signed, _int, _pointer]),
    "ta_cuda_torch_malloc": (_pointer, [_signed, _int, _pointer]),
    "ta_cuda_record_stream": (None, [_pointer, _pointer]),
    "ta_cuda_malloc_batch": (_int, [_int, _pointer, _sizes, _pointers, _int]),
    "ta_cuda_warmup": (_int, [_int, _sizes, _ints, _int]),
    "ta_cuda_trim_to": (_int, [_int, _size]),
    "ta_cuda_coalesce": (_int, [_int]),
    "ta_cuda_configure": (_int, [_int, _text, _double]),
    "ta_cuda_get_stats": (_int, [_int, _pointer]),
    "ta_cuda_trace": (_size, [_int, _pointer, _size]),
    "ta_cuda_pool_begin": (None, [_int, _word, _word, _pointer]),
    "ta_cuda_pool_end": (None, [_int, _word, _word]),
    "ta_cuda_pool_release": (None, [_int, _word, _word]),
    "ta_cuda_region_begin": (_int, [_int, _text]),
    "ta_cuda_region_end": (_int, [_int, _text]),
    "ta_cuda_sleep": (_int, [_int, _text, _int]),
    "ta_cuda_wake": (_int, [_int, _text]),
    # Managed memory.
    "ta_managed_malloc": (_pointer, [_size, _int]),
    "ta_managed_free": (_int, [_pointer]),
    "ta_managed_advise": (_int, [_pointer, _size, _int, Location]),
    "ta_managed_prefetch": (_int, [*_ranges, *_targets, _pointer]),
    "ta_managed_discard": (_int, [*_ranges, _pointer]),
    "ta_managed_discard_prefetch": (_int, [*_ranges, *_targets, _pointer]),
    "ta_managed_get": (_int, [_pointer, _size, _int, _ints, _size]),
    # Managers.
    "ta_mm_create": (_pointer, [_int, _size, _text]),
    "ta_mm_destroy": (_int, [_pointer]),
    "ta_mm_set_mode": (_int, [_pointer, _int]),
    "ta_mm_register": (_int, [_pointer, _word, _text, _text, _double, evict_callback, _pointer]),
    "ta_mm_unregister": (_int, [_pointer, _word]),
    "ta_mm_set_manual": (_int, [_pointer, _word, _double]),
    "ta_mm_set_auto": (_int, [_pointer, _word]),
    "ta_mm_set_group": (_int, [_pointer, _word, _text]),
    "ta_mm_pools": (_int, [_pointer, _doubles, _doubles]),
    "ta_mm_get": (_int, [_pointer, _word, ctypes.POINTER(Info)]),
    "ta_mm_available": (_int, [_pointer, _text, _size, _sizes]),
    "ta_mm_chunk": (_int, [_pointer, _text, _size, ctypes.POINTER(Request), _size, _size,
                           ctypes.POINTER(Chunking)]),
    "ta_mm_alloc": (_pointer, [_pointer, _word, _size, _int, _pointer]),
    "ta_mm_free": (_int, [_pointer, _pointer, _pointer]),
    "ta_mm_use": (_int, [_pointer, _word, _pointer]),
    "ta_mm_charge": (_int, [_pointer, _word, _signed]),
    "ta_mm_hold": (_int, [_pointer, _word, _int]),
    "ta_mm_ask_idle": (_int, [_pointer, _word, _int, ctypes.POINTER(Asked)]),
}
