package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A mark is a stream whose work so far has to end before a block is free, or the event
// that says so.
type mark struct {
	raw.OffHeap
	next    *mark
	context uint64
	stream  uint64 // streamEvery: all streams of the context
	event   uint64 // 0: none yet
	state   uint64
}

const (
	markNew      uint64 = iota // nothing is recorded
	markRecorded               // the event may happen
	markPassed                 // it has
)

// A batch is freed blocks that become free for everyone when all its marks have passed.
//
//	its blocks are pending; clock >= their numbers
type batch struct {
	raw.OffHeap
	next          *batch // in the queue, or among the spare ones
	sooner, later *batch // all that are no spare ones
	blocks        *block
	marks         *mark
	n             uint64 // blocks
	clock         uint64
	busy          uint64 // 1: a request asks for one of its events
	visited       uint64 // the last request that has asked
	wide          uint64 // 1: an event could not be had, all contexts have to be waited for
}

const (
	batchMax = 32 // plain frees that share one event
)

func (h *heap) batchOf(r *Request) *batch { return (*batch)(raw.Ptr(uintptr(r.keep0))) }

// newMarkFor puts a mark in front of a list. It reports false when there is no memory.
func (h *heap) newMarkFor(list **mark, context, stream uint64) bool {
	m := h.newMark()
	if m == nil {
		return false
	}
	m.context, m.stream = context, stream
	m.next = *list
	*list = m
	return true
}

// takeEvent returns a mark with an event of a context that may be recorded, or nil.
func (h *heap) takeEvent(context uint64) *mark {
	at := &h.events
	for *at != nil {
		m := *at
		if m.context == context {
			*at = m.next
			return m
		}
		at = &m.next
	}
	return nil
}

// dropEvents forgets the events of a context that is gone: all its work is done.
func (h *heap) dropEvents(context uint64) {
	for at := &h.events; *at != nil; {
		m := *at
		if m.context != context {
			at = &m.next
			continue
		}
		*at = m.next
		h.dropMark(m)
	}
	h.remark(streamNone, context)
}

// remark is for a stream that is about to end, or a context that has ended, in all marks:
// those on the stream become marks on all streams of its context; those of the context
// have passed, without their events.
func (h *heap) remark(stream, context uint64) {
	for p := h.batches; p != nil; p = p.later {
		remarkList(p.marks, stream, context)
	}
	for i := uintptr(0); h.marked != 0 && h.table.base != 0 && i <= h.table.mask; i++ {
		if e := h.table.at(i); e.key != 0 && e.block.state == stateInUse {
			remarkList(e.block.marks, stream, context)
		}
	}
}

func remarkList(m *mark, stream, context uint64) {
	for ; m != nil; m = m.next {
		switch {
		case m.context == context:
			m.state, m.event = markPassed, 0
		case m.stream == stream && m.state == markNew:
			m.stream = streamEvery
		}
	}
}

// keepEvent is for a mark that is of no use any more; its event may be.
func (h *heap) keepEvent(m *mark) {
	if m.event == 0 {
		h.dropMark(m)
		return
	}
	m.state = markNew
	m.next = h.events
	h.events = m
}

// record goes on with the marks of the request's batch, one driver call at a time. goOn
// means that the batch is in the queue, or that its blocks are free.
func (h *heap) record(r *Request) uint64 {
	p := h.batchOf(r)
	for m := p.marks; m != nil && p.wide == 0; m = m.next {
		if m.state != markNew {
			continue
		}
		r.keep1 = uint64(uintptr(unsafe.Pointer(m)))
		if m.event == 0 {
			e := h.takeEvent(m.context)
			if e == nil {
				r.Context, r.keep5 = m.context, 0
				return r.act(phaseMarkEvent, ActEventCreate)
			}
			m.event = e.event
			h.dropMark(e)
		}
		r.Arg0 = m.event
		r.keep5 = 0
		if m.stream == streamEvery {
			r.Arg1 = m.context
			return r.act(phaseMarkRecord, ActEventRecordContext)
		}
		r.Context = m.context
		r.Arg1 = m.stream
		h.name(r, m.stream)
		return r.act(phaseMarkRecord, ActEventRecord)
	}
	if p.wide != 0 {
		if act := h.syncNext(r, phaseMarkSync, true); act != goOn {
			return act
		}
		h.finish(p)
	} else {
		h.enqueue(p)
	}
	r.keep0, r.keep1 = 0, 0
	return goOn
}

