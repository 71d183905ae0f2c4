package cudahook

import "tieralloc/internal/raw"

// A stream event is a stream whose work so far has to end before a block is free, or the event
// that says so.
type streamEvent struct {
	raw.OffHeap
	next    *streamEvent
	context uint64
	stream  uint64 // streamEvery: all streams of the context
	event   uint64 // 0: none yet
	state   uint64
}

const (
	eventNew      uint64 = iota // nothing is recorded
	eventRecorded               // the event may happen
	eventHappened               // it has
)

// addStreamEvent puts a stream event in front of a list. It reports false when there is no memory.
func (h *heap) addStreamEvent(list **streamEvent, context, stream uint64) bool {
	m := h.newStreamEvent()
	if m == nil {
		return false
	}
	m.context, m.stream = context, stream
	m.next = *list
	*list = m
	return true
}

// takeEvent returns a stream event with an event of a context that may be recorded, or nil.
func (h *heap) takeEvent(context uint64) *streamEvent {
	at := &h.idleEvents
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
	for at := &h.idleEvents; *at != nil; {
		m := *at
		if m.context != context {
			at = &m.next
			continue
		}
		*at = m.next
		h.dropStreamEvent(m)
	}
	h.amendEvents(streamNone, context)
}

// remark is for a stream that is about to end, or a context that has ended, in all stream events:
// those on the stream become stream events on all streams of its context; those of the context
// have passed, without their events.
func (h *heap) amendEvents(stream, context uint64) {
	for p := h.allPending; p != nil; p = p.later {
		amendList(p.events, stream, context)
	}
	for i := uintptr(0); h.withEvents != 0 && h.table.base != 0 && i <= h.table.mask; i++ {
		if e := h.table.at(i); e.key != 0 && e.block.state == stateInUse {
			amendList(e.block.events, stream, context)
		}
	}
}

func amendList(m *streamEvent, stream, context uint64) {
	for ; m != nil; m = m.next {
		switch {
		case m.context == context:
			m.state, m.event = eventHappened, 0
		case m.stream == stream && m.state == eventNew:
			m.stream = streamEvery
		}
	}
}

// keepEvent is for a stream event that is of no use any more; its event may be.
func (h *heap) keepEvent(m *streamEvent) {
	if m.event == 0 {
		h.dropStreamEvent(m)
		return
	}
	m.state = eventNew
	m.next = h.idleEvents
	h.idleEvents = m
}

// name notes that the request's next action names a stream: that must not be destroyed
// meanwhile. unname ends it.
func (h *heap) name(r *Request, stream uint64) {
	place := streamPlace(stream) & (streamPlaces - 1)
	h.naming[place]++
	r.naming = place + 1
}

func (h *heap) unname(r *Request) {
	if r.naming != 0 {
		h.naming[(r.naming-1)&(streamPlaces-1)]--
		r.naming = 0
	}
}

func allHappened(m *streamEvent) bool {
	for m != nil && m.state == eventHappened {
		m = m.next
	}
	return m == nil
}
