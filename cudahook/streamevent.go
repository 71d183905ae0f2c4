package cudahook

import "tieralloc/internal/raw"

// A stream event stands for the work of a stream that must finish before a block is free. Once
// recorded, it holds the CUDA event that tells.
type streamEvent struct {
	raw.OffHeap
	next    *streamEvent
	context uint64
	stream  uint64 // streamEvery: all streams of the context
	event   uint64 // 0: none yet
	state   uint64
}

const (
	eventNew      uint64 = iota // not recorded yet
	eventRecorded               // recorded; it may have happened
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

// takeEvent returns an idle stream event of a context, whose CUDA event may be recorded again, or
// nil.
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

// dropEvents forgets the events of a context that has ended. All its work is done.
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

// amendEvents changes all stream events when a stream is about to end or a context has ended. Those
// of the stream become events of all streams of its context. Those of the context have happened,
// and their CUDA events are gone.
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

// keepEvent keeps the CUDA event of a stream event that is done, for the next one.
func (h *heap) keepEvent(m *streamEvent) {
	if m.event == 0 {
		h.dropStreamEvent(m)
		return
	}
	m.state = eventNew
	m.next = h.idleEvents
	h.idleEvents = m
}

// name pins a stream while the request's next action passes it to the driver: the program must not
// destroy it meanwhile. unname ends the pin.
func (h *heap) name(r *Request, stream uint64) {
	place := streamPlace(stream) & (streamPlaces - 1)
	h.streams.naming[place]++
	r.naming = place + 1
}

func (h *heap) unname(r *Request) {
	if r.naming != 0 {
		h.streams.naming[(r.naming-1)&(streamPlaces-1)]--
		r.naming = 0
	}
}

func allHappened(m *streamEvent) bool {
	for m != nil && m.state == eventHappened {
		m = m.next
	}
	return m == nil
}
