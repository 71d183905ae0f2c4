package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

func (h *heap) blockOf(r *Request) *block { return (*block)(raw.Ptr(uintptr(r.object))) }

// endUse accounts for a block that the program has freed.
func (h *heap) endUse(b *block) {
	h.count.frees++
	s := &h.count.side[b.segment.pool.spilled&1]
	s.frees++
	s.blocks--
	s.totalFreed += b.bytes
	s.live -= b.bytes
	h.count.asked -= b.asked
	b.number, b.since = h.clock, h.sinceNow()
	h.clock++
	b.cache.live--
	if b.cache.dead != 0 {
		h.recycleCache(b.cache)
	}
	if b.events != nil {
		h.withEvents--
	}
}

// park marks a block that is on no list as not available: pending, held, freeing or taken.
func (h *heap) park(b *block, state uint64) {
	b.state = state
	s := &h.count.side[b.segment.pool.spilled&1]
	if state == stateHeld {
		s.held += b.bytes
	} else {
		s.pending += b.bytes
	}
}

// lose gives up a parked block, because it is unknown what work still uses it.
func (h *heap) lose(b *block) {
	h.unpark(b)
	b.state = stateLost
	h.count.side[b.segment.pool.spilled&1].lost += b.bytes
}

// unpark ends the state that park set.
func (h *heap) unpark(b *block) {
	s := &h.count.side[b.segment.pool.spilled&1]
	if b.state == stateHeld {
		s.held -= b.bytes
	} else {
		s.pending -= b.bytes
	}
}

// hold keeps a block until a wait for the device, which cannot happen while a graph is captured.
func (h *heap) hold(b *block) {
	h.park(b, stateHeld)
	b.number = h.clock
	h.clock++
	b.next = h.held
	h.held = b
}

// releaseHeld frees the blocks that were held when the heap's clock was at most until.
func (h *heap) releaseHeld(until uint64) {
	list := h.held
	h.held = nil
	for list != nil {
		b := list
		list = b.next
		if b.number > until {
			b.next = h.held
			h.held = b
			continue
		}
		h.unpark(b)
		h.keepEvents(b)
		h.free(b)
	}
}

func (h *heap) keepEvents(b *block) {
	for b.events != nil {
		m := b.events
		b.events = m.next
		h.keepEvent(m)
	}
}

// startFree begins a free. Precondition: the table has a block at r.Address.
func (h *heap) startFree(r *Request) Action {
	b := h.table.find(r.Address)
	if b.state == stateForeign {
		return h.freeForeign(r, b)
	}
	if b.state != stateInUse {
		return h.wrongFree(r)
	}
	if sampling && r.Number != b.number {
		r.Number = b.number
		return r.act(phaseForget, ActForget)
	}
	r.Bytes = b.asked
	dead := b.cache.dead != 0 && r.Count == 0
	h.endUse(b)
	private := b.segment.pool.global == nil
	switch {
	case r.Op == OpStreamFree && !dead && (private || !capturing()):
		return h.freeOrdered(r, b)
	case capturing():
		h.hold(b)
		return r.done(Success)
	case settings.event:
		return h.freeLater(r, b)
	}
	h.park(b, stateFreeing)
	r.object = uint64(uintptr(unsafe.Pointer(b)))
	if b.events != nil || h.held != nil {
		r.set(wide)
	}
	h.count.waits++
	return h.syncNext(r, phaseSyncFree, r.has(wide))
}

// inside refuses a request whose address is inside a segment but not at the start of a block.
func (h *heap) inside(r *Request) Action {
	if r.Op == OpRecord {
		return r.done(ErrorInvalidValue)
	}
	return h.wrongFree(r)
}

// wrongFree refuses a free of an address in a segment that is not a live block: a double free, or
// an address inside a block.
func (h *heap) wrongFree(r *Request) Action {
	h.count.wrongFrees++
	return r.done(ErrorInvalidValue)
}

// captureError reports whether the driver refused a call because a stream captures a graph
// (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and those that follow it in cuda.h): a capture has begun
// since the request began.
func captureError(result uint64) bool { return result >= errorCapture && result <= 908 }

