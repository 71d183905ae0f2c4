"""What the operations on a Buffer need of it."""

from typing import Protocol


class Memory(Protocol):
    """Memory with an address and a size, as Buffer has it."""

    _views: int  # memoryviews and DLPack capsules that are left

    @property
    def size(self) -> int: ...

    @property
    def device_id(self) -> int: ...

    @property
    def is_managed(self) -> bool: ...

    @property
    def is_device_accessible(self) -> bool: ...

    @property
    def is_host_accessible(self) -> bool: ...

    def _open(self) -> int:
        """The address. ValueError once it is closed."""

    def _viewed(self) -> None:
        """One view is gone."""
