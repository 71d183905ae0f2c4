package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// endContext drops the heap of a context that has ended. The driver has freed the context's memory
// and events, except for what is mapped at reserved addresses: their start, their bytes, and how
// many of these were used. 0: there are none.
func endContext(token uintptr, context uint64) (at, bytes, used uint64) {
	if context == 0 || !tableLock.Take(token) {
		return 0, 0, 0
	}
	dropPeers(context)
	for i := range devices {
		if atomic.LoadUint64(&devices[i].primary) == context {
			atomic.StoreUint64(&devices[i].primary, 0)
		}
	}
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) != context || !h.lock.Take(token) {
			continue
		}
		atomic.StoreUint64(&h.context, 0)
		h.device.release(h.count.reserved + h.count.foreign + atomic.SwapUint64(&h.unusable[0], 0))
		atomic.AddUint64(&h.device.foreign, -h.count.foreign)
		h.device.releaseHost(h.count.side[1].all() + atomic.SwapUint64(&h.unusable[1], 0))
		at, bytes, used = h.addresses.base, h.addresses.bytes, h.mappedEnd()-h.addresses.base
		h.wipe()
		h.lock.Release()
	}
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) != 0 && h.lock.Take(token) {
			h.dropEvents(context)
			h.lock.Release()
		}
	}
	tableLock.Release()
	return at, bytes, used
}

// Fork: the forking thread takes all locks, so that the data they guard is consistent in both
// processes. The child only reports it: the driver does not work in a forked child, so the device
// heap serves nothing there.

// Holds reports whether the thread holds a lock of a device heap or of their table: it is then in a
// signal handler that interrupted itself.
func Holds(token uintptr) bool {
	for i := range usedHeaps() {
		if heaps[i].lock.HeldBy(token) {
			return true
		}
	}
	return tableLock.HeldBy(token)
}

// ForkPrepare takes the locks for the calling thread, and returns a bit for each that it has taken.
// Without wait it leaves those to other threads that they hold.
func ForkPrepare(token uintptr, wait bool) (taken uintptr) {
	if tableLock.TakeIf(token, wait) {
		taken = 1 << heapMax
	}
	for i := range usedHeaps() {
		if heaps[i].lock.TakeIf(token, wait) {
			taken |= 1 << uint(i)
		}
	}
	return taken
}

// ForkParent releases the locks in the parent.
func ForkParent(taken uintptr) {
	for i := range usedHeaps() {
		if taken>>uint(i)&1 != 0 {
			heaps[i].lock.Release()
		}
	}
	if taken>>heapMax&1 != 0 {
		tableLock.Release()
	}
}

// ForkChild releases the locks in the child. If the parent has used CUDA, the child passes all its
// calls to the driver, which refuses them. If not, the child may use CUDA itself.
func ForkChild(token, taken uintptr) {
	for i := range usedHeaps() {
		if atomic.LoadUint64(&heaps[i].context) != 0 {
			atomic.StoreUint32(&off, 1)
			setFastPath()
		}
	}
	history.lock.Reset()
	trace.lock.Reset()
	resetUnless(&tableLock, token, taken>>heapMax&1 != 0)
	for i := range usedHeaps() {
		resetUnless(&heaps[i].lock, token, taken>>uint(i)&1 != 0)
	}
}

// resetUnless releases a lock in a child, except one that interrupted code of this thread holds and
// will release itself.
func resetUnless(l *raw.Lock, token uintptr, taken bool) {
	if taken || !l.HeldBy(token) {
		l.Reset()
	}
}
