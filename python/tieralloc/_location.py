"""Where managed memory can be: on a device, on the host, or on a NUMA node of the host.

Host has the name and the behaviour of cuda.core's.
"""

import threading
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple, Type, Union

from . import _driver
from ._device import Device, foreign_ordinal

_MOST = (1 << 31) - 1  # ids are numbers of 31 bits for the driver

_lock = threading.Lock()


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
    """The place that an object of PyTorch, CuPy, numba or cuda.core names."""
    package, name = type(value).__module__.split(".")[0], type(value).__name__
    if package == "torch" and name == "device" and value.type == "cpu":
        return Place("host")
    if package == "cuda" and name == "Host":
        host = Host(value.numa_id, is_numa_current=value.is_numa_current)
        return _of_host(host.numa_id, host.is_numa_current)
    ordinal = foreign_ordinal(value)
    return None if ordinal is None else Place("device", ordinal)


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
