package alloc

import "tieralloc/alloc/sizeclass"

// Purging is due by time, and only slow paths look at the time. A thread that allocates and frees
// on its fast paths alone would leave what it has freed before for good. So while much is dirty,
// every so many frees of a current page come to PageEmpty, and so do those that go to a
// thread-cache free list while their page is not full: often where they are rare, and hardly ever
// where they are many.
//
//	1 <= tickAfter, Credit <= tickMax, but within PageEmpty
//	Trigger of a current page of one slice <= Frees + tickMax, unless disarmed
//
// Frees that come in bulk may pass a trigger: then the page is not watched any more.
const (
	tickFirst = 1
	tickMax   = 256
	tickEvery = 1e6 // nanoseconds between two calls from where on they are rare
)

// armTicker has frees of the current pages of all the thread's heaps look at the time. It is
// called on slow paths, and does so once in a while.
func (t *Thread) armTicker() {
	if !muchKept() || t.Now < t.tickerArmed+tickEvery {
		return
	}
	t.tickerArmed = t.Now
	t.tickAfter = tickFirst
	for _, h := range t.Heaps {
		if h == nil {
			continue
		}
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			if p := h.cur[c]; p != pageNone && !p.armedWithin(tickMax) {
				p.armAfter(tickFirst)
			}
			h.CacheLists[c].Credit = tickFirst
		}
	}
}

// tickCurrent does what is due when the frees of a current page have come to its trigger.
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

// nextTick is after how many frees to look again, or 0 where there is no need to.
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

// muchKept reports whether there is enough free memory that is not the kernel's to look
// after it, or heaps without a thread that have pages, any number of which may be empty.
func muchKept() bool {
	return pool.dirtyBytes > minReserve || pool.cache.bytes > minReserve ||
		abandoned.with.first != nil
}
