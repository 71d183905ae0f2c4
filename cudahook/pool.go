package cudahook

import "tieralloc/internal/raw"

// A pool is a set of segments whose blocks are not for others: the main one, that of
// managed memory that prefers the host (spill), and private ones of graphs: a graph that is
// launched again writes to the same addresses again, so its blocks stay its own until
// the pool is gone. Several graphs may share one: it is gone when it was released as
// often as it was begun.
type pool struct {
	raw.OffHeap
	next    *pool
	id0     uint64
	id1     uint64
	global  *streamCache // nil: private, its free blocks are of stream caches only
	spilled uint64       // 1: its segments are on the host

	uses  uint64 // begins that no release was for
	begun uint64 // begins that no end was for
	under *pool  // begun before it, and not ended

	gone      uint64 // the heap's clock when the last use was released
	dissolved uint64 // 1: and all that it had is the main pool's
}

// startPool begins, ends or releases a use of a private pool.
func (h *heap) startPool(r *Request) uint64 {
	p := h.pools
	for p != nil && (p.id0 != r.Address || p.id1 != r.Bytes || p.gone != 0) {
		p = p.next
	}
	switch {
	case r.Count == 1:
		if p == nil {
			if p = h.newPool(r.Address, r.Bytes); p == nil {
				return r.done(ErrorOutOfMemory)
			}
			p.next = h.pools
			h.pools = p
		}
		p.uses++
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

// deactivate removes a pool from those that are begun. The last of them is active.
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

// anyGone reports whether a pool is gone that still has its blocks.
func (h *heap) anyGone() bool {
	p := h.pools
	for p != nil && p.gone == 0 {
		p = p.next
	}
	return p != nil
}

// poolGone waits for the device where a pool is gone: a graph may just have been launched.
// While a graph is captured the pool has to wait for the next request that waits.
func (h *heap) poolGone(r *Request) uint64 {
	if h.anyGone() && !capturing() && !r.has(triedSync) {
		if action := h.syncAll(r); action != goOn {
			return action
		}
	}
	return r.done(Success)
}

// dissolveGone makes the blocks of the pools everyone's that were gone when the heap's
// clock was until. Precondition: all work from before then is done.
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

// dissolve makes all of a private pool part of the main one. What was freed after the
// heap's clock was until stays its stream's: that has not been waited for.
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

// inherit gives the main pool a free block that its own pool has left.
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
