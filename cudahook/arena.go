package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// An arena is the host memory of a heap's descriptors. Descriptors are taken from chunks, and
// dropped ones are kept on a list for each type (heap.spare…). Chunks are never unmapped, because a
// request may still hold an address in one when its context ends. They are rewound instead.
//
//	next + left = end of the newest chunk
type arena struct {
	next, left uintptr
	chunks     uintptr // chunks in use, linked by their first word
	spare      uintptr // chunks that were rewound: zero except for that word
}

const (
	chunkBytes = 1 << 20
	chunkHead  = 64
)

// take returns the address of n zero bytes, or 0 when the kernel has no memory. n is a multiple of
// 8.
func (a *arena) take(n uintptr) uintptr {
	n = raw.RoundUp(n, 64)
	if a.left < n {
		c := a.spare
		if c != 0 {
			a.spare = raw.Load(c)
		} else if c = raw.Map(chunkBytes); c == 0 {
			return 0
		}
		raw.Store(c, a.chunks)
		a.chunks = c
		a.next, a.left = c+chunkHead, chunkBytes-chunkHead
	}
	at := a.next
	a.next += n
	a.left -= n
	return at
}

// rewind drops all descriptors at once. A chunk that the kernel does not clear is not used again.
func (a *arena) rewind() {
	for a.chunks != 0 {
		c := a.chunks
		a.chunks = raw.Load(c)
		if raw.Discard(c, chunkBytes) {
			raw.Store(c, a.spare)
			a.spare = c
		}
	}
	a.next, a.left = 0, 0
}

// newBlock returns a zeroed descriptor, or nil.
func (h *heap) newBlock() *block {
	b := h.spareBlocks
	if b == nil {
		return (*block)(raw.Ptr(h.arena.take(unsafe.Sizeof(block{}))))
	}
	h.spareBlocks = b.next
	*b = block{}
	return b
}

func (h *heap) dropBlock(b *block) {
	b.state = stateGone
	b.next = h.spareBlocks
	h.spareBlocks = b
}

// newSegment returns a zeroed descriptor, or nil.
func (h *heap) newSegment() *segment {
	s := h.spareSegments
	if s == nil {
		return (*segment)(raw.Ptr(h.arena.take(unsafe.Sizeof(segment{}))))
	}
	h.spareSegments = s.next
	*s = segment{}
	return s
}

func (h *heap) dropSegment(s *segment) {
	s.next = h.spareSegments
	h.spareSegments = s
}

// newStreamEvent returns a zeroed stream event, or nil.
func (h *heap) newStreamEvent() *streamEvent {
	m := h.spareStreamEvents
	if m == nil {
		return (*streamEvent)(raw.Ptr(h.arena.take(unsafe.Sizeof(streamEvent{}))))
	}
	h.spareStreamEvents = m.next
	*m = streamEvent{}
	return m
}

func (h *heap) dropStreamEvent(m *streamEvent) {
	m.next = h.spareStreamEvents
	h.spareStreamEvents = m
}

// newPending returns an empty group of pending frees on the list heap.allPending, or nil.
func (h *heap) newPending() *pendingFrees {
	p := h.sparePending
	if p == nil {
		if p = (*pendingFrees)(raw.Ptr(h.arena.take(unsafe.Sizeof(pendingFrees{})))); p == nil {
			return nil
		}
	} else {
		h.sparePending = p.next
		*p = pendingFrees{}
	}
	p.later = h.allPending
	if p.later != nil {
		p.later.sooner = p
	}
	h.allPending = p
	return p
}

func (h *heap) dropPending(p *pendingFrees) {
	if p.later != nil {
		p.later.sooner = p.sooner
	}
	if p.sooner != nil {
		p.sooner.later = p.later
	} else {
		h.allPending = p.later
	}
	p.next = h.sparePending
	h.sparePending = p
}
