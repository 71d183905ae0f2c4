package cudahook

import "tieralloc/internal/raw"

// A pool is a set of segments whose blocks only its own requests get. There are the main pool, the
// spill pool on the host, and private pools of graphs. A graph that is launched again writes to the
// same addresses again, so its blocks stay in its pool until the pool is gone. Several graphs may
// share a pool: it is gone when it was released as often as it was begun.
type pool struct {
	raw.OffHeap
	next    *pool
	id0     uint64
	id1     uint64
	global  *streamCache // nil: private, all its free blocks are in streams' caches
	spilled uint64       // 1: its segments are on the host

	uses  uint64 // begins without a release
	begun uint64 // begins without an end
	under *pool  // the pool begun before it and not ended

	addresses reservation // of its expandable segments
	tagged    uint64      // 1: it is a region's, and may sleep
	sleep     uint64      // awake, asleep, or on the way

	gone      uint64 // the heap's clock when the last use was released
	dissolved uint64 // 1: its segments have joined the main pool
}

// startPool begins, ends or releases a use of a private pool.
func (h *heap) startPool(r *Request) Action {
	p := h.pools
	for p != nil && (p.id0 != r.Address || p.id1 != r.Bytes || p.gone != 0) {
		p = p.next
	}
	switch {
	case r.Count == 1 || r.Count == 3:
		if p == nil {
			if p = h.newPool(r.Address, r.Bytes); p == nil {
				return r.done(ErrorOutOfMemory)
			}
			p.next = h.pools
			h.pools = p
			p.tagged = r.Count >> 1
		}
		if p.tagged == 0 || p.uses == 0 { // a region is never released
			p.uses++
		}
		h.deactivate(p)
		p.begun++
		p.under, h.active = h.active, p
	case p == nil:
	case r.Count == 0 && p.begun != 0:
		if p.begun--; p.begun == 0 {
			h.deactivate(p)
		}
	case r.Count == 2:
		if p.uses--; p.uses == 0 {
			h.deactivate(p)
			p.gone = h.clock
			h.clock++
		}
	}
	return h.poolGone(r)
}

// deactivate removes a pool from the stack of begun pools. The top of the stack is active.
func (h *heap) deactivate(p *pool) {
	at := &h.active
	for *at != nil && *at != p {
		at = &(*at).under
	}
	if *at == p {
		*at = p.under
		p.under = nil
	}
}

// anyGone reports whether a pool is gone that still has segments.
func (h *heap) anyGone() bool {
	p := h.pools
	for p != nil && p.gone == 0 {
		p = p.next
	}
	return p != nil
}

// poolGone waits for the device if a pool is gone, because one of its graphs may still be running.
// While a graph is captured it cannot wait; a later request does.
func (h *heap) poolGone(r *Request) Action {
	if h.anyGone() && !capturing() && !r.has(triedSync) {
		if action := h.syncAll(r); action != goOn {
			return action
		}
	}
	return r.done(Success)
}

// dissolveGone merges the pools into the main pool that were gone when the heap's clock was at most
// until. Precondition: all work from before then is done.
func (h *heap) dissolveGone(until uint64) {
	for at := &h.pools; *at != nil; {
		p := *at
		if p.gone == 0 || p.gone > until {
			at = &p.next
			continue
		}
		*at = p.next
		h.dissolve(p, until)
	}
}

// dissolve moves all segments of a private pool to the main pool. Blocks that were freed after the
// heap's clock was until go to their streams' caches, because their work was not waited for.
func (h *heap) dissolve(p *pool, until uint64) {
	p.dissolved = 1
	for t := h.allCaches; t != nil; t = t.all {
		if t.pool == p {
			h.flush(t)
		}
	}
	for i := uintptr(0); i < h.index.n; i++ {
		s := h.index.at(i)
		if s.pool != p {
			continue
		}
		for b := s.first; b != nil; b = b.after {
			if b.state == stateFree {
				h.unbin(b)
				b.state = stateTaken
			}
		}
		s.pool = h.mainPool
		for b := s.first; b != nil; {
			next := b.after // give joins b with the one before it at most
			if b.state == stateTaken {
				h.inherit(b, until)
			}
			b = next
		}
	}
	for t := h.allCaches; t != nil; {
		next := t.all
		if t.pool == p && t.dead == 0 {
			h.endCache(t)
		} else if t.pool == p {
			h.recycleCache(t)
		}
		t = next
	}
}

// inherit puts a free block of a dissolved pool into the main pool's caches.
func (h *heap) inherit(b *block, until uint64) {
	t := h.mainPool.global
	if b.number > until {
		t = nil
		if b.cache.dead == 0 {
			t = h.cacheOf(b.cache.stream, h.mainPool)
		}
	}
	if t == nil {
		h.hold(b)
		return
	}
	h.give(b, t)
}
