"""What is asked of a MemoryManager, and what it answers."""

import dataclasses
import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

MEMORY_TYPES = ("device", "mapped", "pinned", "managed")
"""Where an array may be: on the device; on the host, where the device reaches it, too; on the
host, locked; and in managed memory, which moves to where it is used."""

Shape = Tuple[int, ...]

_MOST = (1 << 63) - 1  # the largest length


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"'{name}' must be a whole number (got {value!r}, which is a {type(value).__name__})")
    if value < least:
        raise ValueError(f"'{name}' must be >= {least}: {value}")
    if value > _MOST:
        raise ValueError(f"'{name}' must be <= {_MOST}: {value}")


def _check_dtype(name: str, value: Any) -> None:
    import numpy as np
    if not any(value == known for known in (np.float64, np.float32, np.int32)):
        raise ValueError(f"'{name}' must be numpy.float64, numpy.float32 or numpy.int32 (got {value!r})")


def _check_shape(name: str, value: Any) -> None:
    if not isinstance(value, tuple):
        raise TypeError(f"'{name}' must be a tuple of whole numbers (got {value!r}, which is a {type(value).__name__})")
    for length in value:
        _whole(name, length, 0)


def _check_memory(name: str, value: Any) -> None:
    if value not in MEMORY_TYPES:
        raise ValueError(f"'{name}' must be one of {', '.join(map(repr, MEMORY_TYPES))} (got {value!r})")


def _check_axis(name: str, value: Any) -> None:
    if value is not None:
        _whole(name, value, 0)


def _check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"'{name}' must be True or False (got {value!r}, which is a {type(value).__name__})")


def _check_runs(name: str, value: Any) -> None:
    _whole(name, value, 1)


def _check_dict(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise TypeError(f"'{name}' must be a dict (got {value!r}, which is a {type(value).__name__})")


class _Checked:
    """Checks what its attributes are set to, at first and later; others cannot be set."""

    _checks: Mapping[str, Optional[Callable[[str, Any], None]]]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._checks:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        check = self._checks[name]
        if check is not None:
            check(name, value)
        super().__setattr__(name, value)


@dataclasses.dataclass
class ArrayRequest(_Checked):
    """An array that is wanted.

    dtype             numpy.float64, numpy.float32 or numpy.int32
    shape             a tuple of lengths
    memory            one of MEMORY_TYPES
    chunk_axis_index  the axis of the runs, along which the array may be cut; None: it has none
    unchunkable       True: the array is never cut
    total_runs        how many runs there are in all, at least 1

    A wrong type raises TypeError, and a value that is not accepted ValueError.
    """

    dtype: Any
    shape: Shape = (1, 1, 1)
    memory: str = "device"
    chunk_axis_index: Optional[int] = 2
    unchunkable: bool = False
    total_runs: int = 1

    _checks = {"dtype": _check_dtype, "shape": _check_shape, "memory": _check_memory, "chunk_axis_index": _check_axis,
               "unchunkable": _check_flag, "total_runs": _check_runs}

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        import numpy as np
        return int(np.dtype(self.dtype).itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array."""
        return math.prod(self.shape) * self.itemsize


@dataclasses.dataclass
class ArrayResponse(_Checked):
    """What an instance got of its requests.

    arr             the arrays by their labels; the manager takes out those that a later queue replaces where room
                    is short, and all of them when the instance gives way
    chunks          into how many chunks the runs are cut
    chunk_length    how many runs a chunk has; the last may have fewer
    chunked_shapes  the shape of each array by its label
    """

    arr: Dict[str, Any] = dataclasses.field(default_factory=dict)
    chunks: int = 1
    chunk_length: int = 1
    chunked_shapes: Dict[str, Shape] = dataclasses.field(default_factory=dict)

    _checks = {"arr": _check_dict, "chunks": None, "chunk_length": None, "chunked_shapes": _check_dict}


Requests = Dict[str, ArrayRequest]


def is_request_chunkable(request: ArrayRequest) -> bool:
    """Whether an array may be cut: it has an axis of runs, with more than one, and is not unchunkable."""
    axis = request.chunk_axis_index
    return not request.unchunkable and axis is not None and axis < len(request.shape) and request.shape[axis] != 1


def check_requests(requests: Any) -> None:
    """TypeError unless it is a dict of ArrayRequests."""
    if not isinstance(requests, dict):
        raise TypeError(f"Expected dict for requests, got {type(requests)}")
    for key, request in requests.items():
        if not isinstance(request, ArrayRequest):
            raise TypeError(f"Expected ArrayRequest for {key}, got {type(request)}")


def get_portioned_request_size(requests: Mapping[Any, Requests]) -> Tuple[int, int]:
    """Bytes of the arrays that may be cut, and of those that may not, of all instances' requests."""
    sizes = {True: 0, False: 0}
    for wanted in requests.values():
        for request in wanted.values():
            sizes[is_request_chunkable(request)] += request.nbytes
    return sizes[True], sizes[False]


def replace_with_chunked_size(shape: Shape, axis_index: int, chunked_size: int) -> Shape:
    """A shape with another length of one axis."""
    return tuple(chunked_size if i == axis_index else length for i, length in enumerate(shape))
