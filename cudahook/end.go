package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// endContext drops the heap of a context that is gone with all its memory and events.
func endContext(token uintptr, context uint64) {
	if context == 0 || !tableLock.Take(token) {
		return
	}
	dropPeers(context)
	for i := range devices {
		if atomic.LoadUint64(&devices[i].primary) == context {
			atomic.StoreUint64(&devices[i].primary, 0)
		}
	}
	for i := range heaps {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) != context || !h.lock.Take(token) {
			continue
		}
		atomic.StoreUint64(&h.context, 0)
		h.device.release(h.count.reserved + h.count.foreign + atomic.SwapUint64(&h.unusable[0], 0))
		atomic.AddUint64(&h.device.foreign, -h.count.foreign)
		h.device.releaseHost(h.count.side[1].all() + atomic.SwapUint64(&h.unusable[1], 0))
		h.wipe()
		h.lock.Release()
	}
	for i := range heaps {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) != 0 && h.lock.Take(token) {
			h.dropEvents(context)
			h.lock.Release()
		}
	}
	tableLock.Release()
}

// Fork: the forking thread takes all locks, so that what they guard is whole in the parent
// and, for the report, in the child; there the driver does not work, and nothing is
// served any more.

// ForkPrepare takes the locks for the calling thread: a bit for each that it did not hold.
func ForkPrepare(token uintptr) (taken uintptr) {
	if tableLock.Take(token) {
		taken = 1 << heapMax
	}
	for i := range heaps {
		if heaps[i].lock.Take(token) {
			taken |= 1 << uint(i)
		}
	}
	return taken
}

// ForkParent lets the locks go in the parent.
func ForkParent(taken uintptr) {
	for i := range heaps {
		if taken>>uint(i)&1 != 0 {
			heaps[i].lock.Release()
		}
	}
	if taken>>heapMax&1 != 0 {
		tableLock.Release()
	}
}

// ForkChild makes the child of a process that has used CUDA pass all its calls to the
// driver, which refuses them. Another child may be the first to use it.
func ForkChild(token, taken uintptr) {
	for i := range heaps {
		if atomic.LoadUint64(&heaps[i].context) != 0 {
			atomic.StoreUint32(&off, 1)
		}
	}
	setFastPath()
	history.lock.Reset()
	trace.lock.Reset()
	resetUnless(&tableLock, token, taken>>heapMax&1 != 0)
	for i := range heaps {
		resetUnless(&heaps[i].lock, token, taken>>uint(i)&1 != 0)
	}
}

// resetUnless frees a lock in a child, except one that the interrupted code of this thread
// will let go itself.
func resetUnless(l *raw.Lock, token uintptr, taken bool) {
	if taken || !l.HeldBy(token) {
		l.Reset()
	}
}
