"""Futures of addresses, and the threads that allocate for them. tieralloc.aio documents both."""

import atexit
import collections
import concurrent.futures
import logging
import os
import threading
import weakref
from typing import Any, Deque, Dict, Optional, Tuple

from . import _library
from ._arguments import stream_handle, whole

_PER_THREAD = 2  # CU_STREAM_PER_THREAD of cuda.h

# How long the end of a process waits for a request that the driver is busy with, in seconds.
_PATIENCE = 1.0

_log = logging.getLogger("concurrent.futures")

_lock = threading.RLock()  # reentrant, as those of the workers are
_of_devices: Dict[int, "Worker"] = {}
_all: "weakref.WeakSet[Worker]" = weakref.WeakSet()


class AddressFuture(concurrent.futures.Future):
    """The address of a block that is being allocated; 0 for a size of 0."""

    def __init__(self) -> None:
        super().__init__()
        self._owed: Optional[weakref.finalize] = None  # gives the block back

    def result(self, timeout: Optional[float] = None) -> int:
        """The address, which is the caller's to free from now on.

        Raises what allocate_memory would have raised; TimeoutError after so many seconds,
        with the block still the future's; CancelledError.
        """
        address = super().result(timeout)
        if self._owed is not None:
            self._owed.detach()
        return address

    def _deliver(self, manager: Any, address: int, stream: Any) -> None:
        if address:
            self._owed = weakref.finalize(self, _give_back, os.getpid(), manager, address, stream)
            self._owed.atexit = False  # the process's end frees all
        self.set_result(address)


def _give_back(pid: int, manager: Any, address: int, stream: Any) -> None:
    """Free a block that nobody has asked for. A forked child's copy of the future owns none."""
    if os.getpid() == pid:
        manager.free_memory(address, stream=stream)


_Request = Tuple[AddressFuture, int, Any, int]  # and the size, the stream, the asking thread's hint


class Worker:
    """A thread that allocates on one device, made with its first request."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._requests: Deque[_Request] = collections.deque()
        self._closed = False
        self._renew()
        _all.add(self)

    def _renew(self) -> None:
        # Reentrant, as a finalizer may ask for memory wherever it runs.
        self._changed = threading.Condition(threading.RLock())
        self._thread: Optional[threading.Thread] = None
        self._serving: Optional[AddressFuture] = None

    def submit(self, size: Any, stream: Any) -> AddressFuture:
        size = whole(size, "size")
        if stream_handle(stream) == _PER_THREAD:
            raise ValueError(f"stream {stream!r}: expected any other than the per-thread default stream,"
                             " which is not the same one in the thread that allocates")
        future, set_hint = AddressFuture(), _library.function("ta_set_hint")
        hint = set_hint(0)
        set_hint(hint)
        with self._changed:
            if self._closed:
                raise RuntimeError("no allocate_async after close(), or at the end of the process")
            if self._thread is None:
                thread = threading.Thread(target=self._serve_all, name=f"tieralloc-{self._manager.device}", daemon=True)
                thread.start()
                self._thread = thread
            self._requests.append((future, size, stream, hint))
            self._changed.notify()
        return future

    def _serve_all(self) -> None:
        while True:
            with self._changed:
                while not self._requests and not self._closed:
                    self._changed.wait()
                if not self._requests:
                    return
                self._serving = self._requests[0][0]  # a fork finds it in one place at least
                request = self._requests.popleft()
            try:
                self._serve(*request)
            except BaseException:  # a callback's, which ends no thread that others wait for
                _log.exception("exception calling callback for %r", request[0])
            del request  # or it would keep its future until the next one comes
            if self._thread is not threading.current_thread():
                return  # a callback of the future has forked: this is the child
            self._serving = None

    def _serve(self, future: AddressFuture, size: int, stream: Any, hint: int) -> None:
        try:
            if future.set_running_or_notify_cancel():
                _library.function("ta_set_hint")(hint)
                future._deliver(self._manager, self._manager.allocate_memory(size, stream), stream)
        except BaseException as error:  # whatever it is, it is for who waits
            if future.done():
                raise  # of a callback, or since the result is somebody else's
            future.set_exception(error)
        finally:
            del future  # which has the error, which has this frame

    def close(self, cancel: bool = False) -> None:
        """Take no more requests; the thread ends when those that wait are served, or cancelled."""
        with self._changed:
            self._closed = True
            cancelled = [request[0] for request in self._requests] if cancel else []
            if cancel:
                self._requests.clear()
            self._changed.notify()
        for future in cancelled:
            if future.cancel():
                future.set_running_or_notify_cancel()  # tells who waits

    def join(self, timeout: Optional[float] = None) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def forked(self) -> None:
        """In a child: there is no thread, and who held a lock is not there to let it go."""
        lost = [request[0] for request in self._requests]
        if self._serving is not None:
            lost.append(self._serving)
        self._requests.clear()
        self._renew()
        for future in lost:
            AddressFuture.__init__(future)  # as new, and so are its locks
            future.set_exception(RuntimeError("the process was forked before this allocation was done; it is the parent's"))


def allocate_async(manager: Any, size: Any, stream: Any) -> AddressFuture:
    """MemoryManager.allocate_async."""
    with _lock:
        worker = _of_devices.get(manager.device)
        if worker is None:
            worker = _of_devices.setdefault(manager.device, Worker(manager))
    return worker.submit(size, stream)


def _forked() -> None:
    global _lock
    _lock = threading.RLock()
    for worker in list(_all):
        worker.forked()


def _end() -> None:
    workers = list(_all)
    for worker in workers:
        worker.close(cancel=True)
    for worker in workers:
        worker.join(_PATIENCE)


os.register_at_fork(after_in_child=_forked)
atexit.register(_end)
