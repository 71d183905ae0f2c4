"""Memory that is known by its address and its size."""

import ctypes
import operator
import os
import sys
import weakref
from typing import Any, Callable, Dict, Optional, Type, TypeVar

from . import _driver, _streams

_MOST_BYTES, _MOST_ADDRESS = (1 << 63) - 1, (1 << 64) - 1

_IS_MANAGED = 8  # CU_POINTER_ATTRIBUTE_IS_MANAGED

# Python before 3.12 has no way for a class to give out its memory, but to be one of ctypes'.
_EXPORTS = sys.version_info >= (3, 12)

_B = TypeVar("_B", bound="Buffer")

_classes: "weakref.WeakValueDictionary[Any, Type[Any]]" = weakref.WeakValueDictionary()


def _exporting(cls: Type[_B], size: int) -> Type[_B]:
    """A subclass of cls that is an array of ctypes, too, for Python before 3.12."""
    found = _classes.get((cls, size))
    if found is None:
        body: Dict[str, Any] = {"_type_": ctypes.c_ubyte, "_length_": size, "__module__": cls.__module__, "__qualname__": cls.__qualname__,
                                "__doc__": cls.__doc__, "__getitem__": None, "__setitem__": None, "__iter__": None}
        found = _classes[cls, size] = type(ctypes.Array)(cls.__name__, (cls, ctypes.Array), body)
    return found


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number; TypeError for what is no number, ValueError for one that is not accepted."""
    expected = f"{what} {value!r}: expected a whole number from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        if isinstance(value, (bool, str, bytes, float)) or not hasattr(value, "__int__"):
            raise TypeError(expected) from None
        number = int(value)  # such as a CUdeviceptr of cuda.bindings
    if not least <= number <= most:
        raise ValueError(expected)
    return number


def _is_managed(address: int) -> bool:
    """Whether the driver says so; memory that it does not know is not."""
    try:
        return bool(_driver.pointer_attribute(_IS_MANAGED, address, ctypes.c_uint))
    except _driver.CUDAError:
        return False


def _give_back(process: int, deallocate: Callable[..., Any], address: int, size: int, stream: Any = None) -> None:
    """Free the memory of a buffer that a process has made. A forked child's copy of one has none."""
    if os.getpid() == process:
        deallocate(address, size, stream=stream)


class Buffer:
    """Memory by address and size: from_handle makes one.

    Where it is managed memory the host's programs read and write it: bytes(buffer),
    memoryview(buffer) and numpy.frombuffer(buffer, dtype) work, once the stream that the
    device has worked on is synchronised. Before Python 3.12 a memoryview of it has the
    format "<B": cast("B") makes one that can be indexed. The memory is that of the process
    which has made the buffer: a forked child's copy gives nothing back.
    """

    _address: int
    _size: int
    _mr: Any
    _owner: Any
    _managed: Optional[bool]
    _views: int
    _process: int
    _finalizer: Optional[weakref.finalize]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{type(self).__name__} is made by from_handle or by a memory resource")

    @classmethod
    def from_handle(cls: Type[_B], ptr: Any, size: int, mr: Any = None, owner: Any = None) -> _B:
        """A buffer over memory that there is already.

        With mr it is the buffer's: mr.deallocate(ptr, size, stream=...) is called when it
        is closed or collected. owner is an object that is kept as long as the buffer is.
        Without both the memory is somebody else's. Raises TypeError or ValueError for an
        address or a size that is none, and ValueError for both an mr and an owner.
        """
        if mr is not None and owner is not None:
            raise ValueError(f"mr and owner cannot be given together, got mr={mr!r} and owner={owner!r}")
        address = whole(ptr, "ptr", 1, _MOST_ADDRESS)
        return cls._make(address, whole(size, "size", 1, min(_MOST_BYTES, _MOST_ADDRESS - address)), mr, owner, None)

    @classmethod
    def _make(cls: Type[_B], address: int, size: int, mr: Any, owner: Any, managed: Optional[bool]) -> _B:
        """A buffer. managed: whether that is known to be managed memory; None: the driver is asked when it matters."""
        if not _EXPORTS and managed is None:
            try:
                managed = _is_managed(address)  # it decides the class
            except (RuntimeError, NotImplementedError):
                pass  # without a driver there is nothing that it could be asked for
        if _EXPORTS or not managed:
            self = object.__new__(cls)
        else:
            self = _exporting(cls, size).from_address(address)  # type: ignore[attr-defined]
        self._address, self._size, self._mr, self._owner, self._managed = address, size, mr, owner, managed
        self._views = 0
        self._process = os.getpid()
        self._finalizer = None
        if mr is not None:
            self._arm()
        return self

    @property
    def handle(self) -> int:
        """The address; 0 once the buffer is closed."""
        return self._address

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    @property
    def memory_resource(self) -> Any:
        """The mr that the memory goes back to, or None."""
        return self._mr

    @property
    def owner(self) -> Any:
        """The object that the memory belongs to, or None."""
        return self._owner

    @property
    def is_managed(self) -> bool:
        """Whether it is managed memory. The driver is asked once."""
        if self._managed is None:
            self._managed = _is_managed(self._open())
        return self._managed

    def close(self, stream: Any = None) -> None:
        """Give the memory back, after all that devices were given to do with it.

        stream is one of those that _streams.handle takes. A buffer may be closed again. On
        Python 3.12 and later it is a BufferError while there are views of the buffer;
        before, they must not be used any more.
        """
        if stream is not None:
            _streams.handle(stream)
        if self._views:
            raise BufferError(f"{self!r}: expected no views of it, and there are {self._views}")
        if self._finalizer is not None:
            owed = self._finalizer.detach()
            if owed is None:
                return  # the buffer is closed, or another thread is about it
            try:
                _give_back(self._process, self._mr.deallocate, self._address, self._size, stream)
            except BaseException:
                self._arm()
                raise
        self._address, self._mr, self._owner = 0, None, None

    def _arm(self) -> None:
        """Have the memory given back when the buffer is collected."""
        self._finalizer = weakref.finalize(self, _give_back, self._process, self._mr.deallocate, self._address, self._size)
        self._finalizer.atexit = False  # the process gives all back itself

    def _open(self) -> int:
        """The address of a buffer that is not closed."""
        if self._address == 0:
            raise ValueError(f"{self!r}: expected a buffer that is not closed")
        return self._address

    def _on_host(self) -> int:
        """The address, where the host may use it."""
        address = self._open()
        if not self.is_managed:
            raise BufferError(f"{self!r}: expected managed memory, which alone the host can use")
        return address

    def __bytes__(self) -> bytes:
        return bytes((ctypes.c_ubyte * self._size).from_address(self._on_host()))  # string_at ends at 2 GiB

    if _EXPORTS:
        def __buffer__(self, flags: int) -> memoryview:
            view = memoryview((ctypes.c_ubyte * self._size).from_address(self._on_host())).cast("B")
            self._views += 1
            return view

        def __release_buffer__(self, view: memoryview) -> None:
            self._views -= 1
            view.release()

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        """The memory as unsigned bytes, for numba, CuPy and others (version 3)."""
        return {"shape": (self._size,), "strides": None, "typestr": "|u1", "data": (self._open(), False), "version": 3, "stream": None}

    def __len__(self) -> int:
        return self._size

    def __enter__(self: _B) -> _B:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    # An array of ctypes has others of these.
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled: it is memory of this process")

    def __repr__(self) -> str:
        where = hex(self._address) if self._address else "closed"
        return f"{type(self).__name__}({where}, size={self._size})"
