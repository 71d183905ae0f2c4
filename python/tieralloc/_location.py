"""Where managed memory can be: devices, and the host or a NUMA node of it.

The names and the behaviour are those of cuda.core's Device and Host.
"""

import operator
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple, Type, Union

from . import _driver
from ._streams import Stream

if TYPE_CHECKING:
    from ._buffer import Buffer

_MOST = (1 << 31) - 1  # ids are numbers of 31 bits for the driver

_LEGACY_STREAM = 1  # CU_STREAM_LEGACY

# CUdevice_attribute
_MANAGED_MEMORY, _CONCURRENT_MANAGED_ACCESS = 83, 89

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

    def allocate(self, size: int, stream: Any = None) -> "Buffer":
        """A new buffer in the device's memory, for a stream: DeviceMemoryResource.allocate."""
        from ._device_memory import DeviceMemoryResource
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


class Host:
    """The host's memory; with numa_id that of one of its NUMA nodes.

    Host() leaves the node to the system, Host(numa_id=N) names it, and Host.numa_current()
    is the one closest to the thread that makes the call. There is one object for each.
    Raises ValueError for a numa_id that is no whole number, or negative.
    """

    __slots__ = ("_numa_id", "_is_numa_current")
    _numa_id: Optional[int]
    _is_numa_current: bool
    _instances: "Dict[Tuple[type, Optional[int], bool], Host]" = {}

    def __new__(cls, numa_id: Optional[int] = None, *, is_numa_current: bool = False) -> "Host":
        # True and 1 are equal, so they would be one key of _instances.
        if not isinstance(is_numa_current, bool):
            raise ValueError(f"is_numa_current must be a bool, got {is_numa_current!r}")
        if numa_id is not None and (not isinstance(numa_id, int) or isinstance(numa_id, bool) or not 0 <= numa_id <= _MOST):
            raise ValueError(f"numa_id must be a non-negative int, got {numa_id!r}: expected 0 to {_MOST}")
        if numa_id is not None and is_numa_current:
            raise ValueError(f"numa_id and is_numa_current are mutually exclusive, got numa_id={numa_id!r} and is_numa_current=True")
        key = (cls, None if numa_id is None else int(numa_id), is_numa_current)
        with _lock:
            found = cls._instances.get(key)
            if found is None:
                found = object.__new__(cls)
                object.__setattr__(found, "_numa_id", key[1])
                object.__setattr__(found, "_is_numa_current", is_numa_current)
                cls._instances[key] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Host cannot be changed: {name} = {value!r}")

    @classmethod
    def numa_current(cls) -> "Host":
        """The NUMA node closest to the thread that makes a call with it."""
        return cls(is_numa_current=True)

    @property
    def numa_id(self) -> Optional[int]:
        """The node's number; None: no node is named."""
        return self._numa_id

    @property
    def is_numa_current(self) -> bool:
        """Whether this is the calling thread's node."""
        return self._is_numa_current

    def __reduce__(self) -> "Tuple[Callable[..., Host], Tuple[type, Optional[int], bool]]":
        return _host, (type(self), self._numa_id, self._is_numa_current)

    def __repr__(self) -> str:
        if self._is_numa_current:
            return "Host.numa_current()"
        return "Host()" if self._numa_id is None else f"Host(numa_id={self._numa_id})"


def _host(cls: Type[Host], numa_id: Optional[int], is_numa_current: bool) -> Host:
    """What a pickled Host is again."""
    return cls(numa_id, is_numa_current=is_numa_current)


# What the functions of this package take for a place: also devices of others, see _foreign.
Location = Union[Device, Host]

KINDS = {"device": 1, "host": 2, "host_numa": 3, "host_numa_current": 4}  # CUmemLocationType
PROCESSORS: FrozenSet[str] = frozenset(("device", "host"))  # those that access memory


class Place(NamedTuple):
    """A location as the driver knows it: a name of KINDS, and the device's or node's number."""

    kind: str
    id: int = 0

    @property
    def location(self) -> Location:
        """The object that stands for it."""
        if self.kind == "device":
            return Device(self.id)
        if self.kind == "host_numa":
            return Host(self.id)
        return Host(is_numa_current=self.kind == "host_numa_current")


def _of_host(numa_id: Optional[int], is_numa_current: bool) -> Place:
    if is_numa_current:
        return Place("host_numa_current")
    return Place("host") if numa_id is None else Place("host_numa", numa_id)


def _foreign(value: Any) -> Optional[Place]:
    """The place that an object of another package names: a device of cuda.core, PyTorch, CuPy or numba, or cuda.core's host."""
    package, name = type(value).__module__.split(".")[0], type(value).__name__
    if package == "torch" and name == "device":
        if value.type == "cpu":
            return Place("host")
        if value.type == "cuda":
            return Place("device", Device(value.index).device_id)
    if package == "cuda" and name == "Host":
        host = Host(value.numa_id, is_numa_current=value.is_numa_current)
        return _of_host(host.numa_id, host.is_numa_current)
    if name == "Device" and package in ("cuda", "cupy", "numba"):
        return Place("device", Device(value.device_id if package == "cuda" else value.id).device_id)
    return None


def place_of(value: Any) -> Optional[Place]:
    """The place that an object names, or None for an object that names none."""
    if isinstance(value, Device):
        return Place("device", value.device_id)
    if isinstance(value, Host):
        return _of_host(value.numa_id, value.is_numa_current)
    return _foreign(value)


def is_cuda_13() -> bool:
    """Whether the driver has the operations for batches, and with them all kinds of places."""
    return _driver.has("cuMemPrefetchBatchAsync")


def _coerce_location(value: Any, allow_none: bool = False) -> Optional[Place]:
    """The place that an argument names.

    Raises TypeError for what is none, and for a NUMA node where the driver is older than
    CUDA 13; ValueError for None, unless that is allowed.
    """
    if value is None:
        if allow_none:
            return None
        raise ValueError("location is required: expected a Device or a Host, got None")
    place = place_of(value)
    if place is None:
        raise TypeError(f"location {value!r}: expected a Device, Host, or None")
    if place.kind not in PROCESSORS and not is_cuda_13():
        raise TypeError(f"location {value!r}: NUMA nodes require a CUDA 13 build of the driver (cuda-bindings 13.0+);"
                        " expected a Device or Host()")
    return place


def coerce_all(values: Any) -> List[Place]:
    """The places that the members of a list name, as _coerce_location has them."""
    return [place for place in map(_coerce_location, values) if place is not None]
