package alloc

import (
	"tieralloc/alloc/sizeclass"
)

// Purging is due by time, and only slow paths read the clock. A thread that uses only its fast
// paths would never purge the memory that it freed before. So while much memory is dirty, one of
// every so many frees of a current page calls PageEmpty, and so does one of those that go to a
// thread-cache free list while their page is not full. The interval adapts: it is short if frees
// are rare and long if they are frequent.
//
//	1 <= tickAfter, Credit <= tickMax, but within PageEmpty
//	Trigger of a current page of one slice <= Frees + tickMax, unless disarmed
//		Credit and Trigger may be larger by a ration (ration.go)
//
// Frees in bulk may pass a trigger. Then the page has no trigger any more.
const (
	tickFirst = 1
	tickMax   = 256
	tickEvery = 1e6 // the wanted time between two calls, in nanoseconds
)

// armTicker sets triggers on the current pages of all the thread's heaps. Slow paths call it; it
// acts once in a while.
func (t *Thread) armTicker() {
	if !muchKept() || t.Now < t.tickerArmed+tickEvery {
		return
	}
	t.tickerArmed = t.Now
	t.tickAfter = tickFirst
	for h := t.heaps; h != nil; h = h.sibling {
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			if p := h.cur[c]; p != pageNone && !p.armedWithin(tickMax) {
				p.armAfter(tickFirst)
			}
			h.cacheList(uintptr(c)).Credit = tickFirst
		}
	}
}

// tickCurrent does the work that is due when the frees of a current page have reached its trigger.
func (t *Thread) tickCurrent(p *Page) {
	p.disarm()
	if n := t.nextTick(); n != 0 {
		p.armAfter(n)
	}
	t.tick()
}

// tickWarm is tickCurrent for frees that have gone to a thread-cache free list.
func (t *Thread) tickWarm(s *CacheList) {
	s.Credit = tickMax
	if n := t.nextTick(); n != 0 {
		s.Credit = int64(n)
	}
	t.tick()
}

// nextTick returns the number of frees until the next tick, or 0 if none is needed.
func (t *Thread) nextTick() uint64 {
	if t.Now >= t.ticked+tickEvery {
		t.tickAfter = max(t.tickAfter/8, 1)
	} else {
		t.tickAfter = min(max(t.tickAfter, 1)*2, tickMax)
	}
	t.ticked = t.Now
	if !muchKept() {
		return 0
	}
	return t.tickAfter
}

// muchKept reports whether there is enough free memory for ticks to be worth while, or whether
// abandoned heaps have pages, which may be empty.
func muchKept() bool {
	return pool.dirtyBytes > minReserve || pool.cache.bytes > minReserve ||
		abandoned.with.first != nil
}

// servant is the thread that the control plane works as. It has no heaps.
var servant Thread

// Service does the work that is due at now, without a thread of the program: purging, serving
// abandoned heaps, moving spans. It reports whether there may be more to move at once. Only one
// goroutine calls it.
func Service(token uintptr, now uint64) (more bool) {
	t := &servant
	t.token, t.Now = token, now
	serveAbandoned(token, now, abandoned.with.n, true)
	serveLimit(token, now)
	hugeExpire(token, now, anyPlacement, false)
	purgeDue(token, now)
	return migrate(token, now)
}