// recorded takes the driver's answer to an action of record.
func (h *heap) recorded(r *Request, phase uint64) {
	p, m := h.batchOf(r), (*mark)(raw.Ptr(uintptr(r.keep1)))
	switch {
	case phase == phaseMarkSync:
		if !h.idle(r) {
			r.keep2 = contextsMax
			h.abandon(p, captureError(r.Result))
			if captureError(r.Result) {
				return
			}
			if r.Op == OpFree || r.Op == OpStreamFree {
				r.keep3 = r.Result
			}
		}
	case r.Result != Success:
		p.wide = 1
	case m.state == markPassed: // its context has ended meanwhile
	case phase == phaseMarkEvent:
		m.event = r.Value
	default:
		m.state = markRecorded
	}
}

// name notes that the request's next action names a stream: that must not be destroyed
// meanwhile. unname ends it.
func (h *heap) name(r *Request, stream uint64) {
	place := tagPlace(stream) & (tagPlaces - 1)
	h.naming[place]++
	r.keep5 = place + 1
}

func (h *heap) unname(r *Request) {
	if r.keep5 != 0 {
		h.naming[(r.keep5-1)&(tagPlaces-1)]--
		r.keep5 = 0
	}
}

// enqueue puts a batch at the end of the queue.
func (h *heap) enqueue(p *batch) {
	p.busy = 0
	p.next = nil
	if h.queue == nil {
		h.queue = p
	} else {
		h.tail.next = p
	}
	h.tail = p
}

// unqueue takes a batch out of the queue.
func (h *heap) unqueue(p *batch) {
	before := (*batch)(nil)
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

// finish frees the blocks of a batch that is in no queue: all that they wait for is done.
func (h *heap) finish(p *batch) {
	for p.blocks != nil {
		b := p.blocks
		p.blocks = b.next
		h.settled(b)
		h.free(b)
	}
	for p.marks != nil {
		m := p.marks
		p.marks = m.next
		h.keepEvent(m)
	}
	h.dropBatch(p)
}

// abandon takes the blocks from a batch for which the device could not be waited for. With
// later they are held until it can; else the driver has failed.
func (h *heap) abandon(p *batch, later bool) {
	for p.blocks != nil {
		b := p.blocks
		p.blocks = b.next
		if later {
			h.settled(b)
			h.hold(b)
			continue
		}
		h.lose(b)
	}
}

// nextQuery returns a recorded mark of a batch that the request has not asked for yet, or
// nil. The request's visit is its keep4.
func (h *heap) nextQuery(r *Request) *mark {
	p := h.queue
	for i := 0; p != nil && i < queryMax; i++ {
		next := p.next
		if p.busy == 0 && p.visited != r.keep4 {
			p.visited = r.keep4
			for m := p.marks; m != nil; m = m.next {
				if m.state == markRecorded {
					p.busy = 1
					r.keep0, r.keep1 = uint64(uintptr(unsafe.Pointer(p))),
						uint64(uintptr(unsafe.Pointer(m)))
					return m
				}
			}
			h.unqueue(p) // the contexts of its last marks have ended
			h.finish(p)
		}
		p = next
	}
	return nil
}

const queryMax = 16 // batches that a request asks for

func allPassed(m *mark) bool {
	for m != nil && m.state == markPassed {
		m = m.next
	}
	return m == nil
}

// queried takes the answer about a mark. When it was the last one, the batch's blocks are
// free.
func (h *heap) queried(r *Request) {
	p, m := h.batchOf(r), (*mark)(raw.Ptr(uintptr(r.keep1)))
	p.busy = 0
	r.keep0, r.keep1 = 0, 0
	if r.Result != Success {
		return
	}
	m.state = markPassed
	if allPassed(p.marks) {
		h.unqueue(p)
		h.finish(p)
		return
	}
	p.visited = 0 // its next mark
}

// settle is for when all that any stream was given until the heap's clock was until is
// done: batches from before are finished, and all blocks freed before are for everyone.
func (h *heap) settle(until uint64) {
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
	h.releaseHeld(until)
	h.flushAll()
	for t := h.all; t != nil; t = t.all {
		if t.free != 0 {
			h.promote(t, until)
		}
	}
}

// closeBatch makes the batch of plain frees that is open the request's, with marks for all
// contexts that may use its blocks.
func (h *heap) closeBatch(r *Request) bool {
	p := h.open
	if p == nil {
		return false
	}
	h.open = nil
	p.clock = h.clock - 1
	for i := uint64(0); i < contextsMax; i++ {
		if c := h.contextAt(i, false); c != 0 && !h.newMarkFor(&p.marks, c, streamEvery) {
			p.wide = 1
		}
	}
	r.keep0, r.keep1, r.keep2 = uint64(uintptr(unsafe.Pointer(p))), 0, 0
	return true
}
