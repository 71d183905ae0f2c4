"""Device memory asked for ahead of need: futures of addresses, and a pool with memory in reserve.

    manager = t.get_memory_manager()
    coming = manager.allocate_async(64 << 20, stream)   # returns at once
    ...                                                 # work that does not need it yet
    address = coming.result()                           # MemoryError where there was no room
    manager.free_memory(address, stream=stream)

    with AsyncMemoryPool(2 << 30) as pool:              # 2 GiB are the process's from here on
        address = pool.allocate_async(1 << 20, stream).result()

Names after Genesis, https://github.com/phonism/genesis: "Non-blocking allocation for pipeline
parallelism". Requests are served one after another by a thread for each device, or pool, that
begins with its first request.

Who has the block: result() hands it over, and who called it frees it. Of a future that nobody
holds any more, and whose result() was never had, the block goes back by itself, so that
neither a cancel() that came too late nor a forgotten future loses memory. A future that is
cancelled before its turn allocates nothing.

A forked child has no use for the parent's blocks: requests that the parent was still
waiting for fail there with RuntimeError, and new ones get a thread of their own. At the end of
the process what still waits is cancelled.
"""

import weakref
from typing import Any

from . import cuda
from ._arguments import whole
from ._futures import AddressFuture, Worker

__all__ = ["AddressFuture", "AsyncMemoryPool"]


class AsyncMemoryPool:
    """Asynchronous allocation with memory in reserve.

    pool_size bytes of the device are free for this process when the pool has been made: taken
    from the driver, but for an idle segment of that size or more that the cache has. Blocks of 1 MiB
    and more are cut from them; smaller ones have segments of 2 MiB of their own. It is a
    reserve and no limit: what is asked for beyond it is taken from the driver. It is part of
    the device's cache, so cleanup_cache(force=True) gives it back, too.

    MemoryError where the device has no such room; OSError without the device.
    """

    def __init__(self, pool_size: int = 1 << 30, device: int = 0) -> None:
        self.pool_size = whole(pool_size, "pool_size", 1)
        self.manager = cuda.get_memory_manager(device)
        self.manager.warmup_cache([self.pool_size], [1])
        self._worker = Worker(self.manager)
        self._dropped = weakref.finalize(self, self._worker.close)
        self._dropped.atexit = False  # the end of the process does that

    def allocate_async(self, size: int, stream: Any = 0) -> AddressFuture:
        """The future of a new block for a stream; RuntimeError after close()."""
        return self._worker.submit(size, stream)

    def close(self) -> None:
        """Serve what waits, end the thread, and give pool_size bytes back to the driver, as far as segments are free.

        Blocks that are in use stay so: the manager frees them.
        """
        if self._dropped.detach() is None:
            return
        self._worker.close()
        self._worker.join()
        self.manager._cleanup("ta_cuda_trim_to", max(0, self.manager._figures().cached - self.pool_size))

    def __enter__(self) -> "AsyncMemoryPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
