package raw

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/lockrank"
)

// Lock is a mutual exclusion lock in one word, usable in mapped or static memory
// and across fork.
//
//	word = 0                    free
//	word = token                held by the thread named by token
//	word & lockContended != 0   held, and a thread may wait
//	word & lockSuspended != 0   held, and nobody may wait
//
// A token is a multiple of 8 other than 0, the address of a thread's thread-local storage. It is
// unique among running threads, and the calling thread of fork keeps it in the child. Holder and
// state are one word, so that a signal handler can find out at any point whether its own thread
// holds the lock.
type Lock struct {
	word uintptr
}

const (
	lockSpins     = 20000 // some microseconds, about what it takes to be woken
	lockPauseMin  = 16    // steps of an empty loop between two looks at the lock
	lockPauseMax  = 512
	lockWait      = 20e6 // nanoseconds
	lockContended = 1
	lockSuspended = 2
	lockFlags     = 7
)

// PaddedLock is a Lock with nothing beside it in its cache line, nor in the one that Intel's
// processors fetch with it. Threads that wait for a lock take its line from the others again and
// again, who would wait for what else they read there.
type PaddedLock struct {
	_ [linePair - unsafe.Sizeof(uintptr(0))]byte
	Lock
	_ [linePair - unsafe.Sizeof(uintptr(0))]byte
}

const linePair = 128

// futexWord returns the half of the word that the kernel examines. amd64 and arm64 store the lower
// half first.
func (l *Lock) futexWord() *uint32 { return (*uint32)(unsafe.Pointer(&l.word)) }

// Take acquires the lock for the thread named by token. If that thread holds the lock already, it
// is in a signal handler that interrupted the holder, and waiting would never end. Take then
// acquires nothing and reports false. It does the same for any thread while the lock is suspended.
func (l *Lock) Take(token uintptr) bool {
	if lockrank.On {
		l.checkOrder(token)
	}
	return l.Try(token) || l.takeHeld(token)
}

// Try acquires the lock for the thread named by token if it is free, and reports whether it did.
func (l *Lock) Try(token uintptr) bool { return atomic.CompareAndSwapUintptr(&l.word, 0, token) }

// TakeIf is Take if the thread may wait, else Try.
func (l *Lock) TakeIf(token uintptr, wait bool) bool {
	if wait {
		return l.Take(token)
	}
	return l.Try(token)
}

// takeHeld is Take of a lock that is held. It is a separate function so that the other case can be
// inlined.
func (l *Lock) takeHeld(token uintptr) bool {
	if l.Refuses(token) {
		return false
	}
	l.wait(token)
	return true
}

// wait spins for a short time, then sleeps until it has the lock. It looks again from time to time:
// a signal handler that interrupts Release between its two steps, and waits for another lock, keeps
// the wake-up back, and the holder of the other lock may be the one that sleeps here. The loop has
// no bound of its own: it ends when the holder, which never waits for another thread while it holds
// a lock, releases it.
func (l *Lock) wait(token uintptr) {
	for i, pause := 0, lockPauseMin; i < lockSpins; i, pause = i+pause, min(2*pause, lockPauseMax) {
		for range pause {
		}
		if atomic.LoadUintptr(&l.word) == 0 && atomic.CompareAndSwapUintptr(&l.word, 0, token) {
			return
		}
	}
	for {
		old := atomic.LoadUintptr(&l.word)
		if old == 0 {
			if atomic.CompareAndSwapUintptr(&l.word, 0, token|lockContended) {
				return
			}
			continue
		}
		if atomic.CompareAndSwapUintptr(&l.word, old, old|lockContended) {
			WaitFor(l.futexWord(), uint32(old|lockContended), lockWait)
		}
	}
}

// Release releases the lock and wakes one waiter if there may be one.
func (l *Lock) Release() {
	if atomic.SwapUintptr(&l.word, 0)&lockContended != 0 {
		Wake(l.futexWord())
	}
}

// HeldBy reports whether the thread named by token holds the lock.
func (l *Lock) HeldBy(token uintptr) bool {
	return atomic.LoadUintptr(&l.word)&^lockFlags == token
}

// Refuses reports whether Take would fail for the thread named by token.
func (l *Lock) Refuses(token uintptr) bool {
	w := atomic.LoadUintptr(&l.word)
	return w != 0 && (w&^lockFlags == token || w&lockSuspended != 0)
}

// Suspend makes Take fail for every thread until the holder releases the lock. It is for a child
// that a signal handler has forked, whose interrupted code holds the lock and may never continue.
// Precondition: the calling thread holds the lock and is the process's only thread.
func (l *Lock) Suspend() { atomic.OrUintptr(&l.word, lockSuspended) }

// Held reports whether any thread holds the lock.
func (l *Lock) Held() bool { return atomic.LoadUintptr(&l.word) != 0 }

// Reset makes the lock free, whatever its state. Precondition: this process has no other thread (a
// forked child).
func (l *Lock) Reset() {
	if l.Held() { // a page that is only read is not copied
		atomic.StoreUintptr(&l.word, 0)
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
	Sys(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(w)), FutexWait, uintptr(v),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}
