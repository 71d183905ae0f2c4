"""Managed memory: buffers with advice as properties, and what allocates them.

The names and the behaviour are those of cuda.core's ManagedBuffer and ManagedMemoryResource.
"""

import ctypes
import dataclasses
import errno
from typing import Any, Dict, Iterable, Optional, Union

from . import _driver, _library, _ranges, _streams
from ._accessed_by import AccessedBySetProxy, _places
from ._buffer import Buffer, whole
from ._location import Device, Host, Location, Place, _coerce_location, place_of
from ._ranges import Attribute, _get_int_attr

__all__ = ["ManagedBuffer", "ManagedMemoryResource", "ManagedMemoryResourceOptions", "_get_int_attr"]

_MOST_BYTES, _MOST_ID = (1 << 63) - 1, (1 << 31) - 1

_HOST_NUMA_ID = 134  # CUdevice_attribute: the node closest to a device


class ManagedBuffer(Buffer):
    """Managed memory, with what the driver is told of it as properties.

    ManagedMemoryResource.allocate makes one, or from_handle, for managed memory of any
    origin; whether it is such memory is looked at when an operation needs it (ValueError).
    The getters ask the driver. A NUMA node as a location needs CUDA 13 (TypeError before).
    """

    @property
    def read_mostly(self) -> bool:
        """Whether copies for reading are kept wherever the memory is read."""
        return _get_int_attr(self, Attribute.READ_MOSTLY) != 0

    @read_mostly.setter
    def read_mostly(self, value: bool) -> None:
        _ranges._require([self], "read_mostly")
        if not isinstance(value, int) and type(value).__name__ not in ("bool_", "bool"):  # as NumPy's are called
            raise TypeError(f"read_mostly {value!r}: expected True or False")
        _ranges.tell(self, "set_read_mostly" if value else "unset_read_mostly", None)

    @property
    def preferred_location(self) -> Optional[Location]:
        """The Device or Host where the memory is kept if possible, or None; it may be set to any of these.

        Host.numa_current() is the node of the thread that set it, and what the driver tells then is
        that node: it reads as it was set on the same buffer, as long as the driver's word is the
        same. Before CUDA 13 a host is just Host().
        """
        place = _ranges.preferred(self)
        if place is None:
            return None
        return Host.numa_current() if place == self._near else place.location

    @preferred_location.setter
    def preferred_location(self, value: Optional[Location]) -> None:
        _ranges._require([self], "preferred_location")
        place = _coerce_location(value, allow_none=True)
        _ranges.tell(self, "unset_preferred_location" if place is None else "set_preferred_location", place)

    @property
    def accessed_by(self) -> AccessedBySetProxy:
        """Those that the memory stays mapped for, as a live set.

        An assignment checks all members first, and then changes what differs.
        """
        return AccessedBySetProxy(self)

    @accessed_by.setter
    def accessed_by(self, value: Iterable[Location]) -> None:
        _ranges._require([self], "accessed_by")
        AccessedBySetProxy(self)._assign(_places(value))

    def prefetch(self, location: Location, *, stream: Any) -> None:
        """utils.prefetch of this buffer."""
        _ranges.prefetch(self, location, stream=stream)

    def discard(self, *, stream: Any) -> None:
        """utils.discard of this buffer."""
        _ranges.discard(self, stream=stream)

    def discard_prefetch(self, location: Location, *, stream: Any) -> None:
        """utils.discard_prefetch of this buffer."""
        _ranges.discard_prefetch(self, location, stream=stream)


