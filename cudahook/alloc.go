package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/config"
)

// What a request has tried, and decided; bits of its state.
const (
	triedHarvest uint64 = 1 << (16 + iota) // the events of groups of pending frees were asked for
	triedFlush                             // exact-size bins are merged
	triedClose                             // the open group has its event
	triedFence                             // other streams' free blocks were looked at
	triedSteal                             // and none can be had by waiting for its stream
	triedSync                              // the device was waited for
	triedAgain                             // since a capture had begun meanwhile
	triedInfo                              // how full the device is, is known
	mappedOne                              // a segment was mapped for it
	short                                  // the driver has no memory
	tight                                  // a new segment is no larger than need be
	spilling                               // it gets memory on the host
	direct                                 // the driver is to serve it
	charged                                // its bytes are charged
	waited                                 // it is counted as having waited
	wide                                   // all contexts are waited for
	warming                                // a segment is mapped to warm the cache
	readied                                // which then has what the request asks for
	softCounted                            // it is counted as over the soft cap
	triedOthers                            // no other context on the device has idle segments
	othersPassed                           // all contexts were waited for, for another heap's sake
	lastHost                               // memory on the host is the last resort
	plainly                                // the driver has refused managed memory for it
)

// handOut makes b the program's, which has asked for so many bytes.
func (h *heap) handOut(b *block, t *streamCache, asked uint64) {
	h.serial++
	b.state, b.cache, b.asked = stateInUse, t, asked
	b.number = numberBase | h.slot<<numberIndex | h.serial
	t.live++
	s := &h.count.side[b.segment.pool.spilled&1]
	s.allocs++
	s.blocks++
	s.total += b.bytes
	s.live += b.bytes
	h.count.asked += b.asked
	if h.count.asked > h.count.askedPeak {
		h.count.askedPeak = h.count.asked
	}
	if live := h.count.side[0].live + h.count.side[1].live; live > h.count.livePeak {
		h.count.livePeak = live
	}
}

// plan is the size of the block for a request, and the kind of its segment.
func plan(r *Request) (n, kind uint64) {
	n = rounded(r.Bytes)
	switch {
	case r.Bytes < smallMax:
		return n, kindSmall
	case r.Op == OpAlloc && !settings.all:
		return mapRounded(n), kindWhole
	}
	return n, kindLarge
}

// poolOf is the pool that a request's block comes from.
func (h *heap) poolOf(r *Request) *pool {
	switch {
	case r.has(spilling):
		return h.spillPool
	case h.active != nil && r.Op == OpStreamAlloc && r.Stream != streamPerThread:
		return h.active
	}
	return h.mainPool
}

// serve goes on with a request for memory: a block that is free, or one that can be made
// free, or a new segment.
func (h *heap) serve(r *Request) uint64 {
	if r.Bytes == 0 || r.Bytes > maxRequest {
		return h.refuseSize(r)
	}
	if r.has(direct) {
		return h.serveForeign(r)
	}
	n, kind := plan(r)
	for range serveRounds {
		if h.warmed < settings.warmups && !r.has(spilling|short) {
			if action := h.warmNext(r, kind); action != goOn {
				return action
			}
		}
		if h.pick(r, n, kind) {
			return r.done(Success)
		}
		if action := h.more(r, n, kind); action != goOn {
			return action
		}
	}
	return h.refuse(r)
}

// serveRounds is above the number of things that are tried within one step.
const serveRounds = 64

// refuseSize answers requests that are no sizes.
func (h *heap) refuseSize(r *Request) uint64 {
	if r.Op == OpAlloc {
		return ActPass
	}
	if r.Bytes == 0 {
		r.Address = 0
		return r.done(Success)
	}
	return h.refuse(r)
}

// refuse ends a request for which there is no memory.
func (h *heap) refuse(r *Request) uint64 {
	h.count.refused++
	r.Address = 0
	return r.done(ErrorOutOfMemory)
}

// pick hands out a free block of at least n bytes, if there is one that the request's
// stream may have at once.
func (h *heap) pick(r *Request, n, kind uint64) bool {
	p := h.poolOf(r)
	var t *streamCache
	if r.Op == OpStreamAlloc {
		t = h.cacheOf(ordered(r.Stream), p)
	}
	b := h.obtain(t, p, kind, n, r.Bytes, r.has(mappedOne))
	if b == nil {
		return false
	}
	r.Address = b.address
	return true
}

