"""Device memory in buffers, by the names of cuda.core."""

from typing import Any, Dict, Union

from . import _streams
from ._buffer import Buffer, whole
from ._location import Device, place_of

_LEGACY = 0


class DeviceMemoryResource:
    """Allocates memory of a device in the order of streams: tieralloc_cuda's, in buffers.

    device is a Device or an ordinal.
    """

    is_device_accessible, is_host_accessible, is_managed = True, False, False

    def __init__(self, device: Union[Device, int] = 0) -> None:
        import tieralloc_cuda
        place = place_of(device) or place_of(Device(device))  # type: ignore[arg-type]
        if place is None or place.kind != "device":
            raise TypeError(f"device {device!r}: expected a Device or an ordinal")
        self._manager = tieralloc_cuda.get_memory_manager(place.id)
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
