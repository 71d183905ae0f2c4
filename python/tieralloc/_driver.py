"""The functions of libcuda.so.1 that the package calls itself.

With the library preloaded they are its own where it stands before the driver, so what is
done here is accounted as anything else of the program is.
"""

import contextlib
import ctypes
import threading
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

_pointer, _int, _unsigned, _size = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t
_address = ctypes.c_uint64  # CUdeviceptr

NOT_READY = 600  # CUDA_ERROR_NOT_READY

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

# For each function the symbol, and what it takes; all return a CUresult.
_ENTRIES: Dict[str, Tuple[str, Sequence[Any]]] = {
    "cuInit": ("cuInit", [_unsigned]),
    "cuDriverGetVersion": ("cuDriverGetVersion", [_pointer]),
    "cuDeviceGetCount": ("cuDeviceGetCount", [_pointer]),
    "cuDeviceGetAttribute": ("cuDeviceGetAttribute", [_pointer, _int, _int]),
    "cuDevicePrimaryCtxRetain": ("cuDevicePrimaryCtxRetain", [_pointer, _int]),
    "cuCtxGetCurrent": ("cuCtxGetCurrent", [_pointer]),
    "cuCtxSetCurrent": ("cuCtxSetCurrent", [_pointer]),
    "cuCtxPushCurrent": ("cuCtxPushCurrent_v2", [_pointer]),
    "cuCtxPopCurrent": ("cuCtxPopCurrent_v2", [_pointer]),
    "cuCtxGetDevice": ("cuCtxGetDevice", [_pointer]),
    "cuCtxSynchronize": ("cuCtxSynchronize", []),
    "cuStreamCreate": ("cuStreamCreate", [_pointer, _unsigned]),
    "cuStreamDestroy": ("cuStreamDestroy_v2", [_pointer]),
    "cuStreamSynchronize": ("cuStreamSynchronize", [_pointer]),
    "cuStreamQuery": ("cuStreamQuery", [_pointer]),
    "cuStreamIsCapturing": ("cuStreamIsCapturing", [_pointer, _pointer]),
    "cuThreadExchangeStreamCaptureMode": ("cuThreadExchangeStreamCaptureMode", [_pointer]),
    "cuDeviceGetName": ("cuDeviceGetName", [_pointer, _int, _int]),
    "cuDeviceGetUuid": ("cuDeviceGetUuid_v2", [_pointer, _int]),
    "cuMemcpyAsync": ("cuMemcpyAsync", [_address, _address, _size, _pointer]),
    "cuMemsetD8Async": ("cuMemsetD8Async", [_address, ctypes.c_uint8, _size, _pointer]),
    "cuMemsetD16Async": ("cuMemsetD16Async", [_address, ctypes.c_uint16, _size, _pointer]),
    "cuMemsetD32Async": ("cuMemsetD32Async", [_address, _unsigned, _size, _pointer]),
    "cuMemcpyHtoDAsync": ("cuMemcpyHtoDAsync_v2", [_address, _pointer, _size, _pointer]),
    "cuMemcpyDtoHAsync": ("cuMemcpyDtoHAsync_v2", [_pointer, _address, _size, _pointer]),
    "cuMemcpyDtoDAsync": ("cuMemcpyDtoDAsync_v2", [_address, _address, _size, _pointer]),
    "cuMemGetInfo": ("cuMemGetInfo_v2", [_pointer, _pointer]),
    "cuMemAllocManaged": ("cuMemAllocManaged", [_pointer, _size, _unsigned]),
    "cuMemFree": ("cuMemFree_v2", [_address]),
    "cuMemHostAlloc": ("cuMemHostAlloc", [_pointer, _size, _unsigned]),
    "cuMemFreeHost": ("cuMemFreeHost", [_pointer]),
    "cuPointerGetAttribute": ("cuPointerGetAttribute", [_pointer, _int, _address]),
    "cuGetErrorName": ("cuGetErrorName", [_int, _pointer]),
}

_lock = threading.RLock()
_library: Optional[ctypes.CDLL] = None
_functions: Dict[str, Any] = {}
_contexts: Dict[int, int] = {}  # retained primary contexts by device


class CUDAError(RuntimeError):
    """The driver refused a call.

    code is its CUresult, name what the driver calls that.
    """

    def __init__(self, call: str, code: int) -> None:
        self.code, self.name = code, error_name(code)
        super().__init__(f"{call}: {self.name} ({code})")


def _driver() -> ctypes.CDLL:
    global _library
    if _library is None:
        try:
            _library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RuntimeError(f"there is no CUDA driver: {error}") from None
    return _library


def has(name: str) -> bool:
    """Whether the driver has a symbol, such as "cuMemPrefetchBatchAsync"."""
    return hasattr(_driver(), name)


