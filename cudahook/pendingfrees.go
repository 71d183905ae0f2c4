package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A group of pending frees holds freed blocks that every stream may use once all its stream events
// have happened.
//
//	its blocks are pending; clock >= their numbers
type pendingFrees struct {
	raw.OffHeap
	next          *pendingFrees // in the queue, or in the list of spare ones
	sooner, later *pendingFrees // in heap.allPending
	blocks        *block
	events        *streamEvent
	n             uint64 // blocks
	clock         uint64
	busy          uint64 // 1: a request queries one of its events
	visited       uint64 // the last request that queried one
	wide          uint64 // 1: an event could not be made, so all contexts are waited for
}

const (
	pendingMax = 32 // plain frees that share one event
)

func (h *heap) pendingOf(r *Request) *pendingFrees {
	return (*pendingFrees)(raw.Ptr(uintptr(r.object)))
}

// record continues with the stream events of the request's group, one driver call at a time. goOn:
// the group is in the queue, or its blocks are free.
func (h *heap) record(r *Request) Action {
	p := h.pendingOf(r)
	for m := p.events; m != nil && p.wide == 0; m = m.next {
		if m.state != eventNew {
			continue
		}
		r.event = uint64(uintptr(unsafe.Pointer(m)))
		if m.event == 0 {
			e := h.takeEvent(m.context)
			if e == nil {
				r.Context, r.naming = m.context, 0
				return r.act(phasePendingEvent, ActEventCreate)
			}
			m.event = e.event
			h.dropStreamEvent(e)
		}
		r.OnEvent = m.event
		r.naming = 0
		if m.stream == streamEvery {
			r.OnContext = m.context
			return r.act(phasePendingRecord, ActEventRecordContext)
		}
		r.Context = m.context
		r.OnStream = m.stream
		h.name(r, m.stream)
		return r.act(phasePendingRecord, ActEventRecord)
	}
	if p.wide != 0 {
		if act := h.syncNext(r, phasePendingSync, true); act != goOn {
			return act
		}
		h.finish(p)
	} else {
		h.enqueue(p)
	}
	r.object, r.event, r.returned = 0, 0, 0
	return goOn
}

// recorded takes the driver's answer to an action of record.
func (h *heap) recorded(r *Request, phase uint64) {
	p, m := h.pendingOf(r), (*streamEvent)(raw.Ptr(uintptr(r.event)))
	switch {
	case phase == phasePendingSync:
		if !h.idle(r) {
			r.nextContext = contextsMax
			h.abandon(p, captureError(r.Result))
			if captureError(r.Result) {
				return
			}
			if r.Op == OpFree || r.Op == OpStreamFree {
				r.failure = r.Result
			}
		}
	case r.Result != Success:
		p.wide = 1
	case m.state == eventHappened: // the event's context ended meanwhile
	case phase == phasePendingEvent:
		m.event = r.Value
	default:
		m.state = eventRecorded
	}
}

// enqueue puts a group of pending frees at the end of the queue.
func (h *heap) enqueue(p *pendingFrees) {
	p.busy = 0
	p.next = nil
	if h.queue == nil {
		h.queue = p
	} else {
		h.tail.next = p
	}
	h.tail = p
}

// unqueue takes a group of pending frees out of the queue.
func (h *heap) unqueue(p *pendingFrees) {
	before := (*pendingFrees)(nil)
	for q := h.queue; q != nil && q != p; q = q.next {
		before = q
	}
	if before == nil {
		h.queue = p.next
	} else {
		before.next = p.next
	}
	if h.tail == p {
		h.tail = before
	}
}

// finish frees the blocks of a group of pending frees. Precondition: the group is not in the queue,
// and the work that its blocks wait for is done.
func (h *heap) finish(p *pendingFrees) {
	h.freeBlocks(p)
	for p.events != nil {
		m := p.events
		p.events = m.next
		h.keepEvent(m)
	}
	h.dropPending(p)
}

// freeBlocks frees the blocks of a group of pending frees. Precondition: the work that they wait
// for is done.
func (h *heap) freeBlocks(p *pendingFrees) {
	for p.blocks != nil {
		b := p.blocks
		p.blocks = b.next
		h.unpark(b)
		h.free(b)
	}
}

// abandon takes the blocks from a group of pending frees when the wait for the device failed. With
// later they are held until a later wait. Otherwise they are lost.
func (h *heap) abandon(p *pendingFrees, later bool) {
	for p.blocks != nil {
		b := p.blocks
		p.blocks = b.next
		if later {
			h.unpark(b)
			h.hold(b)
			continue
		}
		h.lose(b)
	}
}

// nextQuery returns a recorded stream event of a group of pending frees that the request has not
// visited, or nil.
func (h *heap) nextQuery(r *Request) *streamEvent {
	p := h.queue
	for i := 0; p != nil && i < queryMax; i++ {
		next := p.next
		if p.busy == 0 && p.visited != r.visit {
			p.visited = r.visit
			for m := p.events; m != nil; m = m.next {
				if m.state == eventRecorded {
					p.busy = 1
					r.object, r.event = uint64(uintptr(unsafe.Pointer(p))),
						uint64(uintptr(unsafe.Pointer(m)))
					return m
				}
			}
			h.unqueue(p) // the contexts of its last stream events have ended
			h.finish(p)
		}
		p = next
	}
	return nil
}

const queryMax = 16 // groups of pending frees that a request examines

// queried takes the driver's answer to a query of a stream event. If the event has happened and it
// was the group's last, it frees the group's blocks.
func (h *heap) queried(r *Request) {
	p, m := h.pendingOf(r), (*streamEvent)(raw.Ptr(uintptr(r.event)))
	p.busy = 0
	r.object, r.event, r.returned = 0, 0, 0
	if r.Result != Success {
		return
	}
	m.state = eventHappened
	if allHappened(p.events) {
		h.unqueue(p)
		h.finish(p)
		return
	}
	p.visited = 0 // its next stream event
}

// makeReusable makes all blocks that were freed when the heap's clock was at most until free for
// every stream. Precondition: all work that was submitted before then is done.
func (h *heap) makeReusable(until uint64) {
	if p := h.open; p != nil && p.clock <= until {
		h.open = nil
		h.finish(p)
	}
	for p := h.queue; p != nil; {
		next := p.next
		if p.busy == 0 && p.clock <= until {
			h.unqueue(p)
			h.finish(p)
		}
		p = next
	}
	for p := h.allPending; p != nil; p = p.later { // requests of other threads have these groups
		if p.clock <= until {
			h.freeBlocks(p)
		}
	}
	h.releaseHeld(until)
	h.flushAll()
	for t := h.allCaches; t != nil; t = t.all {
		if t.free != 0 {
			h.promote(t, until)
		}
	}
}

// closePending hands the open group of plain frees to the request, with stream events for all
// contexts that may use its blocks. It reports false if no group is open.
func (h *heap) closePending(r *Request) bool {
	p := h.open
	if p == nil {
		return false
	}
	h.open = nil
	p.clock = h.clock - 1
	for i := uint64(0); i < contextsMax; i++ {
		if c := h.contextAt(i, false); c != 0 && !h.addStreamEvent(&p.events, c, streamEvery) {
			p.wide = 1
		}
	}
	r.object, r.event, r.nextContext = uint64(uintptr(unsafe.Pointer(p))), 0, 0
	r.returned = 0
	return true
}
