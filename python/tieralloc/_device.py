"""Devices, and their memory in buffers. The names and the behaviour are those of cuda.core."""

import operator
import threading
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

from . import _driver, _streams, cuda
from ._buffer import Buffer, whole
from ._streams import Stream

_LEGACY_STREAM = 1  # CU_STREAM_LEGACY

# CUdevice_attribute
_MANAGED_MEMORY, _CONCURRENT_MANAGED_ACCESS = 83, 89

_LEGACY = 0

_lock = threading.Lock()


class DeviceProperties(NamedTuple):
    """What a device can do with managed memory.

    managed_memory: it has such memory at all; concurrent_managed_access: it and the host
    use it at the same time, which advice and prefetches to the device need.
    """

    managed_memory: bool
    concurrent_managed_access: bool


class Context(NamedTuple):
    """A context of a device: the CUcontext as a number."""

    handle: int
    device: "Device"


class Device:
    """A device by its ordinal; without one that of the thread's current context, or the first.

    There is one object for each device. Raises TypeError for what is no ordinal, and
    ValueError for one that no device has.
    """

    __slots__ = ("_ordinal",)
    _ordinal: int
    _instances: "Dict[Tuple[type, int], Device]" = {}

    def __new__(cls, ordinal: Optional[int] = None) -> "Device":
        if ordinal is None:
            ordinal = _driver.current_device() or 0
        expected = f"device ordinal {ordinal!r}: expected a whole number"
        if isinstance(ordinal, bool):
            raise TypeError(expected)
        try:
            number = operator.index(ordinal)
        except TypeError:
            raise TypeError(expected) from None
        key = (cls, number)
        found = cls._instances.get(key)
        if found is not None:
            return found
        count = _driver.device_count()
        if not 0 <= number < count:
            raise ValueError(f"{expected} from 0 to {count - 1}")
        with _lock:
            found = cls._instances.get(key)
            if found is None:
                found = object.__new__(cls)
                object.__setattr__(found, "_ordinal", number)
                cls._instances[key] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Device cannot be changed: {name} = {value!r}")

    @classmethod
    def get_all_devices(cls) -> "Tuple[Device, ...]":
        """All devices of the machine, by ordinal."""
        return tuple(cls(ordinal) for ordinal in range(_driver.device_count()))

    @property
    def device_id(self) -> int:
        """The ordinal."""
        return self._ordinal

    @property
    def properties(self) -> DeviceProperties:
        """What the device can do with managed memory."""
        return DeviceProperties(*(bool(_driver.device_attribute(attribute, self._ordinal))
                                  for attribute in (_MANAGED_MEMORY, _CONCURRENT_MANAGED_ACCESS)))

    @property
    def name(self) -> str:
        """What the driver calls it."""
        return _driver.device_name(self._ordinal)

    @property
    def uuid(self) -> str:
        """Its UUID, as in 01234567-89ab-cdef-0123-456789abcdef."""
        import uuid  # a slow one, which few need
        return str(uuid.UUID(bytes=_driver.device_uuid(self._ordinal)))

    @property
    def context(self) -> Context:
        """The calling thread's context, where that is one of the device; else the primary one, which stays retained."""
        with _driver.using(self._ordinal):
            return Context(_driver.current_context(), self)

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        """A new buffer in the device's memory, for a stream: DeviceMemoryResource.allocate."""
        return DeviceMemoryResource(self).allocate(size, stream)

    def set_current(self) -> None:
        """Make the device's primary context the calling thread's."""
        _driver.set_current(self._ordinal)

    def create_stream(self) -> Stream:
        """A new stream of the device."""
        return Stream(self._ordinal)

    @property
    def default_stream(self) -> Stream:
        """The device's legacy default stream, which batches and discards do not accept."""
        return Stream(self._ordinal, _LEGACY_STREAM)

    def sync(self) -> None:
        """Wait until the device has done all that its context was given."""
        with _driver.using(self._ordinal):
            _driver.call("cuCtxSynchronize")

    def __reduce__(self) -> "Tuple[Callable[..., Device], Tuple[int]]":
        return type(self), (self._ordinal,)

    def __repr__(self) -> str:
        return f"Device({self._ordinal})"


def foreign_ordinal(value: Any) -> Optional[int]:
    """The ordinal of a device of PyTorch, cuda.core, CuPy or numba, or None."""
    package, name = type(value).__module__.split(".")[0], type(value).__name__
    if package == "torch" and name == "device" and value.type == "cuda":
        return Device(value.index).device_id
    if name == "Device" and package in ("cuda", "cupy", "numba"):
        return Device(value.device_id if package == "cuda" else value.id).device_id
    return None


def _ordinal(device: Any) -> int:
    """The ordinal that a Device, a device of another library or a number is."""
    found = foreign_ordinal(device)
    if found is not None:
        return found
    try:
        return (device if isinstance(device, Device) else Device(device)).device_id
    except TypeError:
        raise TypeError(f"device {device!r}: expected a Device or an ordinal") from None


class DeviceMemoryResource:
    """Allocates memory of a device in the order of streams: tieralloc.cuda's, in buffers.

    device is a Device or an ordinal.
    """

    is_device_accessible, is_host_accessible, is_managed = True, False, False

    def __init__(self, device: Union[Device, int] = 0) -> None:
        self._manager = cuda.get_memory_manager(_ordinal(device))
        self._streams: Dict[int, Any] = {}  # the stream that each block is for

    @property
    def device_id(self) -> int:
        """The device's ordinal."""
        return int(self._manager.device)

    def allocate(self, size: int, stream: Any = None) -> Buffer:
        """A new buffer for a stream; without one for the legacy default stream.

        MemoryError where there is no room, OSError where the library does not serve the device.
        """
        size = whole(size, "size", 1, (1 << 63) - 1)
        address = self._manager.allocate_memory(size, _streams.handle(stream))
        self._streams[address] = stream
        return Buffer._make(address, size, self, None, False)

    def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
        """Give a block back, after what a stream was given so far; without one that of its allocation.

        ValueError for what is no block of the device.
        """
        address = whole(ptr, "ptr", 0, (1 << 64) - 1)
        its = self._streams.get(address, _LEGACY)
        self._manager.free_memory(address, stream=_streams.handle(its if stream is None else stream))
        self._streams.pop(address, None)

    def close(self) -> None:
        """Does nothing: the memory belongs to the buffers."""

    def __repr__(self) -> str:
        return f"DeviceMemoryResource(device={self.device_id})"
