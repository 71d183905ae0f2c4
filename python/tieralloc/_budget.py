"""The C side of a MemoryManager: its parts, its accounts and its blocks (tieralloc.h, ta_mm)."""

import contextlib
import ctypes
import errno
import itertools
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from . import _driver, _library, _streams
from ._abi import Asked, Chunking, Info, Request, evict_callback
from ._requests import ArrayRequest

KINDS = {"device": 0, "pinned": 1, "mapped": 2, "managed": 3}
MODES = {"passive": 0, "active": 1}

_MOST_NAME = 47  # bytes
_MOST_BYTES = (1 << 63) - 1

ASK = ctypes.c_size_t(-1).value
"""As what is free: what the device has, as its heap counts."""

SMALL = 1 << 20
"""Blocks below it are cut from small segments."""

MOST = 1 << 62
"""What the library counts with: bytes that are shared, and runs."""


def check_name(what: str, name: str) -> bytes:
    """A name as the library takes it."""
    if not isinstance(name, str):
        raise TypeError(f"{what} {name!r}: expected text")
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) > _MOST_NAME or b"\0" in raw:
        raise ValueError(f"{what} {name!r}: expected at most {_MOST_NAME} bytes, without a zero")
    return raw


def short_name(name: str) -> bytes:
    """As much of a name as the library takes."""
    raw = name.encode("utf-8", "replace").replace(b"\0", b"")
    return raw if len(raw) <= _MOST_NAME else raw[:_MOST_NAME].decode("utf-8", "ignore").encode("utf-8")


