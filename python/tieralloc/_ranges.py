"""What the driver can be told about ranges of managed memory: the C functions ta_managed_*.

The arguments of each call are checked before the driver is told anything, and buffers before
all others.
"""

import collections.abc
import ctypes
import enum
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi, _driver, _library, _streams
from ._buffer import Buffer
from ._location import KINDS, PROCESSORS, Location, Place, _coerce_location, coerce_all, is_cuda_13

Targets = Union[Buffer, Sequence[Buffer]]
Locations = Union[Location, Sequence[Location]]


class _Advice(NamedTuple):
    number: int  # CUmem_advise
    kinds: frozenset  # of the places that it may name
    names: bool  # whether it has to name one


# As the CUDA driver API documents cuMemAdvise.
_ADVICE = {
    "set_read_mostly": _Advice(1, frozenset(KINDS), False),
    "unset_read_mostly": _Advice(2, frozenset(KINDS), False),
    "set_preferred_location": _Advice(3, frozenset(KINDS), True),
    "unset_preferred_location": _Advice(4, frozenset(KINDS), False),
    "set_accessed_by": _Advice(5, PROCESSORS, True),
    "unset_accessed_by": _Advice(6, PROCESSORS, True),
}


class Attribute(enum.IntEnum):
    """CUmem_range_attribute. A place is also given as a number: a device's ordinal, or one of the two below."""

    READ_MOSTLY = 1
    PREFERRED_LOCATION = 2
    ACCESSED_BY = 3
    LAST_PREFETCH_LOCATION = 4
    PREFERRED_LOCATION_TYPE = 5
    PREFERRED_LOCATION_ID = 6


HOST, NOWHERE = -1, -2  # CU_DEVICE_CPU, CU_DEVICE_INVALID

_KIND_NAMES = {number: name for name, number in KINDS.items()}


def _as_buffer(value: Any) -> Optional[Buffer]:
    """A buffer of ours, also over one of cuda.core; None for what is neither."""
    if isinstance(value, Buffer):
        return value
    if type(value).__module__.split(".")[0] == "cuda" and type(value).__name__ in ("Buffer", "ManagedBuffer"):
        return Buffer.from_handle(value.handle, value.size, owner=value)
    return None


def _is_list(value: Any) -> bool:
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, (str, bytes))


def _require(buffers: Iterable[Buffer], what: str) -> None:
    """ValueError unless all are open buffers of managed memory."""
    for buffer in buffers:
        buffer._open()
        if not buffer.is_managed:
            raise ValueError(f"{what} requires a managed-memory allocation, got {buffer!r}")


def _buffers(targets: Any, what: str) -> List[Buffer]:
    """The buffers of a list, which must be managed memory."""
    if not _is_list(targets):
        raise TypeError(f"{what}: expected a sequence of Buffers, got {targets!r}")
    if not targets:
        raise ValueError(f"{what}: expected at least one Buffer, got the empty sequence {targets!r}")
    found = []
    for index, target in enumerate(targets):
        buffer = _as_buffer(target)
        if buffer is None:
            raise TypeError(f"{what}: expected a sequence of Buffers, got {target!r} at {index}")
        found.append(buffer)
    _require(found, what)
    return found


def _targets(targets: Any, what: str) -> List[Buffer]:
    """The buffers of an argument that may also be a single one."""
    single = _as_buffer(targets)
    if single is None and not _is_list(targets):
        raise TypeError(f"{what}: expected a Buffer or a sequence of Buffers, got {targets!r}")
    return _buffers(targets if single is None else [single], what)


def _locations(locations: Any, count: int, what: str) -> Sequence[Any]:
    """One location for all targets, or one for each, as they are given."""
    if not _is_list(locations):
        return [locations]
    if len(locations) != count:
        raise ValueError(f"{what}: expected locations of the same length as the targets, {count}, got length {len(locations)}")
    return list(locations)


def _stream(stream: Any, what: str) -> int:
    if stream is None:
        raise TypeError(f"{what}: stream is required: expected a stream of this package, cuda.core, PyTorch or CuPy, or a handle, got None")
    return _streams.handle(stream)


def _checked(code: int, what: str) -> None:
    if code != 0:
        raise _driver.CUDAError(what, code)


def _told(what: str, buffers: Sequence[Buffer], places: Optional[Sequence[Place]], stream: int, batch: bool) -> None:
    """Call ta_managed_<what> for buffers, with places where it takes some. batch: it is one of CUDA 13's."""
    count = len(buffers)
    if batch and not is_cuda_13():
        raise NotImplementedError(f"{what} of {count} target{'s' * (count > 1)} requires CUDA 13: the driver has no batches")
    arguments: List[Any] = [(ctypes.c_void_p * count)(*[buffer.handle for buffer in buffers]),
                            (ctypes.c_size_t * count)(*[buffer.size for buffer in buffers]), count]
    if places is not None:
        arguments += [(_abi.Location * len(places))(*[(KINDS[place.kind], place.id) for place in places]), len(places)]
    if batch and stream <= 1:
        raise ValueError(f"{what}: expected a stream that is not the legacy default stream, got {stream:#x}")
    _checked(_library.function(f"ta_managed_{what}")(*arguments, stream), what)


def _moved(what: str, targets: List[Buffer], locations: Any, stream: Any, batch: bool) -> None:
    places = coerce_all(_locations(locations, len(targets), what))
    _told(what, targets, places, _stream(stream, what), batch or len(targets) > 1)