@dataclasses.dataclass
class ManagedMemoryResourceOptions:
    """Where the memory of a resource is kept if possible.

    preferred_location_type says what preferred_location is: "device" an ordinal; "host"
    None; "host_numa" a node's number, or None for the node closest to the current device.
    Without it that is a device's ordinal, -1 for the host, a Device or Host, or None for no
    preference.
    """

    preferred_location: Union[int, Location, None] = None
    preferred_location_type: Optional[str] = None

    def place(self) -> Optional[Place]:
        """The place that is preferred. ValueError or TypeError for what is none."""
        where, kind = self.preferred_location, self.preferred_location_type
        if kind is None:
            if where is None or place_of(where) is not None:
                return _coerce_location(where, allow_none=True)
            number = whole(where, "preferred_location", -1, _MOST_ID)
            return Place("host") if number == _ranges.HOST else _coerce_location(Device(number))
        if kind == "device":
            return _coerce_location(Device(whole(where, "preferred_location", 0, _MOST_ID)))
        if kind == "host":
            if where is not None:
                raise ValueError(f"preferred_location {where!r}: expected None with preferred_location_type 'host'")
            return Place("host")
        if kind == "host_numa":
            node = _driver.device_attribute(_HOST_NUMA_ID, Device().device_id) if where is None else where
            return _coerce_location(Host(whole(node, "preferred_location", 0, _MOST_ID)))
        raise ValueError(f"preferred_location_type {kind!r}: expected 'device', 'host', 'host_numa' or None")


class ManagedMemoryResource:
    """Allocates managed memory, in the primary context of a device, under that device's limits.

    device is a Device or an ordinal; without it the device that is preferred, else the
    current one, else the first. options are ManagedMemoryResourceOptions, or a dict of them.
    """

    def __init__(self, options: Union[ManagedMemoryResourceOptions, Dict[str, Any], None] = None, *,
                 device: Union[Device, int, None] = None) -> None:
        if isinstance(options, dict):
            options = ManagedMemoryResourceOptions(**options)
        if not isinstance(options, (ManagedMemoryResourceOptions, type(None))):
            raise TypeError(f"options {options!r}: expected ManagedMemoryResourceOptions, a dict or None")
        self._preferred = None if options is None else options.place()
        self._device: Optional[int] = None
        if device is not None:
            place = place_of(device) or place_of(Device(device))  # type: ignore[arg-type]
            if place is None or place.kind != "device":
                raise TypeError(f"device {device!r}: expected a Device, an ordinal or None")
            self._device = place.id
        elif self._preferred is not None and self._preferred.kind == "device":
            self._device = self._preferred.id

    @property
    def device_id(self) -> int:
        """The ordinal of the device that is preferred, -1 where that is none."""
        return self._preferred.id if self._preferred is not None and self._preferred.kind == "device" else -1

    @property
    def preferred_location(self) -> Optional[Location]:
        """Where the memory is kept if possible, or None."""
        return None if self._preferred is None else self._preferred.location

    is_device_accessible = is_host_accessible = is_managed = True

    def allocate(self, size: int, stream: Any = None) -> ManagedBuffer:
        """A new buffer, for all streams at once; stream is looked at, and not needed.

        Raises MemoryError where there is no room under the limits, NotImplementedError
        where the device has no managed memory, and OSError (ENODEV) where the library
        serves no devices, being switched off.
        """
        size = whole(size, "size", 1, _MOST_BYTES)
        if stream is not None:
            _streams.handle(stream)
        device = Device().device_id if self._device is None else self._device
        ctypes.set_errno(0)
        address = _library.function("ta_managed_malloc")(size, device)
        if not address:
            self._fail(ctypes.get_errno(), size, device)
        buffer = ManagedBuffer._make(address, size, self, None, True)
        if self._preferred is not None:
            _ranges.tell(buffer, "set_preferred_location", self._preferred)
        return buffer

    @staticmethod
    def _fail(number: int, size: int, device: int) -> None:
        what = f"{size} bytes of managed memory on device {device}"
        if number == errno.ENOMEM:
            raise MemoryError(f"there is no room for {what}")
        if number == errno.ENOTSUP:
            raise NotImplementedError(f"{what}: the device has no managed memory")
        raise OSError(number, f"{what}: tieralloc serves no such device (it does not with TA_CUDA=0 or TA_DISABLE=1)")

    def deallocate(self, ptr: Any, size: int, stream: Any = None) -> None:
        """Give memory back, after all that devices were given to do with it."""
        _ranges._checked(_library.function("ta_managed_free")(whole(ptr, "ptr", 0, (1 << 64) - 1)), f"free of {ptr!r}")

    def close(self) -> None:
        """Does nothing: the memory belongs to the buffers."""

    def __repr__(self) -> str:
        return f"ManagedMemoryResource(device={self._device}, preferred_location={self.preferred_location!r})"
