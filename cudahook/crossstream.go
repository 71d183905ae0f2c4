package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Blocks that cross from one stream to others. When an event that was recorded on a
// stream has happened, all that the stream had freed before is for everyone (fence).
// Where memory is short the other stream waits for the event instead, on the device
// (steal).

func cacheIn(word uint64) *streamCache { return (*streamCache)(raw.Ptr(uintptr(word))) }

// otherCache returns the next stream cache of another stream that has a block of n bytes, and
// that the request has not looked at; or nil.
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

// fence asks whether the streams that have a block of n bytes have finished what they did
// before its free. goOn: there is no such stream left.
func (h *heap) fence(r *Request, n, kind uint64) uint64 {
	t := h.otherCache(r, n, kind)
	if t == nil {
		r.set(triedFence)
		h.visit++
		r.visit = h.visit // steal looks at them again
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

// eventMade takes a new event. Without one nothing crosses.
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
func (h *heap) fenceAnswer(r *Request, phase uint64) uint64 {
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
		// nobody can tell when it happens, or use it again
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

// steal takes a block from another stream: the request's stream waits, on the device, for
// all that the other one has been given. goOn: no stream has one.
func (h *heap) steal(r *Request, n, kind uint64) uint64 {
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

// stealAnswer takes the answer to an action of steal. What went wrong leaves a block that
// has to wait until the device is idle.
func (h *heap) stealAnswer(r *Request, phase uint64) uint64 {
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
