package alloc

// Purging is due by time, and only slow paths look at the time. A thread that allocates and frees
// on its fast paths alone would leave what it has freed before for good. So while much is dirty,
// every so many frees of a current page come to PageEmpty, and so do those that go to a spill list
// while their page is not full: often where they are rare, and hardly ever where they are many.
//
//	1 <= pace, Credit <= paceMax, but within PageEmpty
//	Trigger of a current page of one slice <= Frees + paceMax, or neverEmpty
//
// Frees that come in bulk may pass a trigger: then the page is not watched any more.
const (
	paceFirst  = 1
	paceMax    = 256
	watchEvery = 1e6 // nanoseconds between two calls from where on they are rare
)

// watch has frees of the current pages of all the thread's heaps look at the time. It is
// called on slow paths, and does so once in a while.
func (t *Thread) watch() {
	if !muchKept() || t.Now < t.watched+watchEvery {
		return
	}
	t.watched = t.Now
	t.pace = paceFirst
	for _, h := range t.Heaps {
		if h == nil {
			continue
		}
		for c := h.firstOpen(0); c < Classes; c = h.firstOpen(c + 1) {
			if p := h.cur[c]; p != pageNone && p.Trigger-p.Frees-1 >= paceMax {
				p.Trigger = p.Frees + paceFirst
			}
			h.Spill[c].Credit = paceFirst
		}
	}
}

// look does what is due when the frees of a current page have come to its trigger.
func (t *Thread) look(p *Page) {
	p.Trigger = neverEmpty
	if n := t.nextLook(); n != 0 {
		p.Trigger = p.Frees + n
	}
	t.tick()
}

// lookWarm is look for frees that have gone to a spill list.
func (t *Thread) lookWarm(s *Spill) {
	s.Credit = paceMax
	if n := t.nextLook(); n != 0 {
		s.Credit = int64(n)
	}
	t.tick()
}

// nextLook is after how many frees to look again, or 0 where there is no need to.
func (t *Thread) nextLook() uint64 {
	if t.Now >= t.looked+watchEvery {
		t.pace = max(t.pace/8, 1)
	} else {
		t.pace = min(max(t.pace, 1)*2, paceMax)
	}
	t.looked = t.Now
	if !muchKept() {
		return 0
	}
	return t.pace
}

// muchKept reports whether there is enough free memory that is not the kernel's to look
// after it, or heaps without a thread that have pages, any number of which may be empty.
func muchKept() bool {
	return pool.dirtyBytes > minReserve || pool.cache.bytes > minReserve ||
		abandoned.with.first != nil
}
