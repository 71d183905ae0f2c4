package raw

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Lock is a mutual exclusion lock on a futex word, usable in mapped or static
// memory and across fork.
//
//	state: 0 free, 1 held, 2 held and someone may wait
//	owner: 0, or the token of the thread that holds it; only the holder writes
//	       its own token, so comparing with one's own needs no order
//
// A token is any nonzero word unique among running threads and kept by the
// calling thread in a forked child (the address of its thread-local storage).
type Lock struct {
	state uint32
	_     uint32
	owner uintptr
}

const lockSpins = 100

// Take acquires the lock for the thread named by token. It reports false, and
// acquires nothing, when that thread holds the lock already: it is then in a
// signal handler that interrupted itself, and waiting would never end.
func (l *Lock) Take(token uintptr) bool {
	if !atomic.CompareAndSwapUint32(&l.state, 0, 1) {
		if l.HeldBy(token) {
			return false
		}
		l.wait()
	}
	atomic.StoreUintptr(&l.owner, token)
	return true
}

// TryTake acquires the lock if it is free.
func (l *Lock) TryTake(token uintptr) bool {
	if !atomic.CompareAndSwapUint32(&l.state, 0, 1) {
		return false
	}
	atomic.StoreUintptr(&l.owner, token)
	return true
}

// wait spins a little, then sleeps until the lock is had. The loop has no bound
// of its own: it ends when the holder, which never blocks on another thread
// while it holds a lock, lets go.
func (l *Lock) wait() {
	for i := 0; i < lockSpins; i++ {
		if atomic.LoadUint32(&l.state) == 0 && atomic.CompareAndSwapUint32(&l.state, 0, 1) {
			return
		}
	}
	for atomic.SwapUint32(&l.state, 2) != 0 {
		Sys(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&l.state)), FutexWait, 2, 0, 0, 0)
	}
}

// Wake wakes one thread that waits on the word at w.
func Wake(w *uint32) {
	Sys(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWakePrivate, 1, 0, 0, 0)
}

// WaitFor sleeps while the word at w is v, for at most ns nanoseconds, less than a
// second. It may return early.
func WaitFor(w *uint32, v uint32, ns uint64) {
	ts := [2]uint64{0, ns}
	Sys(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(w)), FutexWait, uintptr(v), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// Release lets the lock go and wakes one waiter if there may be one.
func (l *Lock) Release() {
	atomic.StoreUintptr(&l.owner, 0)
	if atomic.SwapUint32(&l.state, 0) == 2 {
		Wake(&l.state)
	}
}

// HeldBy reports whether the thread named by token holds the lock.
func (l *Lock) HeldBy(token uintptr) bool {
	return atomic.LoadUintptr(&l.owner) == token
}

// Held reports whether any thread holds the lock.
func (l *Lock) Held() bool { return atomic.LoadUint32(&l.state) != 0 }

// Reset makes the lock free whatever it was. Precondition: no other thread of
// this process exists (a forked child).
func (l *Lock) Reset() {
	atomic.StoreUintptr(&l.owner, 0)
	atomic.StoreUint32(&l.state, 0)
}
