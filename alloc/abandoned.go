package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// A thread that ends leaves its heaps to the next new thread. Until one comes, other threads look
// after what is freed into them: some at a time, for there may be any number of them, and only
// those that have pages.
//
//	a thread is in state heapAbandoned ⇔ it is on one of the lists
//	a thread on the list without has no page
//	with.n = the number of threads on the list with
var (
	heapsLock raw.Lock
	abandoned abandonedThreads // guarded by heapsLock
)

type abandonedThreads struct {
	with    threadList // those that have pages, the one first that was not looked at for longest
	without threadList
}

type threadList struct {
	first, last *Thread
	n           uintptr
}

// takeHeaps takes heapsLock for the thread that token names. A signal handler that has interrupted
// a holder of poolLock does not wait for it: who forks holds heapsLock and waits for poolLock.
func takeHeaps(token uintptr) bool {
	if poolLock.HeldBy(token) {
		return heapsLock.Try(token)
	}
	return heapsLock.Take(token)
}

// abandonedStep is how many threads without a thread of the program's one step looks at.
const abandonedStep = 16

func (l *threadList) add(t *Thread) {
	t.next, t.prev = nil, l.last
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	l.n++
}

func (l *threadList) remove(t *Thread) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	l.n--
}

// due reports whether one of the threads is to be looked at: a peek without the lock.
func (a *abandonedThreads) due(now uint64) bool {
	t := a.with.first
	return t != nil && now >= t.served+collectEvery()
}

// abandon puts the thread among those without a thread of the program's. Precondition: heapsLock is
// held.
func (t *Thread) abandon() {
	t.served = t.Now
	atomic.StoreUint32(&t.state, heapAbandoned)
	if atomic.LoadUintptr(&t.pages) != 0 {
		abandoned.with.add(t)
	} else {
		abandoned.without.add(t)
	}
}

// adopt takes the thread that was abandoned last, one with pages first, for the thread of the
// program that token names. It returns nil where there is none.
func adopt(token uintptr) *Thread {
	if !takeHeaps(token) {
		return nil
	}
	l := &abandoned.with
	if l.last == nil {
		l = &abandoned.without
	}
	t := l.last
	if t != nil {
		t.own(l, token)
	}
	heapsLock.Release()
	return t
}

// own takes an abandoned thread off its list. Precondition: heapsLock is held.
func (t *Thread) own(l *threadList, token uintptr) {
	l.remove(t)
	t.token = token
	atomic.StoreUint32(&t.state, heapOwned)
}

// serveAbandoned takes back what other threads have freed into the heaps of up to most abandoned
// threads, with due set only of those that were not looked at for a while. A new thread cannot
// adopt one that is being looked at. What is empty in one that nobody has wanted for PurgeDelay has
// been so for long enough.
func serveAbandoned(token uintptr, now uint64, most uintptr, due bool) {
	for ; most != 0; most-- {
		if !takeHeaps(token) {
			return
		}
		t := abandoned.with.first
		if t == nil || due && !abandoned.due(now) {
			heapsLock.Release()
			return
		}
		t.own(&abandoned.with, token)
		heapsLock.Release()
		t.running = running{}
		t.Now = now
		if now >= t.left+PurgeDelay {
			t.Now = 0 // stamps of pages
			t.release()
			t.rest(false)
		}
		t.collectPages(true)
		t.Now = now
		if !takeHeaps(token) {
			return
		}
		t.abandon()
		heapsLock.Release()
	}
}