class Budget:
    """The memory of a device that accounts share. Accounts are numbers that are used once.

    It lives as long as one of its blocks, or whoever has it.
    """

    def __init__(self, device: int, total: int, name: str) -> None:
        self.device = device
        _driver.initialize()
        address = _library.function("ta_mm_create")(device, total, check_name("name", name))
        if not address:
            why = ctypes.get_errno()
            raise RuntimeError(f"no memory manager of {total} bytes on device {device}: {os.strerror(why)}")
        self._address = address
        self._lock = threading.Lock()
        self._next = 1
        self._evictions: Dict[int, Callable[[], None]] = {}
        self._leaving: Set[int] = set()  # accounts that go when their last block does
        self._streams: Dict[int, Any] = {}  # that accounts used last: the library may ask them whether they are done
        self._numbers = itertools.count(1)
        self._blocks: Dict[int, int] = {}  # numbers of blocks by their addresses
        mine = weakref.ref(self)

        def evict(account: int, _: Any) -> None:
            """Called by the library; ctypes gives what it raises to sys.unraisablehook."""
            budget = mine()
            action = budget._evictions.get(account) if budget is not None else None
            if action is not None:
                action()

        self._evict = evict_callback(evict)
        weakref.finalize(self, _destroy, address, self._evict).atexit = False

    def _call(self, name: str, *arguments: Any) -> int:
        return int(_library.function(name)(self._address, *arguments))

    def set_mode(self, mode: str) -> None:
        if self._call("ta_mm_set_mode", MODES[mode]) != 0:
            raise RuntimeError(f"mode {mode!r}: {os.strerror(ctypes.get_errno())}")

    # Accounts

    def register(self, name: bytes, group: str, proportion: Optional[float], evict: Callable[[], None]) -> Tuple[int, bool]:
        """A new account: a manual one with a proportion, else an automatic one; and as set_manual."""
        raw = check_name("stream_group", group)
        with self._lock:
            account, self._next = self._next, self._next + 1
            self._evictions[account] = evict
        result = self._call("ta_mm_register", account, name, raw, -1.0 if proportion is None else proportion,
                            self._evict, None)
        if result < 0:
            del self._evictions[account]
        return account, self._settle(result, proportion)

    def unregister(self, account: int) -> None:
        """End an account, at once or with its last block."""
        self._evictions.pop(account, None)
        self._leaving.add(account)
        self._leave()

    def _leave(self) -> None:
        for account in list(self._leaving):
            if self._call("ta_mm_unregister", account) == 0:
                self._leaving.discard(account)
                self._streams.pop(account, None)

    def set_manual(self, account: int, proportion: float) -> bool:
        """Give an account a part of its own. True: less than 5% are left for automatic ones, of which there are none."""
        return self._settle(self._call("ta_mm_set_manual", account, proportion), proportion)

    def set_auto(self, account: int) -> None:
        self._settle(self._call("ta_mm_set_auto", account), None)

    def set_group(self, account: int, group: str) -> None:
        self._settle(self._call("ta_mm_set_group", account, check_name("new_group", group)), None)

    def _settle(self, result: int, proportion: Optional[float]) -> bool:
        """What the library says of an account's part: whether there is something to warn of."""
        if result >= 0:
            return result == 1
        why, manual = ctypes.get_errno(), self.pools()[0]
        if why == errno.ERANGE:
            raise ValueError(f"Manual proportion {proportion} would exceed total available memory: the manual"
                             f" proportions are {manual} already, and their sum may be at most 1")
        if why == errno.ENOSPC and proportion is not None:
            raise ValueError(f"Manual proportion {proportion} would leave less than 5% of memory for auto-allocated"
                             f" instances: the manual proportions are {manual} already, and their sum may be at most 0.95")
        if why == errno.ENOSPC:
            raise ValueError("Available auto-allocation pool is less than 5% of total due to manual allocations:"
                             f" the manual proportions are {manual}")
        if why == errno.EINVAL:
            raise ValueError(f"proportion {proportion!r}: expected a number from 0 to 1")
        raise MemoryError(os.strerror(why)) if why == errno.ENOMEM else RuntimeError(os.strerror(why))

    def pools(self) -> Tuple[float, float]:
        """The sums of the manual and of the automatic proportions."""
        manual, automatic = ctypes.c_double(), ctypes.c_double()
        self._call("ta_mm_pools", ctypes.byref(manual), ctypes.byref(automatic))
        return manual.value, automatic.value

    def find(self, account: int) -> Optional[Info]:
        """The figures of an account; None for one that is gone."""
        info = Info(size=ctypes.sizeof(Info))
        return info if self._call("ta_mm_get", account, ctypes.byref(info)) == 0 else None

    def get(self, account: int) -> Info:
        """The figures of an account."""
        info = self.find(account)
        if info is None:
            raise RuntimeError(f"the account is gone: {os.strerror(ctypes.get_errno())}")
        return info

    def use(self, account: int, stream: Any) -> None:
        """Say that the account is being used on a stream: it is then the last that is evicted."""
        if self._call("ta_mm_use", account, _streams.handle(stream)) == 0:
            self._streams[account] = stream

    def charge(self, account: int, count: int) -> None:
        """Account bytes from elsewhere; negative: give them back."""
        self._call("ta_mm_charge", account, count)

    @contextlib.contextmanager
    def holding(self, accounts: Iterable[int]) -> Iterator[None]:
        """A with block in which accounts are allocated for, and not asked to give way."""
        held = [account for account in accounts if self._call("ta_mm_hold", account, 1) == 0]
        try:
            yield
        finally:
            for account in held:
                self._call("ta_mm_hold", account, 0)

    def ask_idle(self, account: int, everywhere: bool, asked: Asked) -> bool:
        """Have one idle account give way, of the group of one, or of all managers of the device. False: nobody is left."""
        return self._call("ta_mm_ask_idle", account, int(everywhere), ctypes.byref(asked)) == 1

    def trim(self) -> None:
        """Give what the device heap has cached back to the driver."""
        _library.function("ta_cuda_trim_to")(self.device, 0)

    # Requests

    def available(self, group: str, free: int) -> Tuple[int, bool]:
        """Bytes that a group may have now, and whether it has used nearly all it may."""
        out = ctypes.c_size_t()
        result = self._call("ta_mm_available", check_name("group", group), free, ctypes.byref(out))
        if result < 0:
            raise RuntimeError(f"group {group!r}: {os.strerror(ctypes.get_errno())}")
        return out.value, result == 1

    def chunk(self, group: str, free: int, requests: Sequence[ArrayRequest], runs: int) -> Tuple[int, Chunking]:
        """How requests are cut, of so many free bytes or ASK: 0 or what is wrong as an errno, and the figures."""
        array = (Request * len(requests))()
        kept: List[Any] = []
        for entry, request in zip(array, requests):
            shape = (ctypes.c_size_t * len(request.shape))(*request.shape)
            kept.append(shape)
            entry.itemsize, entry.shape, entry.ndim = request.itemsize, shape, len(request.shape)
            entry.chunk_axis = -1 if request.chunk_axis_index is None else min(request.chunk_axis_index, len(request.shape))
            entry.unchunkable, entry.kind = int(request.unchunkable), KINDS[request.memory]
        out = Chunking(size=ctypes.sizeof(Chunking))
        result = self._call("ta_mm_chunk", check_name("stream_group", group), free, array, len(requests), runs,
                            ctypes.byref(out))
        return (0 if result == 0 else ctypes.get_errno()), out

    # Blocks

    def alloc(self, account: int, count: int, kind: str, stream: Any) -> Tuple[int, int]:
        """The address of a new block of an account, and its number; 0, with errno, where there is none."""
        if count > _MOST_BYTES:
            ctypes.set_errno(errno.ENOMEM)
            return 0, 0
        address = int(_library.function("ta_mm_alloc")(self._address, account, count, KINDS[kind],
                                                           _streams.handle(stream)) or 0)
        if not address:
            why = ctypes.get_errno()
            self._leave()  # an account that could not while this was under way
            ctypes.set_errno(why)
            return 0, 0
        number = next(self._numbers)
        self._blocks[address] = number
        self._streams[account] = stream
        return address, number

    def free(self, address: int, number: int, stream: int) -> None:
        """Give a block back, after what the stream has been given.

        Where another has its address by now, it went with the context that it was in.
        """
        if self._blocks.get(address) == number:
            del self._blocks[address]
            self._call("ta_mm_free", address, stream)
        if self._leaving:
            self._leave()

    def has(self, address: int) -> bool:
        """Whether there is a live block at an address."""
        return address in self._blocks


def _destroy(address: int, _: Any) -> None:
    """End a manager; the callback is kept until then."""
    _library.function("ta_mm_destroy")(address)
