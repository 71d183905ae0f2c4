"""Streams: the package's own class, and the handles of anybody's."""

import ctypes
import numbers
import os
import weakref
from typing import Any, Optional, Tuple

from . import _driver

_MOST = (1 << 64) - 1

# Where the objects of PyTorch, CuPy, and of numba and cuda.bindings have the handle.
_ATTRIBUTES = ("cuda_stream", "ptr", "handle")


def handle(stream: Any) -> int:
    """The CUstream of an object as a number.

    Accepted are None (0, the legacy default stream), whole numbers, pointers of ctypes,
    objects with __cuda_stream__ (cuda.core's protocol, version 0), and those with an
    attribute cuda_stream, ptr or handle. Raises TypeError for anything else, and
    ValueError for a number that is no address.
    """
    number = _number(stream, 0)
    if number is None:
        raise TypeError(f"stream {stream!r}: expected None, a handle as a whole number, or a stream of cuda.core,"
                        " PyTorch, CuPy or numba")
    if not 0 <= number <= _MOST:
        raise ValueError(f"stream {stream!r}: expected a handle from 0 to {_MOST}")
    return number


def _number(stream: Any, depth: int) -> Optional[int]:
    """The number in an object, or None; what an attribute gives may itself be an object with one."""
    if stream is None:
        return 0
    if isinstance(stream, (bool, str, bytes, float, type)) or depth > 3:
        return None
    if isinstance(stream, numbers.Integral):
        return int(stream)
    if isinstance(stream, (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t)):
        return int(stream.value or 0)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return _number(_from_protocol(stream, protocol() if callable(protocol) else protocol), depth + 1)
    for name in _ATTRIBUTES:
        if hasattr(stream, name):
            return _number(getattr(stream, name), depth + 1)
    return int(stream) if hasattr(stream, "__int__") else None


def _from_protocol(stream: Any, answer: Any) -> Any:
    """What __cuda_stream__ gave, without the version of the protocol."""
    try:
        version, found = answer
    except (TypeError, ValueError):
        raise TypeError(f"stream {stream!r}: expected (0, handle) of its __cuda_stream__, not {answer!r}") from None
    if version != 0:
        raise TypeError(f"stream {stream!r}: expected version 0 of __cuda_stream__, not {version!r}")
    return found


def _destroy(process: int, device: int, number: int) -> None:
    if os.getpid() != process:
        return  # a forked child's copy: the stream is the parent's
    with _driver.using(device):
        _driver.result("cuStreamDestroy", number)  # what it was given is still done


class Stream:
    """A stream of a device. Without a handle a new one, destroyed with the last reference or by close()."""

    def __init__(self, device: int = 0, handle: Optional[int] = None) -> None:
        self.device = device
        self._finalizer: Optional[weakref.finalize] = None
        if handle is None:
            out = ctypes.c_void_p()
            with _driver.using(device):
                _driver.call("cuStreamCreate", ctypes.byref(out), 0)
            handle = out.value or 0
            self._finalizer = weakref.finalize(self, _destroy, os.getpid(), device, handle)
            self._finalizer.atexit = False  # the driver ends its streams itself
        self._handle: Optional[int] = handle

    @property
    def handle(self) -> int:
        """The CUstream as a number. ValueError once the stream is closed."""
        if self._handle is None:
            raise ValueError("the stream is closed")
        return self._handle

    def __cuda_stream__(self) -> Tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait until all is done that the stream was given."""
        with _driver.using(self.device):
            _driver.call("cuStreamSynchronize", self.handle)

    sync = synchronize

    def query(self) -> bool:
        """Whether all is done that the stream was given."""
        with _driver.using(self.device):
            code = _driver.result("cuStreamQuery", self.handle)
        if code not in (0, _driver.NOT_READY):
            raise _driver.CUDAError("cuStreamQuery", code)
        return code == 0

    def close(self) -> None:
        """Destroy the stream, if it was made here; it may be called again."""
        self._handle = None
        if self._finalizer is not None:
            self._finalizer()

    def __repr__(self) -> str:
        return f"Stream(device={self.device}, handle={'closed' if self._handle is None else hex(self._handle)})"
