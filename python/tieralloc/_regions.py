"""Regions of device memory that sleep: their memory goes back, their addresses stay."""

import contextlib
import ctypes
import errno
import os

from . import _library
from ._arguments import MOST_COUNT, switch, whole

_LONGEST = 15


def _name(name):
    if not isinstance(name, str):
        raise TypeError(f"name {name!r}: expected a string")
    text = name.encode()
    if not 1 <= len(text) <= _LONGEST or b"\0" in text:
        raise ValueError(f"name {name!r}: expected 1 to {_LONGEST} bytes, none of them 0")
    return text


def _call(function, device, name, *rest):
    text = _name(name)
    device = whole(device, "device", 0, MOST_COUNT)
    if _library.function(function)(device, text, *rest) == 0:
        return
    error = ctypes.get_errno()
    if error == errno.EINVAL:
        raise ValueError(f"region {name!r} on device {device}: expected the name of a region that was entered")
    if error == errno.ENOMEM:
        raise MemoryError(f"region {name!r} on device {device}: there is no memory")
    raise OSError(error, f"{os.strerror(error)}: region {name!r} on device {device}")


@contextlib.contextmanager
def region(name, device=0):
    """A with block in which all blocks that the device's streams ask for belong to a region.

    Regions nest; a block belongs to the innermost. All threads' blocks belong to it, because
    frameworks allocate in threads of their own. A block of the per-thread default stream does not.
    """
    _call("ta_cuda_region_begin", device, name)
    try:
        yield
    finally:
        _call("ta_cuda_region_end", device, name)


def sleep(name, keep=True, device=0):
    """Give a region's memory back to the driver; its blocks keep their addresses.

    With keep the contents are copied to the host first; otherwise they are lost. The region's
    memory must not be used until wake returns. MemoryError where the host has no room, ValueError
    for a name that is no region's, OSError while a graph is captured (EBUSY), or where the driver
    cannot do it (ENOTSUP); nothing has changed then.
    """
    _call("ta_cuda_sleep", device, name, switch(keep, "keep"))


def wake(name, device=0):
    """Have a region's memory again, at the same addresses, with its contents if they were kept.

    MemoryError where the device has no room: the region sleeps on, and nothing is lost.
    """
    _call("ta_cuda_wake", device, name)