// obtain hands out a free block of at least n bytes of a pool, if there is one that every
// stream may have, or that of stream cache t, which may be nil. Where the stream has none of just
// this size, its exact-size bins are merged first: so blocks fit as well as if all were merged
// when they are freed. mapped: the driver was asked for it.
func (h *heap) obtain(t *streamCache, p *pool, kind, n, asked uint64, mapped bool) *block {
	if t != nil {
		if b := h.popExact(t, n); b != nil {
			h.count.hitLocal++
			h.handOut(b, t, asked)
			return b
		}
		if t.exacts != 0 && t.frays(h.device.frayed) {
			h.flush(t)
		}
	}
	b, from := h.fitting(t, p.global, kind, n)
	if b == nil {
		return nil
	}
	h.unbin(b)
	whole := !h.split(b, n, from)
	switch {
	case mapped:
		h.count.misses++
	case !whole:
		h.count.hitSplit++
	case from == p.global:
		h.count.hitGlobal++
	default:
		h.count.hitLocal++
	}
	if t == nil {
		t = p.global
	}
	h.handOut(b, t, asked)
	return b
}

// more makes further blocks free, one thing after the other, and at last maps a segment.
// goOn: it is worth another look.
func (h *heap) more(r *Request, n, kind uint64) uint64 {
	if !r.has(triedFlush) {
		r.set(triedFlush)
		if h.flushAll() {
			return goOn
		}
	}
	if capturing() {
		return h.grow(r, n, kind)
	}
	if !r.has(triedHarvest) {
		if m := h.nextQuery(r); m != nil {
			r.OnEvent = m.event
			return r.act(phaseQuery, ActEventQuery)
		}
		r.set(triedHarvest)
		return goOn
	}
	if !r.has(triedClose) {
		r.set(triedClose)
		if h.closePending(r) {
			r.unset(triedHarvest)
			return h.record(r)
		}
	}
	if !r.has(triedSync) && (h.held != nil || h.anyGone()) {
		return h.syncAll(r)
	}
	if !r.has(triedFence) {
		return h.fence(r, n, kind)
	}
	return h.grow(r, n, kind)
}

// grow maps a segment for a block of n bytes.
func (h *heap) grow(r *Request, n, kind uint64) uint64 {
	p := h.poolOf(r)
	bytes := h.device.segmentBytes(kind, n, r.has(tight))
	d := h.device
	if p.spilled == 0 {
		if action := h.shrink(r, bytes); action != goOn {
			return action
		}
		if settings.spill && !r.has(lastHost) && p.global != nil &&
			r.hint() == uint64(config.HintCold) && d.over(bytes) {
			r.set(spilling)
			return goOn
		}
		if r.has(short) || !d.chargeSegment(bytes) {
			return h.shortage(r, n, kind, bytes)
		}
	} else if !d.chargeHost(bytes) {
		if s := h.idleOn(1); s != nil && !capturing() {
			return h.unmap(r, s)
		}
		if h.backToDevice(r) {
			return goOn
		}
		atomic.AddUint64(&d.hostRefused, 1)
		return h.refuse(r)
	}
	return h.mapSegment(r, p, kind, bytes)
}

// mapSegment asks the driver for a segment, which is charged.
func (h *heap) mapSegment(r *Request, p *pool, kind, bytes uint64) uint64 {
	s, b := h.newSegment(), h.newBlock()
	if s == nil || b == nil {
		if s != nil {
			h.dropSegment(s)
		}
		h.device.releaseSide(p, bytes)
		return h.refuse(r)
	}
	s.bytes, s.kind, s.pool, s.first = bytes, kind, p, b
	r.object = uint64(uintptr(unsafe.Pointer(s)))
	s.managed = p.spilled | atomic.LoadUint64(&h.device.managed)
	if r.has(plainly) {
		s.managed = p.spilled
	}
	r.OnBytes, r.PreferDevice = bytes, 1-p.spilled&1
	if s.managed != 0 {
		return r.act(phaseMap, ActMapManaged)
	}
	return r.act(phaseMap, ActMap)
}
