"""Where the memory of arrays comes from: an instance's account, or the device without one."""

import ctypes
import errno
import functools
import os
import weakref
from typing import Any, Callable, Dict, Optional

from . import _driver, _library, _streams
from ._budget import Budget

_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTALLOC_...

def keeping_errno(action: Callable[..., None], *arguments: Any) -> None:
    """Call a function that may be called at any time, also between another's failure and the look at its errno."""
    before = ctypes.get_errno()
    try:
        action(*arguments)
    finally:
        ctypes.set_errno(before)


def _give_back(process: int, action: Callable[[], None]) -> None:
    """A forked child has only a copy of what says whose the memory is: it is the parent's."""
    if os.getpid() == process:
        keeping_errno(action)


class Block:
    """Memory that is given back with the last reference, or by release()."""

    def __init__(self, address: int, nbytes: int, give_back: Callable[[], None]) -> None:
        self.address, self.nbytes = address, nbytes
        self.release = weakref.finalize(self, _give_back, os.getpid(), give_back)
        self.release.atexit = False  # it may be in use to the very end, and goes with the process

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        """For memory that the host reaches: NumPy's arrays over it hold the block."""
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}


def free_of(device: int) -> Optional[int]:
    """Free bytes of a device, for a message; None where it does not say. errno stays."""
    before = ctypes.get_errno()
    try:
        return _driver.memory_info(device)[0]
    except Exception:
        return None
    finally:
        ctypes.set_errno(before)


def address_of(array: Any) -> int:
    """Where an array's memory begins; 0 for something that does not say it."""
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(array, name, None)
        if interface is not None:
            return int(interface["data"][0] or 0)
    return 0


def refused(what: str) -> Exception:
    """The error for an allocation that failed, by errno."""
    why = ctypes.get_errno()
    text = f"{what}: {os.strerror(why)}"
    if why == errno.ENOMEM:
        return MemoryError(text)
    if why == errno.ENOTSUP:
        return NotImplementedError(text)
    return RuntimeError(text)


def _too_much(budget: Budget, account: int, nbytes: int, kind: str) -> Exception:
    """The error for a block that an account does not get."""
    if ctypes.get_errno() == errno.ENOENT:
        return RuntimeError("the instance has left the manager")
    error = refused("")
    info = budget.get(account)
    group = info.group.decode("utf-8", "replace")
    free = free_of(budget.device)
    available = free if free is None else budget.available(group, free)[0]
    return type(error)(f"no {nbytes} bytes of {kind} memory for {info.name.decode('utf-8', 'replace')}, which has"
                       f" {info.bytes_live} of {info.cap} bytes, in group {group}, to which {available} are available,"
                       f" on device {budget.device}, which has {free} free{error}")


def _close_account(budget: Budget, address: int, number: int, handle: int, _: Any) -> None:
    """Give a block back; its stream is kept until then."""
    budget.free(address, number, handle)


def of_account(budget: Budget, account: int, kind: str, stream: Any) -> Callable[[int], Block]:
    """Blocks that an account is charged with."""
    handle = _streams.handle(stream)

    def block(nbytes: int) -> Block:
        address, number = budget.alloc(account, nbytes, kind, stream)
        if not address:
            raise _too_much(budget, account, nbytes, kind)
        return Block(address, nbytes, functools.partial(_close_account, budget, address, number, handle, stream))

    return block


_endings = 0  # how often all contexts have ended


def contexts_ended() -> None:
    """What there is without an account went with its context, and may be another's by now."""
    global _endings
    _endings += 1


def _unless_ended(endings: int, give_back: Callable[..., None], *arguments: Any) -> None:
    if endings == _endings:
        give_back(*arguments)


def _free_device(address: int, nbytes: int, device: int, handle: int, _: Any) -> None:
    _library.function("ta_cuda_free")(address, nbytes, device, handle)


def _free_managed(address: int, device: int, handle: int, _: Any) -> None:
    with _driver.beside_captures(device):
        _driver.finish(handle)
        _library.function("ta_managed_free")(address)


def _free_host(address: int, device: int, handle: int, _: Any) -> None:
    with _driver.beside_captures(device):
        _driver.finish(handle)
        _driver.result("cuMemFreeHost", address)


def of_device(device: int, kind: str, stream: Any) -> Callable[[int], Block]:
    """Blocks that no account is charged with."""
    handle = _streams.handle(stream)
    after = functools.partial(_unless_ended, _endings)

    def what(nbytes: int) -> str:
        return f"no {nbytes} bytes of {kind} memory on device {device}, which has {free_of(device)} free"

    def block(nbytes: int) -> Block:
        if kind == "device":
            address = _library.function("ta_cuda_malloc")(nbytes, device, handle)
            if not address:
                raise refused(what(nbytes))
            return Block(address, nbytes, functools.partial(after, _free_device, address, nbytes, device, handle, stream))
        if kind == "managed":
            address = _library.function("ta_managed_malloc")(nbytes, device)
            if not address:
                raise refused(what(nbytes))
            return Block(address, nbytes, functools.partial(after, _free_managed, address, device, handle, stream))
        out = ctypes.c_void_p()
        with _driver.using(device):
            code = _driver.result("cuMemHostAlloc", ctypes.byref(out), nbytes, _PORTABLE | (_MAPPED if kind == "mapped" else 0))
        if code != 0:
            raise MemoryError(f"{what(nbytes)}: {_driver.error_name(code)}")
        return Block(out.value or 0, nbytes, functools.partial(after, _free_host, out.value or 0, device, handle, stream))

    return block