def advice_place(advice: str, location: Any) -> Optional[Place]:
    """The place that an advice of _ADVICE names; None for one that names none."""
    allowed = _ADVICE[advice]
    place = _coerce_location(location, allow_none=not allowed.names)
    if place is not None and place.kind not in allowed.kinds:
        raise ValueError(f"{advice} does not support location_type={place.kind!r}, got {location!r}:"
                         f" expected one of {', '.join(sorted(allowed.kinds))}")
    return place


def tell(buffer: Buffer, advice: str, place: Optional[Place]) -> None:
    """Give one advice that has been checked."""
    where = _abi.Location(0, 0) if place is None else _abi.Location(KINDS[place.kind], place.id)
    _checked(_library.function("ta_managed_advise")(buffer.handle, buffer.size, _ADVICE[advice].number, where), advice)
    if "preferred_location" in advice:
        buffer._near = None
        if place is not None and place.kind == "host_numa_current":
            buffer._near = preferred(buffer)


def preferred(buffer: Buffer) -> Optional[Place]:
    """The place where memory is kept if possible, as the driver tells it; None for none."""
    if is_cuda_13():
        kind = _KIND_NAMES.get(get_ints(buffer, Attribute.PREFERRED_LOCATION_TYPE, 1)[0])
        return None if kind is None else Place(kind, get_ints(buffer, Attribute.PREFERRED_LOCATION_ID, 1)[0])
    ordinal = get_ints(buffer, Attribute.PREFERRED_LOCATION, 1)[0]
    if ordinal == NOWHERE:
        return None
    return Place("host") if ordinal == HOST else Place("device", ordinal)


def _advice(advice: Any) -> str:
    """The name of an advice; those of cuda.bindings are accepted, too."""
    expected = f"advice {advice!r}: expected one of {', '.join(_ADVICE)}"
    name = advice
    if isinstance(advice, enum.Enum):
        name = advice.name.replace("CU_MEM_ADVISE_", "")
    if not isinstance(name, str):
        raise TypeError(expected)
    if name.lower() not in _ADVICE:
        raise ValueError(expected)
    return name.lower()


def advise(targets: Targets, advice: Any, location: Union[Location, Sequence[Optional[Location]], None] = None) -> None:
    """Tell the driver how managed memory will be used.

    advice is "set_read_mostly", "set_preferred_location", "set_accessed_by", one of those
    with "unset_" in place of "set_", or a CUmem_advise of cuda.bindings. Preferred locations
    are any place, accessed_by takes a Device or Host(); other advice needs no location, and
    the driver does not look at it. A sequence of targets takes one location for all, or one
    for each, by index. Raises ValueError for a buffer that is no managed memory, an advice or
    a location that is none of these, and locations of another length, TypeError for what cannot
    be one, and CUDAError where the driver refuses: of several targets the first ones are then
    advised.
    """
    buffers = _targets(targets, "advise")
    name = _advice(advice)
    places = [advice_place(name, where) for where in _locations(location, len(buffers), "advise")]
    for index, buffer in enumerate(buffers):
        tell(buffer, name, places[index if len(places) > 1 else 0])


def prefetch(targets: Targets, location: Locations, *, stream: Any) -> None:
    """Move managed memory to a place, in the order of a stream.

    A sequence of targets takes one location for all, or one for each, by index, and is one
    call of the driver (CUDA 13; NotImplementedError before). Raises ValueError for a buffer
    that is no managed memory, locations of another length, no location, and for several
    targets on the legacy default stream; TypeError for what is no buffer, location or
    stream, and for NUMA nodes before CUDA 13; CUDAError where the driver refuses.
    """
    _moved("prefetch", _targets(targets, "prefetch"), location, stream, False)


def discard(targets: Targets, *, stream: Any) -> None:
    """Tell the driver that contents are of no further use, in the order of a stream.

    What is read there afterwards means nothing, until it is written or prefetched. CUDA 13,
    also for one target. Raises as prefetch does.
    """
    _told("discard", _targets(targets, "discard"), None, _stream(stream, "discard"), True)


def discard_prefetch(targets: Targets, location: Locations, *, stream: Any) -> None:
    """Move managed memory to a place without its contents, in the order of a stream.

    CUDA 13, also for one target. Locations and errors are those of prefetch.
    """
    _moved("discard_prefetch", _targets(targets, "discard_prefetch"), location, stream, True)


def prefetch_batch(stream: Any, buffers: Sequence[Buffer], locations: Locations) -> None:
    """prefetch for a sequence of buffers; a single one is a TypeError."""
    _moved("prefetch", _buffers(buffers, "prefetch_batch"), locations, stream, False)


def discard_batch(stream: Any, buffers: Sequence[Buffer]) -> None:
    """discard for a sequence of buffers; a single one is a TypeError."""
    _told("discard", _buffers(buffers, "discard_batch"), None, _stream(stream, "discard_batch"), True)


def discard_prefetch_batch(stream: Any, buffers: Sequence[Buffer], locations: Locations) -> None:
    """discard_prefetch for a sequence of buffers; a single one is a TypeError."""
    _moved("discard_prefetch", _buffers(buffers, "discard_prefetch_batch"), locations, stream, True)


def get_ints(buffer: Buffer, attribute: int, count: int) -> List[int]:
    """An attribute of all of a buffer, as the driver has it."""
    _require([buffer], "a query")
    out = (ctypes.c_int * count)()
    _checked(_library.function("ta_managed_get")(buffer.handle, buffer.size, int(attribute), out, count), f"attribute {int(attribute)}")
    return list(out)


def _get_int_attr(buf: Buffer, attribute: Any) -> int:
    """An attribute that is one number. It may be a CUmem_range_attribute of cuda.bindings."""
    return get_ints(buf, int(attribute), 1)[0]
