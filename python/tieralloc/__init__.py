"""tieralloc from Python: hints and tiers, device memory, managers and managed memory.

    hints       where this process's memory is wanted, which tier a block lies in, the report
    cuda        the device heap by hand; genesis has it by Genesis' names
    aio         device memory that is asked for ahead of need
    frameworks  PyTorch, CuPy and numba on the device heap
    manager     components of a program share a device
    managed     managed memory; utils has its operations

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

import importlib as _importlib
import threading as _threading
from typing import Any as _Any

# The module of each name. A module is loaded when one of its names is used: programs that want
# hints alone start without the rest.
_MODULES = {
    "ArrayRequest": "manager", "ArrayResponse": "manager", "Buffer": "_buffer",
    "CUDAError": "_driver", "Device": "_device", "DeviceMemoryResource": "_device",
    "Host": "_location", "InstanceMemorySettings": "manager", "ManagedBuffer": "managed",
    "ManagedMemoryResource": "managed", "ManagedMemoryResourceOptions": "managed",
    "MemoryManager": "manager", "Stream": "_streams", "StreamGroups": "manager",
    "load": "_library",
}

_SUBMODULES = ("aio", "cuda", "frameworks", "genesis", "hints", "managed", "manager", "utils")

__all__ = [*_MODULES, *_SUBMODULES]

_making = _threading.Lock()


def __getattr__(name: str) -> _Any:
    """A name of __all__, or default_memmgr, of which there is one.

    Without a device default_memmgr warns, and without the library it raises RuntimeError.
    """
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _MODULES:
        globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        return globals()[name]
    if name != "default_memmgr":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .manager import MemoryManager
    with _making:
        if name not in globals():
            globals()[name] = MemoryManager(name="default")
        return globals()[name]