def _function(name: str) -> Any:
    found = _functions.get(name)
    if found is None:
        symbol, arguments = _ENTRIES[name]
        try:
            found = getattr(_driver(), symbol)
        except AttributeError:
            raise NotImplementedError(f"the CUDA driver has no {symbol}") from None
        found.restype, found.argtypes = _int, list(arguments)
        _functions[name] = found
    return found


def result(name: str, *arguments: Any) -> int:
    """Call a function; return its CUresult."""
    return int(_function(name)(*arguments))


def call(name: str, *arguments: Any) -> None:
    """Call a function; raise CUDAError unless it succeeds."""
    code = result(name, *arguments)
    if code != 0:
        raise CUDAError(name, code)


def error_name(code: int) -> str:
    """The driver's name of a CUresult."""
    text = ctypes.c_char_p()
    try:
        if result("cuGetErrorName", code, ctypes.byref(text)) == 0 and text.value:
            return text.value.decode("ascii", "replace")
    except (RuntimeError, NotImplementedError):
        pass  # a name is not worth another error
    return f"CUDA error {code}"


def initialize() -> None:
    """cuInit, which every other function needs; it may be called again."""
    call("cuInit", 0)


def _number(name: str, *arguments: Any) -> int:
    out = _int()
    call(name, ctypes.byref(out), *arguments)
    return out.value


def driver_version() -> int:
    """What the driver supports, as 13000 for CUDA 13.0."""
    return _number("cuDriverGetVersion")


def device_count() -> int:
    """How many devices there are."""
    initialize()
    return _number("cuDeviceGetCount")


def device_attribute(attribute: int, device: int) -> int:
    """A CUdevice_attribute of a device."""
    initialize()
    return _number("cuDeviceGetAttribute", attribute, device)


def device_name(device: int) -> str:
    """What the driver calls a device."""
    initialize()
    text = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", text, len(text), device)
    return text.value.decode("utf-8", "replace")


def device_uuid(device: int) -> bytes:
    """The 16 bytes of the UUID of a device, or of the part of it that is one (MIG)."""
    initialize()
    out = (ctypes.c_ubyte * 16)()
    call("cuDeviceGetUuid", out, device)
    return bytes(out)


def primary_context(device: int) -> int:
    """The handle of a device's primary context, which stays retained to the end of the process."""
    with _lock:
        if device not in _contexts:
            initialize()
            out = _pointer()
            call("cuDevicePrimaryCtxRetain", ctypes.byref(out), device)
            _contexts[device] = out.value or 0
        return _contexts[device]


def current_context() -> int:
    """The handle of the calling thread's context, 0 without one."""
    initialize()
    out = _pointer()
    call("cuCtxGetCurrent", ctypes.byref(out))
    return out.value or 0


def current_device() -> Optional[int]:
    """The device of the calling thread's context, None without one."""
    return _number("cuCtxGetDevice") if current_context() else None


def set_current(device: int) -> None:
    """Make a device's primary context the calling thread's."""
    call("cuCtxSetCurrent", primary_context(device))


@contextlib.contextmanager
def using(device: int) -> Iterator[None]:
    """A with block in which a context of the device is the calling thread's.

    That is the thread's own where it has one of the device, else the primary one.
    """
    if current_device() == device:
        yield
        return
    call("cuCtxPushCurrent", primary_context(device))
    try:
        yield
    finally:
        call("cuCtxPopCurrent", ctypes.byref(_pointer()))


@contextlib.contextmanager
def beside_captures(device: int) -> Iterator[None]:
    """A using block whose calls belong to no graph that is being captured, and do not spoil one."""
    with using(device):
        mode = _int(_RELAXED)
        call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            result("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def finish(stream: int) -> None:
    """Wait until a stream has done what it was given, unless a graph is captured from it."""
    capturing = _int()
    if result("cuStreamIsCapturing", stream, ctypes.byref(capturing)) == 0 and not capturing.value:
        result("cuStreamSynchronize", stream)


def done(device: int, stream: int) -> bool:
    """Whether a stream has done what it was given. One that a graph is captured from has not, and must not be asked."""
    capturing = _int()
    with beside_captures(device):
        return (result("cuStreamIsCapturing", stream, ctypes.byref(capturing)) == 0 and not capturing.value
                and result("cuStreamQuery", stream) == 0)


def memory_info(device: int) -> Tuple[int, int]:
    """Bytes of a device that are free, and all it has."""
    free, total = _size(), _size()
    with using(device):
        call("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def pointer_attribute(attribute: int, pointer: int, kind: Any = _int) -> Any:
    """A CUpointer_attribute of an address, as a value of a ctypes type."""
    initialize()
    out = kind()
    call("cuPointerGetAttribute", ctypes.byref(out), attribute, pointer)
    return out.value
