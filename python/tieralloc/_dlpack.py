"""Buffers for other libraries by DLPack. NumPy makes the capsules, and ends what they hold: it is needed here."""

import ctypes
import weakref
from typing import Any, Optional, Tuple

from ._memory import Memory

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType of dlpack.h

# A capsule's name, and where in its structure the device is, by whether it is of DLPack 1 or later.
_FORMS = {False: (b"dltensor", 8), True: (b"dltensor_versioned", 40)}

_VERSIONED = (1, 0)

# Prototypes of our own: those of ctypes.pythonapi are everybody's.
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


class _Place(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


def device(buffer: Memory) -> Tuple[int, int]:
    """A DLDeviceType and its number."""
    if buffer.is_managed:
        return CUDA_MANAGED, max(buffer.device_id, 0)
    if not buffer.is_device_accessible:
        return CPU, 0
    return (CUDA_HOST, 0) if buffer.is_host_accessible else (CUDA, buffer.device_id)


def _check(buffer: Memory, max_version: Any, dl_device: Any, copy: Any) -> None:
    if max_version is not None and not (isinstance(max_version, tuple) and len(max_version) == 2):
        raise BufferError(f"max_version {max_version!r}: expected a pair of numbers, or None")
    if dl_device is not None and tuple(dl_device) != device(buffer):
        raise BufferError(f"dl_device {dl_device!r}: expected {device(buffer)}, where {buffer!r} is, or None")
    if copy:
        raise BufferError(f"copy {copy!r}: expected None or False; copy_to makes a copy")


def capsule(buffer: Memory, max_version: Optional[Tuple[int, int]], dl_device: Any, copy: Any) -> Any:
    """A capsule of the buffer as int8, one view of it until its taker is done."""
    import numpy as np
    _check(buffer, max_version, dl_device, copy)
    memory = (ctypes.c_int8 * buffer.size).from_address(buffer._open())
    place = _Place(*device(buffer))
    buffer._views += 1
    weakref.finalize(memory, buffer._viewed).atexit = False
    array = np.frombuffer(memory, np.int8)
    made = None
    if max_version is not None and max_version >= _VERSIONED:
        try:
            made = array.__dlpack__(max_version=max_version)
        except TypeError:
            pass  # NumPy before 2.1 makes the older form only, which takers accept
    made = array.__dlpack__() if made is None else made
    name, at = _FORMS[bool(_is_valid(made, _FORMS[True][0]))]
    ctypes.memmove(_pointer_of(made, name) + at, ctypes.byref(place), ctypes.sizeof(place))
    return made
