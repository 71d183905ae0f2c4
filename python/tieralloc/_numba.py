"""What the package has to do with numba, where the program uses it.

numba is never imported from here: a program that has not imported numba.cuda gets the
package's own arrays and streams.
"""

import contextlib
import ctypes
import sys
from typing import Any, ContextManager, Optional, Tuple


def cuda() -> Optional[Any]:
    """The module numba.cuda, if the program has imported it and it finds a device; never its simulator."""
    module = sys.modules.get("numba.cuda")
    if module is None:
        return None
    from numba.core import config
    if config.ENABLE_CUDASIM or not module.is_available():
        return None
    return module


def current(module: Any, device: int) -> ContextManager[Any]:
    """A with block in which numba's context of a device is the thread's."""
    if module.current_context().device.id == device:
        return contextlib.nullcontext()
    return module.gpus[device]  # type: ignore[no-any-return]


def _pointer(module: Any, address: int, size: int, finalizer: Any = None) -> Any:
    """numba's view of device memory."""
    from numba.cuda.cudadrv import driver
    # Versions with NVIDIA's bindings have their pointers, those without a number of ctypes.
    binding = getattr(driver, "binding", None) if getattr(driver, "USE_NV_BINDING", True) else None
    handle = ctypes.c_uint64(address) if binding is None else binding.CUdeviceptr(address)
    return module.MemoryPointer(module.current_context(), handle, size, finalizer=finalizer)


def device_array(module: Any, device: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: Any, block: Any) -> Any:
    """numba's array over a block of device memory; None: an array without elements."""
    from numba.cuda.cudadrv import devicearray
    with current(module, device):
        # The finalizer holds the block.
        pointer = None if block is None else _pointer(module, block.address, block.nbytes, lambda: block.release())
        return devicearray.DeviceNDArray(shape=shape, strides=strides, dtype=dtype, gpu_data=pointer)


def shared_array(module: Any, device: int, kind: str, host: Any, address: int) -> Any:
    """numba's array over memory that host and device reach at one address: "mapped" or "managed".

    host is NumPy's array over it, which keeps the memory.
    """
    from numba.cuda.cudadrv import devicearray
    view = host.view(devicearray.MappedNDArray if kind == "mapped" else devicearray.ManagedNDArray)
    with current(module, device):
        view.device_setup(_pointer(module, address, host.nbytes))
    view.alloc_size = host.nbytes  # which its copies ask for
    return view
