"""Who has managed memory mapped: a set that is the driver's state itself."""

import collections.abc
from typing import Any, Iterable, Iterator, List, Optional, Set, Tuple

from . import _driver, _ranges
from ._buffer import Buffer
from ._location import PROCESSORS, Device, Host, Location, Place, place_of


def _places(values: Any) -> Set[Place]:
    """The places of an iterable, all of which must be fit for accessed_by."""
    if isinstance(values, (str, bytes)) or not isinstance(values, collections.abc.Iterable):
        raise TypeError(f"accessed_by {values!r}: expected Devices and Host(), as a set or a list")
    places = set()
    for value in values:
        place = _place(value)
        places.add(place)
    return places


def _place(value: Any) -> Place:
    if value is None:
        raise TypeError("accessed_by None: expected a Device or Host()")
    place = _ranges.advice_place("set_accessed_by", value)
    assert place is not None
    return place


def _member(value: Any) -> Optional[Place]:
    """The place of what may be a member: None for what names none, or names a device that is not there."""
    try:
        place = place_of(value)
    except ValueError:
        return None
    return place if place is not None and place.kind in PROCESSORS else None


class AccessedBySetProxy(collections.abc.MutableSet):
    """The devices, and Host(), that a buffer stays mapped for (advice "set_accessed_by").

    Each look at it asks the driver, each change is an advice. Operators such as & and | give
    plain sets. add raises TypeError for what is no location, and for a NUMA node before
    CUDA 13; ValueError for a NUMA node. discard and "in" take anything.
    """

    __slots__ = ("_buffer",)

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> "Set[Any]":  # type: ignore[override]
        return set(it)

    def _now(self) -> List[Place]:
        """Those whom the driver knows."""
        room = _driver.device_count() + 1  # the devices, and the host
        ordinals = _ranges.get_ints(self._buffer, _ranges.Attribute.ACCESSED_BY, room)
        return [Place("host") if ordinal == _ranges.HOST else Place("device", ordinal)
                for ordinal in ordinals if ordinal != _ranges.NOWHERE]

    def _assign(self, wanted: Set[Place]) -> None:
        """Change the set into another one, by what differs; where the driver refuses that it is as before."""
        now = set(self._now())
        changes: List[Tuple[str, Place]] = [("set_accessed_by", place) for place in sorted(wanted - now)]
        changes += [("unset_accessed_by", place) for place in sorted(now - wanted)]
        for index, (advice, place) in enumerate(changes):
            try:
                _ranges.tell(self._buffer, advice, place)
            except _driver.CUDAError:
                for done, undone in reversed(changes[:index]):
                    _ranges.tell(self._buffer, "unset_accessed_by" if done == "set_accessed_by" else "set_accessed_by", undone)
                raise

    def __contains__(self, value: Any) -> bool:
        place = _member(value)
        return place is not None and place in self._now()

    def __iter__(self) -> Iterator[Location]:
        return iter([place.location for place in self._now()])

    def __len__(self) -> int:
        return len(self._now())

    def add(self, value: Location) -> None:
        """Have the buffer mapped for a device or the host."""
        _ranges._require([self._buffer], "accessed_by")
        _ranges.tell(self._buffer, "set_accessed_by", _place(value))

    def discard(self, value: Any) -> None:
        """Have it mapped no longer; nothing happens for others."""
        place = _member(value)
        if place is not None and place in self._now():
            _ranges.tell(self._buffer, "unset_accessed_by", place)

    def __ior__(self, it: Any) -> "AccessedBySetProxy":  # type: ignore[override,misc]
        self._assign(set(self._now()) | _places(it))
        return self

    def __ixor__(self, it: Any) -> "AccessedBySetProxy":  # type: ignore[override,misc]
        self._assign(set(self._now()) ^ _places(it))
        return self

    def __repr__(self) -> str:
        members = ", ".join(map(repr, self))
        return f"AccessedBySetProxy({{{members}}})"
