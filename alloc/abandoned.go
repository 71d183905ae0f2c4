package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// A thread that ends leaves its heaps to the next new thread. Until one adopts them, other threads
// process the blocks that are freed into them. Each step serves a few of the heaps that have pages,
// because there may be any number.
//
//	a thread is in state heapAbandoned ⇔ it is on one of the lists
//	a thread on the list without has no page
//	with.n = the number of threads on the list with
var (
	heapsLock raw.Lock
	abandoned abandonedThreads // guarded by heapsLock
)

type abandonedThreads struct {
	with    threadList // with pages, least recently served first
	without threadList
}

type threadList struct {
	first, last *Thread
	n           uintptr
}

// takeHeaps takes heapsLock for the thread that token names. A signal handler that interrupted a
// holder of poolLock does not wait for it, because a thread that forks holds heapsLock and waits
// for poolLock.
func takeHeaps(token uintptr) bool {
	if poolLock.HeldBy(token) {
		return heapsLock.Try(token)
	}
	return heapsLock.Take(token)
}

// Holds reports whether the thread holds one of the package's locks: it is then in a signal handler
// that interrupted itself, and must not wait for a lock that comes before these in the order.
func Holds(token uintptr) bool { return heapsLock.HeldBy(token) || poolLock.HeldBy(token) }

// abandonedStep is how many abandoned threads one step serves.
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

// due reports whether some abandoned thread is due. It reads without the lock.
func (a *abandonedThreads) due(now uint64) bool {
	t := a.with.first
	return t != nil && now >= t.served+collectEvery()
}

// abandon adds the thread to the abandoned ones. Precondition: heapsLock is held.
func (t *Thread) abandon() {
	t.served = t.Now
	atomic.StoreUint32(&t.state, heapAbandoned)
	if atomic.LoadUintptr(&t.pages) != 0 {
		abandoned.with.add(t)
	} else {
		abandoned.without.add(t)
	}
}

// adopt takes the thread that was abandoned last, preferably one with pages, for the program's
// thread that token names. It returns nil if there is none.
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

// own removes an abandoned thread from its list. Precondition: heapsLock is held.
func (t *Thread) own(l *threadList, token uintptr) {
	l.remove(t)
	t.token = token
	t.stack = nil // a forked child does not go on with what other threads walked
	atomic.StoreUint32(&t.state, heapOwned)
}

// serveAbandoned takes back the blocks that other threads have freed into the heaps of up to most
// abandoned threads; with due set, only of threads that were not served for a while. A new thread
// cannot adopt a thread that is being served. If a thread has been abandoned for PurgeDelay, its
// empty pages return to the pool at once.
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

// When memory is short, a thread takes pages of other threads without blocks in use, because their
// owners may not allocate for a long time. It can take pages that their owner has marked full and
// that are on its pending list: all their blocks are on the remote list.
//
// The thread that swaps out the pending list owns its pages, as in drainPending. The owner marks a
// page full last. While a full page is on the pending list the owner touches only its remote list,
// where it puts its own frees, too. So the counts of a page without blocks in use do not change,
// and it can return to the pool. The other pages go back on the list.

// With TA_SECURE=1 a thread checks the block that it allocated last, even if another thread has
// freed it, so that block's page stays.

// stealStep is how many threads one step examines, continuing where the step before stopped.
const stealStep = 16

// stealNext is the address of the thread to examine next, or 0; atomic.
var stealNext uintptr

// stealPages takes pages of the next n threads.
func (t *Thread) stealPages(n uintptr) {
	o := (*Thread)(raw.Ptr(atomic.LoadUintptr(&stealNext)))
	for ; n != 0; n-- {
		if o == nil {
			o = everyThread
		}
		if o == nil {
			return
		}
		if o != t && atomic.LoadUint32(&o.state) == heapOwned && atomic.LoadUintptr(&o.pages) != 0 {
			t.stealFromAll(o)
		}
		o = o.all
	}
	atomic.StoreUintptr(&stealNext, o.self())
}

// lookRound takes pages of all other threads, including those that have ended.
func (t *Thread) lookRound() {
	serveAbandoned(t.token, t.Now, abandoned.with.n, false)
	t.stealPages(pool.threadCount)
}

func (t *Thread) stealFromAll(o *Thread) {
	for h := o.heaps; h != nil; h = h.sibling {
		h.drainQueues(t)
		if atomic.LoadUintptr(&h.pending) != 0 {
			t.stealFrom(h)
		}
	}
}

func (t *Thread) stealFrom(h *Heap) {
	list := atomic.SwapUintptr(&h.pending, 0)
	for list != 0 {
		p := (*Page)(raw.Ptr(list))
		list = addrOf(p.nextPending())
		full := atomic.LoadUintptr(&p.Owner)&OwnerFull != 0
		if !full || !p.allFree() || h.Thread.wasGiven(p) || p.segment == nil ||
			!poolLock.Take(t.token) {
			notify(p)
			continue
		}
		p.dropSummary()
		bytes := p.Allocs * uint64(p.Size)
		pool.bySize.stolen[p.class()] += p.Allocs
		gone := &pool.count.gone[tierOf(p.placement)]
		gone.alloc(p.Allocs, bytes)
		gone.free(p.Allocs, bytes)
		p.forget()
		poolLock.Release()
		atomic.AddUintptr(&h.Thread.pages, ^uintptr(0))
		spanFree(t.token, p, 0)
	}
}
