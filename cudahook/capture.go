package cudahook

import (
	"sync/atomic"
	"unsafe"
)

// capture counts the streams that capture a graph.
func capture(begins bool) {
	if begins {
		atomic.AddUint64(&captures, 1)
		return
	}
	for n := atomic.LoadUint64(&captures); n != 0; n = atomic.LoadUint64(&captures) {
		if atomic.CompareAndSwapUint64(&captures, n, n-1) {
			return
		}
	}
}

// startPool begins or ends the use of a private pool.
func (h *heap) startPool(r *Request) uint64 {
	p := h.pools
	for p != nil && (p.id0 != r.Address || p.id1 != r.Bytes || p.gone != 0) {
		p = p.next
	}
	switch r.Count {
	case 1:
		if p == nil {
			if p = h.newPool(r.Address, r.Bytes); p == nil {
				return r.done(ErrorOutOfMemory)
			}
			p.next = h.pools
			h.pools = p
		}
		h.active = p
	case 2:
		if p != nil {
			p.gone = 1
		}
		if h.active == p {
			h.active = nil
		}
	default:
		h.active = nil
	}
	return h.poolGone(r)
}

// poolGone makes the blocks of pools that are gone everyone's, once the device has been
// waited for: a graph may just have been launched. While a graph is captured they have
// to wait for the next such request.
func (h *heap) poolGone(r *Request) uint64 {
	at := &h.pools
	for *at != nil && (*at).gone == 0 {
		at = &(*at).next
	}
	if *at == nil || capturing() {
		return r.done(Success)
	}
	if !r.has(triedSync) {
		if action := h.syncAll(r); action != goOn {
			return action
		}
	}
	if !r.has(passed) { // the driver has failed
		return r.done(Success)
	}
	for at = &h.pools; *at != nil; {
		p := *at
		if p.gone == 0 {
			at = &p.next
			continue
		}
		*at = p.next
		h.dissolve(p, r.keep3)
	}
	return r.done(Success)
}

// dissolve makes all of a private pool part of the main one. What was freed after the
// heap's clock was until stays its stream's: that has not been waited for.
func (h *heap) dissolve(p *pool, until uint64) {
	p.dissolved = 1
	for t := h.all; t != nil; t = t.all {
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
	for t := h.all; t != nil; {
		next := t.all
		if t.pool == p && t.dead == 0 {
			h.kill(t)
		} else if t.pool == p {
			h.bury(t)
		}
		t = next
	}
}

// inherit gives the main pool a free block that its own pool has left.
func (h *heap) inherit(b *block, until uint64) {
	t := h.mainPool.global
	if b.number > until {
		t = nil
		if b.tag.dead == 0 {
			t = h.tagOf(b.tag.stream, h.mainPool)
		}
	}
	if t == nil {
		h.hold(b)
		return
	}
	h.give(b, t)
}

// streamTag is a tag of a stream in any pool, or nil.
func (h *heap) streamTag(stream uint64) *tag {
	t := h.tags[tagPlace(stream)&(tagPlaces-1)]
	for t != nil && t.stream != stream {
		t = t.chain
	}
	return t
}

// startStreamEnd ends a tag of a stream that is about to be destroyed. Its free blocks wait
// for what the stream has been given; those of a private pool stay in that. A step ends one
// tag, and the request is begun again until there is none.
func (h *heap) startStreamEnd(r *Request) uint64 {
	t := h.streamTag(ordered(r.Stream))
	if t == nil {
		return r.done(Success)
	}
	h.flush(t)
	if t.pool.global == nil || t.free == 0 {
		h.kill(t)
		return r.done(Success)
	}
	p := (*batch)(nil)
	if !capturing() {
		p = h.newBatch()
	}
	h.empty(t, p)
	h.kill(t)
	if p == nil {
		return r.done(Success)
	}
	if !h.newMarkFor(&p.marks, h.context, t.stream) {
		p.wide = 1
	}
	r.keep0 = uint64(uintptr(unsafe.Pointer(p)))
	if action := h.record(r); action != goOn {
		return action
	}
	return r.done(Success)
}

// empty takes all free blocks from a tag whose quick lists are empty: into a batch, or
// without one to those that are held.
func (h *heap) empty(t *tag, p *batch) {
	for kind := range t.bins {
		k := &t.bins[kind]
		for i := range k.head {
			for k.head[i] != nil {
				b := k.head[i]
				h.unbin(b)
				if p != nil {
					h.join(p, b)
				} else {
					h.hold(b)
				}
			}
		}
	}
}
