"""Device memory by tieralloc, with the classes of those who have managed it so far.

Managed memory as in cuda.core: Device, Host, ManagedMemoryResource, ManagedBuffer, and the
functions of tieralloc.utils.

    from tieralloc import Device, Host, ManagedMemoryResource
    from tieralloc.utils import advise, prefetch
    buffer = ManagedMemoryResource().allocate(size)
    buffer.preferred_location = Device(0)
    prefetch(buffer, Device(0), stream=stream)

MemoryManager, ArrayRequest, ArrayResponse and StreamGroups are cubie's: components of a program
share a device, and requests that do not fit are cut along the runs. default_memmgr is the process's
own manager, of device 0, which is made when it is first asked for.

The library is in the process where it is preloaded, or after load(path).
"""

import threading as _threading
from typing import Any as _Any

from . import utils
from ._buffer import Buffer
from ._device_memory import DeviceMemoryResource
from ._driver import CUDAError
from ._library import load
from ._location import Device, Host
from ._managed import ManagedBuffer, ManagedMemoryResource, ManagedMemoryResourceOptions
from ._manager import ArrayRequest, ArrayResponse, InstanceMemorySettings, MemoryManager, StreamGroups
from ._streams import Stream

__all__ = ["ArrayRequest", "ArrayResponse", "Buffer", "CUDAError", "Device", "DeviceMemoryResource", "Host", "InstanceMemorySettings", "ManagedBuffer",
           "ManagedMemoryResource", "ManagedMemoryResourceOptions", "MemoryManager", "Stream", "StreamGroups", "load", "utils"]

_making = _threading.Lock()


def __getattr__(name: str) -> _Any:
    """default_memmgr, of which there is one. Without a device it warns, and without the library it raises RuntimeError."""
    if name != "default_memmgr":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _making:
        if name not in globals():
            globals()[name] = MemoryManager(name="default")
        return globals()[name]
