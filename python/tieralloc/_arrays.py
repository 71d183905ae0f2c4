"""Arrays in device, mapped, pinned and managed memory. NumPy is needed from here on."""

from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from . import _driver, _numba, _streams
from ._blocks import Block


def describe(shape: Any, dtype: Any) -> Tuple[Tuple[int, ...], Any, Tuple[int, ...], int]:
    """An array's shape, type, strides and bytes, in C order."""
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
            raise TypeError(f"shape {shape!r}: expected whole numbers")
        if length < 0:
            raise ValueError(f"shape {shape!r}: expected lengths from 0 on")
    element = np.dtype(dtype)
    if element.hasobject or element.itemsize == 0:
        raise TypeError(f"dtype {dtype!r}: expected elements of a fixed size, and no objects")
    strides, step = [], element.itemsize
    for length in reversed(lengths):
        strides.append(step)
        step *= int(length)
    if step > np.iinfo(np.intp).max:
        raise ValueError(f"shape {shape!r} of {element}: {step} bytes are more than an array may have")
    return tuple(int(length) for length in lengths), element, tuple(reversed(strides)), step


def _interface(array: Any, address: int, strides: Any) -> Dict[str, Any]:
    """__cuda_array_interface__, version 3, where the legacy default stream is 1."""
    return {"shape": array.shape, "typestr": array.dtype.str, "descr": array.dtype.descr, "data": (address, False),
            "strides": strides, "version": 3, "stream": _streams.handle(array.stream) or 1}


class _Copies:
    """Copies of an array's whole contents, in the order of a stream.

    Without one they are in the order of the array's own, and done when the call returns.
    """

    shape: Tuple[int, ...]
    dtype: Any
    nbytes: int
    stream: Any
    device: int

    def _contiguous(self) -> int:
        """The address, of an array without gaps."""
        interface = self.__cuda_array_interface__  # type: ignore[attr-defined]
        if interface["strides"] is not None:
            raise ValueError("the array has gaps: copy from or to one that is C-contiguous")
        return int(interface["data"][0])

    def _check(self, other: Any) -> None:
        if tuple(other.shape) != tuple(self.shape) or other.dtype != self.dtype:
            raise ValueError(f"an array of shape {tuple(other.shape)} and type {other.dtype} does not fit one of shape"
                             f" {tuple(self.shape)} and type {self.dtype}")

    def _copy(self, call: str, to: int, source: int, stream: Any, must: bool = False) -> None:
        wait = must or stream is None or isinstance(stream, int) and stream == 0
        handle = _streams.handle(self.stream if wait else stream)
        with _driver.using(self.device):
            _driver.call(call, to, source, self.nbytes, handle)
            if wait:
                _driver.call("cuStreamSynchronize", handle)

    def copy_to_host(self, ary: Optional["np.ndarray[Any, Any]"] = None, stream: Any = 0) -> "np.ndarray[Any, Any]":
        """Copy to an array of the host, a new one if none is given, and return that."""
        address = self._contiguous()
        out = np.empty(self.shape, self.dtype) if ary is None else ary
        if not isinstance(out, np.ndarray):
            raise TypeError(f"ary {ary!r}: expected an array of NumPy")
        self._check(out)
        if not out.flags["C_CONTIGUOUS"] or not out.flags["WRITEABLE"]:
            raise ValueError("ary: expected an array that is C-contiguous and can be written to")
        if self.nbytes:
            self._copy("cuMemcpyDtoHAsync", out.ctypes.data, address, stream)
        return out

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy from an array of the host, or of the device."""
        address = self._contiguous()
        if hasattr(ary, "__cuda_array_interface__"):
            source = DeviceArray.over(ary, self.device)
            self._check(source)
            if self.nbytes:
                self._copy("cuMemcpyDtoDAsync", address, source._contiguous(), stream)
            return
        self._check(np.asanyarray(ary))
        host = np.ascontiguousarray(ary)
        if self.nbytes:
            self._copy("cuMemcpyHtoDAsync", address, host.ctypes.data, stream, host is not ary)  # its copy ends here


class DeviceArray(_Copies):
    """An array of the device, in C order."""

    def __init__(self, shape: Tuple[int, ...], dtype: Any, address: int, stream: Any, device: int, owner: Any,
                 strides: Optional[Tuple[int, ...]] = None) -> None:
        self.shape, self.dtype, dense, self.nbytes = describe(shape, dtype)
        self.strides = dense if strides is None else strides
        self.stream, self.device = stream, device
        self._dense, self._address, self._owner = self.strides == dense, address, owner

    @classmethod
    def over(cls, array: Any, device: int) -> "DeviceArray":
        """An array of anybody's that has __cuda_array_interface__."""
        interface = array.__cuda_array_interface__
        return cls(interface["shape"], interface["typestr"], int(interface["data"][0] or 0), interface.get("stream"),
                   device, array, interface.get("strides"))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.nbytes // int(self.dtype.itemsize)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        return _interface(self, self._address, None if self._dense else self.strides)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "np.ndarray[Any, Any]":
        """A copy on the host, as numba's arrays give one. ValueError where NumPy is to make none."""
        if copy is False:
            raise ValueError("an array of the device is copied to the host: use copy_to_host(), or let NumPy copy")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.device}, address={self._address:#x})"


class SharedArray(_Copies, np.ndarray):  # type: ignore[type-arg]
    """An array of NumPy in mapped or managed memory, which the device reaches at the same address."""

    device: int = 0  # hides the attribute of NumPy 2, which is "cpu" and cannot be set

    def __array_finalize__(self, source: Any) -> None:
        self.stream, self.device = getattr(source, "stream", 0), getattr(source, "device", 0)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        base: Any = self
        while isinstance(base, np.ndarray):
            base = base.base
        if self.nbytes and not isinstance(base, Block):  # a sum of such arrays, say, is the host's alone
            raise AttributeError("this array was made by NumPy: the device does not reach it")
        return _interface(self, self.ctypes.data, None if self.flags["C_CONTIGUOUS"] else self.strides)


def make(kind: str, shape: Any, dtype: Any, device: int, stream: Any, block: Callable[[int], Block]) -> Any:
    """An array over a block(bytes): numba's where the program uses numba, else the package's."""
    lengths, element, strides, nbytes = describe(shape, dtype)
    owner = block(nbytes) if nbytes else None
    cuda = _numba.cuda()
    if kind == "device":
        if cuda is not None:
            return _numba.device_array(cuda, device, lengths, strides, element, owner)
        return DeviceArray(lengths, element, owner.address if owner else 0, stream, device, owner)
    host = np.asarray(owner).view(element).reshape(lengths) if owner else np.empty(lengths, element)
    if kind == "pinned":
        return host
    if cuda is not None:
        return _numba.shared_array(cuda, device, kind, host, owner.address if owner else 0)
    array = host.view(SharedArray)
    array.stream, array.device = stream, device
    return array
