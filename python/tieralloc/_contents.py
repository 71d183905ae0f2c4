"""What is in buffers: copies and fills, in the order of a stream."""

import contextlib
import ctypes
from typing import Any, Iterator

from . import _driver, _streams
from ._memory import Memory

# For a pattern of so many bytes, the driver's function and the number that it takes.
_FILLS = {1: ("cuMemsetD8Async", ctypes.c_uint8), 2: ("cuMemsetD16Async", ctypes.c_uint16), 4: ("cuMemsetD32Async", ctypes.c_uint32)}


@contextlib.contextmanager
def _in_context(buffer: Memory) -> Iterator[None]:
    """A with block with a current context: the thread's own, or one of the buffer's device."""
    if _driver.current_context():
        yield
        return
    with _driver.using(max(buffer.device_id, 0)):
        yield


def checked_stream(stream: Any, what: str) -> int:
    """A stream's handle; TypeError for none."""
    if stream is None:
        raise TypeError(f"{what}: stream is required: expected a stream of this package, cuda.core, PyTorch or CuPy, or a handle, got None")
    return _streams.handle(stream)


def copy(to: Memory, source: Memory, stream: Any, what: str) -> None:
    """Copy all of a buffer to another one of its size."""
    handle = checked_stream(stream, what)
    addresses = to._open(), source._open()
    if to.size != source.size:
        raise ValueError(f"{what}: expected buffers of one size, got {source!r} to {to!r}")
    with _in_context(to):
        _driver.call("cuMemcpyAsync", *addresses, to.size, handle)


def _pattern(value: Any) -> bytes:
    """The bytes that a buffer is filled with: those of a number from 0 to 255, or of an object with 1, 2 or 4."""
    if isinstance(value, int):
        if not 0 <= value <= 255:
            raise OverflowError(f"value {value!r}: expected a number from 0 to 255")
        return bytes([value])
    try:
        found = bytes(memoryview(value).cast("B"))
    except TypeError:
        raise TypeError(f"value {value!r}: expected a number from 0 to 255, or 1, 2 or 4 bytes") from None
    if len(found) not in _FILLS:
        raise ValueError(f"value {value!r}: expected 1, 2 or 4 bytes, got {len(found)}")
    return found


def fill(buffer: Memory, value: Any, stream: Any) -> None:
    """Fill a buffer with a pattern again and again."""
    handle, address, pattern = checked_stream(stream, "fill"), buffer._open(), _pattern(value)
    width = len(pattern)
    if buffer.size % width:
        raise ValueError(f"value {value!r}: expected a pattern that fits the {buffer.size} bytes of {buffer!r}, got {width} bytes")
    call, number = _FILLS[width]
    with _in_context(buffer):
        _driver.call(call, address, number.from_buffer_copy(pattern).value, buffer.size // width, handle)
