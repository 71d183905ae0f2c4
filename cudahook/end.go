package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// endContext drops the heap of a context that has ended. The driver has freed the context's memory
// and events, except for what is mapped at reserved addresses (leaving).
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
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) != context || !h.lock.Take(token) {
			continue
		}
		atomic.StoreUint64(&h.context, 0)
		h.device.release(h.count.reserved + h.count.foreign + atomic.SwapUint64(&h.unusable[0], 0))
		atomic.AddUint64(&h.device.foreign, -h.count.foreign)
		h.device.releaseHost(h.count.side[1].all() + atomic.SwapUint64(&h.unusable[1], 0))
		atomic.StoreUint64(&endedBlocks[i&(heapMax-1)], h.serial)
		h.leave(h.mainPool)
		for p := h.pools; p != nil; p = p.next {
			h.leave(p)
		}
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
}

// leaving are the reservations of contexts that have ended, and not yet returned to the driver.
// tableLock guards them.
var leaving struct {
	n  uint64
	of [leavingMax]struct{ at, bytes, used uint64 }
}

const leavingMax = 64

// leave returns a pool's host memory, and notes its reservation as leaving. A reservation beyond
// leavingMax stays until the process ends.
func (h *heap) leave(p *pool) {
	v := &p.addresses
	for i := uintptr(0); i < h.index.n; i++ {
		if s := h.index.at(i); s.pool == p && s.host != 0 {
			raw.Unmap(uintptr(s.host), uintptr(s.bytes))
		}
	}
	if v.base == 0 || leaving.n == leavingMax {
		return
	}
	l := &leaving.of[leaving.n&(leavingMax-1)]
	l.at, l.bytes, l.used = v.base, v.bytes, h.mappedEnd(v)-v.base
	leaving.n++
}

// unreserve returns one reservation that is leaving, and ends the request if there is none.
func unreserve(r *Request) Action {
	if !tableLock.Take(uintptr(r.Token)) {
		return r.done(Success)
	}
	action := r.done(Success)
	if leaving.n != 0 {
		leaving.n--
		l := &leaving.of[leaving.n&(leavingMax-1)]
		r.OnAddress, r.OnBytes, r.OnUsed = l.at, l.bytes, l.used
		action = r.act(phaseUnreserve, ActUnreserve)
	}
	tableLock.Release()
	return action
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
