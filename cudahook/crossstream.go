package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Cross-stream reuse. When an event that was recorded on a stream has happened, every stream may
// use the blocks that the stream freed before (fence). When memory is short, the requesting stream
// waits for the event on the device instead (steal).

func cacheIn(word uint64) *streamCache { return (*streamCache)(raw.Ptr(uintptr(word))) }

// otherCache returns a stream cache of another stream that has a block of n bytes and that the
// request has not visited, or nil.
func (h *heap) otherCache(r *Request, n, kind uint64) *streamCache {
	p := h.poolOf(r)
	if p.global == nil {
		return nil
	}
	for t := h.allCaches; t != nil; t = t.all {
		if t.pool != p || t == p.global || t.dead != 0 || t.fencing != 0 || t.visited == r.visit ||
			t.free < n ||
			r.Op == OpStreamAlloc && t.stream == ordered(r.Stream) {
			continue
		}
		if h.fit(t, kind, n) != nil {
			return t
		}
	}
	return nil
}

// fence asks whether another stream that has a free block of n bytes has finished its work before
// the free. goOn: there is no such stream left.
func (h *heap) fence(r *Request, n, kind uint64) Action {
	t := h.otherCache(r, n, kind)
	if t == nil {
		r.set(triedFence)
		h.visit++
		r.visit = h.visit // steal visits them again
		return goOn
	}
	r.object = uint64(uintptr(unsafe.Pointer(t)))
	if t.fence != nil {
		t.fencing, t.visited = 1, r.visit
		r.OnEvent, r.naming = t.fence.event, 0
		return r.act(phaseFenceQuery, ActEventQuery)
	}
	m := h.takeEvent(h.context)
	if m == nil {
		return r.act(phaseEventCreate, ActEventCreate)
	}
	t.fence, t.fenced = m, h.clock-1
	t.fencing, t.visited = 1, r.visit
	r.OnEvent, r.OnStream = m.event, t.stream
	h.name(r, t.stream)
	return r.act(phaseFence, ActEventRecord)
}

// eventMade takes a new event. Without one the request gives up cross-stream reuse.
func (h *heap) eventMade(r *Request) {
	r.object = 0
	if r.Result == Success {
		if m := h.newStreamEvent(); m != nil {
			m.context, m.event = h.context, r.Value
			h.keepEvent(m)
			return
		}
	}
	r.set(triedFence | triedSteal)
}

// fenceAnswer takes the answer to an action of fence.
func (h *heap) fenceAnswer(r *Request, phase uint64) Action {
	t := cacheIn(r.object)
	if phase == phaseFence && r.Result == Success {
		r.OnEvent = t.fence.event
		return r.act(phaseFenceQuery, ActEventQuery)
	}
	t.fencing = 0
	r.object = 0
	switch {
	case phase == phaseFenceQuery && r.Result == ErrorNotReady:
	case phase == phaseFenceQuery && r.Result != Success:
		// the event is unusable
		h.dropStreamEvent(t.fence)
		t.fence = nil
	default:
		h.keepEvent(t.fence)
		t.fence = nil
		if phase == phaseFenceQuery {
			h.flush(t)
			h.promote(t, t.fenced)
		}
	}
	h.recycleCache(t)
	return goOn
}

// steal takes a block from another stream. The request's stream waits, on the device, for all work
// of that stream so far. goOn: no stream has a block.
func (h *heap) steal(r *Request, n, kind uint64) Action {
	t := (*streamCache)(nil)
	if r.Op == OpStreamAlloc && r.Stream != streamPerThread {
		t = h.otherCache(r, n, kind)
	}
	if t == nil {
		r.set(triedSteal)
		return goOn
	}
	m := h.takeEvent(h.context)
	if m == nil {
		return r.act(phaseEventCreate, ActEventCreate)
	}
	b := h.fit(t, kind, n)
	h.unbin(b)
	h.split(b, n, t)
	h.park(b, stateTaken)
	r.object, r.event = uint64(uintptr(unsafe.Pointer(b))), uint64(uintptr(unsafe.Pointer(m)))
	r.OnEvent, r.OnStream = m.event, t.stream
	h.name(r, t.stream)
	return r.act(phaseSteal, ActEventRecord)
}

// stealAnswer takes the answer to an action of steal. After an error the block is held until the
// device is idle.
func (h *heap) stealAnswer(r *Request, phase uint64) Action {
	b, m := h.blockOf(r), (*streamEvent)(raw.Ptr(uintptr(r.event)))
	if r.Result == Success && phase == phaseSteal {
		r.OnStream, r.OnEvent = r.Stream, m.event
		return r.act(phaseStealWait, ActStreamWait)
	}
	r.object, r.event, r.returned = 0, 0, 0
	h.keepEvent(m)
	h.unpark(b)
	t := h.cacheOf(ordered(r.Stream), b.segment.pool)
	if r.Result != Success || t == nil {
		h.hold(b)
		r.set(triedSteal)
		return goOn
	}
	h.count.hitGlobal++
	h.handOut(b, t, r.Bytes)
	r.Address = b.address
	return r.done(Success)
}