// syncedFree takes the driver's answer to one wait of a plain free.
func (h *heap) syncedFree(r *Request) Action {
	b := h.blockOf(r)
	if !h.idle(r) {
		r.object = 0
		if captureError(r.Result) {
			h.unpark(b)
			h.hold(b)
			return r.done(Success)
		}
		h.lose(b)
		return r.done(r.Result)
	}
	if action := h.syncNext(r, phaseSyncFree, r.has(wide)); action != goOn {
		return action
	}
	r.object = 0
	until := b.number
	h.unpark(b)
	h.keepEvents(b)
	h.free(b)
	if r.has(wide) {
		h.releaseHeld(until)
	}
	return goOn
}

// freeLater adds a block to the open group of pending frees, which share one event.
func (h *heap) freeLater(r *Request, b *block) Action {
	if h.open == nil {
		if h.open = h.newPending(); h.open == nil {
			h.hold(b)
			return r.done(Success)
		}
	}
	p := h.open
	h.join(p, b)
	if p.n >= pendingMax && h.closePending(r) {
		if action := h.record(r); action != goOn {
			return action
		}
	}
	return h.freeOn(r)
}

// join puts a block in a group of pending frees, with its stream events.
func (h *heap) join(p *pendingFrees, b *block) {
	h.park(b, statePending)
	b.next = p.blocks
	p.blocks = b
	p.n++
	p.clock = max(p.clock, b.number)
	for b.events != nil {
		m := b.events
		b.events = m.next
		m.next = p.events
		p.events = m
	}
}

// freeOrdered frees a block behind the work of its stream so far.
func (h *heap) freeOrdered(r *Request, b *block) Action {
	stream := ordered(r.Stream)
	t := (*streamCache)(nil)
	if r.caller == h.context {
		t = h.cacheOf(stream, b.segment.pool)
	}
	if t != nil && b.events == nil && b.segment.kind != kindWhole {
		d := h.device
		if t.exacts >= d.exactLimit {
			h.flush(t)
		}
		if d.exactLimit != 0 && d.eager == 0 && b.segment.nonReusable == 0 &&
			h.cached()+b.bytes <= h.cacheLimit() {
			h.pushExact(t, b)
		} else {
			h.give(b, t)
		}
		return h.freeOn(r)
	}
	if capturing() {
		h.hold(b)
		return r.done(Success)
	}
	p := h.newPending()
	if p == nil {
		h.hold(b)
		return r.done(Success)
	}
	h.join(p, b)
	if !h.addStreamEvent(&p.events, r.caller, stream) {
		p.wide = 1
	}
	r.object = uint64(uintptr(unsafe.Pointer(p)))
	if action := h.record(r); action != goOn {
		return action
	}
	return h.freeOn(r)
}

// freeOn ends a free. Before that it returns surplus segments.
func (h *heap) freeOn(r *Request) Action {
	if !capturing() {
		if h.cached() > h.cacheLimit() || h.now-h.flushed >= decay && h.now > h.flushed {
			h.flushAll()
		}
		if action := h.giveBack(r); action != goOn {
			return action
		}
	}
	return r.done(r.failure)
}

// recordStream notes that a further stream uses a block.
func (h *heap) recordStream(r *Request) Action {
	b := h.table.find(r.Address)
	stream := ordered(r.Stream)
	if b.state == stateForeign {
		return ActPass
	}
	if b.state != stateInUse {
		return r.done(ErrorInvalidValue)
	}
	if b.cache.stream == stream && r.caller == h.context {
		return r.done(Success)
	}
	if stream == streamPerThread { // another stream in the thread that will free it
		stream = streamEvery
	}
	for m := b.events; m != nil; m = m.next {
		if m.stream == stream && m.context == r.caller && m.state == eventNew {
			return r.done(Success)
		}
	}
	first := b.events == nil
	if !h.addStreamEvent(&b.events, r.caller, stream) {
		return r.done(ErrorOutOfMemory)
	}
	if first {
		h.withEvents++
	}
	return r.done(Success)
}
