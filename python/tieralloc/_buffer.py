"""Memory that is known by its address and its size."""

import ctypes
import operator
import os
import sys
import weakref
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Type, TypeVar

from . import _contents, _dlpack, _driver, _streams

_MOST_BYTES, _MOST_ADDRESS = (1 << 63) - 1, (1 << 64) - 1

# CUpointer_attribute, and CUmemorytype
_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL = 2, 8, 9
_TYPE_DEVICE = 2

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


class _Reach(NamedTuple):
    """Who can use memory, and the device that it belongs to, -1 for none."""

    device_id: int
    on_device: bool
    on_host: bool


def _reach(address: int) -> _Reach:
    """What the driver says; memory that it does not know is ordinary memory of the host."""
    try:
        kind = _driver.pointer_attribute(_MEMORY_TYPE, address, ctypes.c_uint)
        device = _driver.pointer_attribute(_DEVICE_ORDINAL, address)
    except _driver.CUDAError:
        return _Reach(-1, False, True)
    return _Reach(device, True, kind != _TYPE_DEVICE or _is_managed(address))


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
    _near: Any = None  # what the driver told of the preferred location when that was set to Host.numa_current()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{type(self).__name__} is made by from_handle or by a memory resource")

    @classmethod
    def from_handle(cls: Type[_B], ptr: Any, size: int, mr: Any = None, owner: Any = None) -> _B:
        """A buffer over memory that there is already.

        With mr it is the buffer's: mr.deallocate(ptr, size, stream=...) is called when it
        is closed or collected, and its device_id, is_device_accessible and is_host_accessible are the
        buffer's, where it has them. owner is an object that is kept as long as the buffer is.
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

    def _attribute(self, name: str) -> Any:
        """What the resource says of all of its memory; None: it does not say."""
        self._open()
        return getattr(self._mr, name, None)

    @property
    def device_id(self) -> int:
        """The ordinal of the device that the memory belongs to, -1 for none."""
        found = self._attribute("device_id")
        return _reach(self._address).device_id if found is None else int(found)

    @property
    def is_device_accessible(self) -> bool:
        """Whether devices can use it."""
        found = self._attribute("is_device_accessible")
        return _reach(self._address).on_device if found is None else bool(found)

    @property
    def is_host_accessible(self) -> bool:
        """Whether the host's programs can use it."""
        found = self._attribute("is_host_accessible")
        return _reach(self._address).on_host if found is None else bool(found)

    def copy_to(self, dst: "Optional[Buffer]" = None, *, stream: Any) -> "Buffer":
        """Copy to a buffer of the same size, in the order of a stream, and return that.

        Without dst that is a new one of this buffer's memory_resource; ValueError where there is none,
        and for another size.
        """
        self._open()
        if dst is None:
            if self._mr is None:
                raise ValueError(f"dst: expected a buffer to copy to, since {self!r} has no memory_resource to make one")
            _contents.checked_stream(stream, "copy_to")
            dst = self._mr.allocate(self._size, stream)
        if not isinstance(dst, Buffer):
            raise TypeError(f"dst {dst!r}: expected a Buffer or None")
        _contents.copy(dst, self, stream, "copy_to")
        return dst

    def copy_from(self, src: "Buffer", *, stream: Any) -> None:
        """Copy from a buffer of the same size, in the order of a stream. ValueError for another size."""
        self._open()
        if not isinstance(src, Buffer):
            raise TypeError(f"src {src!r}: expected a Buffer")
        _contents.copy(self, src, stream, "copy_from")

    def fill(self, value: Any, *, stream: Any) -> None:
        """Fill with a pattern, in the order of a stream.

        value is a number from 0 to 255 (OverflowError), or an object with the buffer protocol (TypeError) of 1, 2
        or 4 bytes that the size is a multiple of (ValueError).
        """
        _contents.fill(self, value, stream)

    def close(self, stream: Any = None) -> None:
        """Give the memory back, after all that devices were given to do with it.

        stream is one of those that _streams.handle takes. A buffer may be closed again. It is a
        BufferError while there are views of the buffer by DLPack, and on Python 3.12 and later any;
        before, others must not be used any more.
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
            self._viewed()
            view.release()

    def _viewed(self) -> None:
        """A view has ended."""
        self._views -= 1

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        """The memory as unsigned bytes, for numba, CuPy and others (version 3)."""
        return {"shape": (self._size,), "strides": None, "typestr": "|u1", "data": (self._open(), False), "version": 3, "stream": None}

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None, dl_device: Optional[Tuple[int, int]] = None,
                   copy: Optional[bool] = None) -> Any:
        """The memory as int8, for NumPy, PyTorch, CuPy and others: numpy.from_dlpack(buffer). NumPy is needed.

        stream is not looked at: the order of work is the caller's. BufferError for a copy, and for
        another device than __dlpack_device__ has.
        """
        return _dlpack.capsule(self, max_version, dl_device, copy)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return _dlpack.device(self)

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
