package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/config"
)

// Flags of a request, as bits of its state (see step.go). The attempts are each made once.
const (
	triedHarvest uint64 = 1 << (flagBit + iota) // the events of pending frees were queried
	triedFlush                                  // exact-size bins were merged
	triedClose                                  // the open group of pending frees was closed
	triedFence                                  // other streams' free blocks were tried (fence)
	triedSteal                                  // and a wait for another stream (steal)
	triedSync                                   // the device was waited for
	triedAgain                                  // a second wait, because a capture spoilt the first
	triedInfo                                   // the device's free memory was asked for
	triedOthers                                 // the device's other contexts have nothing idle

	// decisions about how it is served
	tight    // a new segment is as small as possible
	spilling // it gets memory on the host
	lastHost // memory on the host is the last resort
	direct   // the driver serves it
	wide     // all contexts are waited for
	warming  // it maps a segment for a warm-up

	// outcomes so far
	mappedOne    // a segment was mapped for it
	short        // the driver is out of memory
	plainly      // the driver refused managed memory for it
	readied      // the warm-up has all blocks that it asks for
	othersPassed // all contexts were waited for on behalf of another heap
	charged      // its bytes are charged
	waited       // it is counted as having waited
	softCounted  // it is counted as over the soft cap
)

// handOut gives b to the program, which asked for so many bytes.
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

// plan returns the size of the block for a request, and the kind of its segment.
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

// poolOf returns the pool that serves a request.
func (h *heap) poolOf(r *Request) *pool {
	switch {
	case r.has(spilling):
		return h.spillPool
	case h.active != nil && r.Op == OpStreamAlloc && r.Stream != streamPerThread:
		return h.active
	}
	return h.mainPool
}

// serve continues a request for memory. It takes a free block, frees one by waiting, or maps a
// segment.
func (h *heap) serve(r *Request) Action {
	if r.Bytes == 0 || r.Bytes > maxRequest {
		return h.refuseSize(r)
	}
	if r.has(direct) {
		return h.serveForeign(r)
	}
	if h.poolOf(r).sleep != regionAwake {
		return h.refuse(r)
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

// serveRounds is above the number of attempts within one step.
const serveRounds = 64

// refuseSize answers requests of 0 bytes or too many.
func (h *heap) refuseSize(r *Request) Action {
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
func (h *heap) refuse(r *Request) Action {
	h.count.refused++
	r.Address = 0
	return r.done(ErrorOutOfMemory)
}

// pick hands out a free block of at least n bytes, if there is one that the request's stream may
// use at once.
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

// obtain hands out a free block of at least n bytes of a pool, if there is one in the global cache
// or in stream cache t, which may be nil. If t has none of exactly this size and its free memory is
// fragmented, its exact-size bins are merged first. mapped says that the request mapped a segment.
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

// more makes further blocks free, one attempt per call, and maps a segment when all attempts have
// failed. goOn: a block may be free now.
func (h *heap) more(r *Request, n, kind uint64) Action {
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

// grow maps a segment for a block of n bytes, or expands one.
func (h *heap) grow(r *Request, n, kind uint64) Action {
	p := h.poolOf(r)
	at, bytes := uint64(0), h.device.segmentBytes(kind, n, r.has(tight))
	if h.expands(r, p, kind) {
		if p.addresses.base == 0 {
			return h.reserve(r, p)
		}
		if at, bytes = h.room(r, p, kind, n); at == 0 {
			p.addresses.none = true
			return goOn
		}
	}
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
		if s := h.idleOn(1, 0); s != nil && !capturing() {
			return h.unmap(r, s)
		}
		if h.backToDevice(r) {
			return goOn
		}
		atomic.AddUint64(&d.hostRefused, 1)
		return h.refuse(r)
	}
	if at != 0 {
		return h.expand(r, p, kind, at, bytes)
	}
	return h.mapSegment(r, p, kind, bytes)
}

// mapSegment asks the driver for a segment. Precondition: the caller has charged it.
func (h *heap) mapSegment(r *Request, p *pool, kind, bytes uint64) Action {
	s, b := h.newSegment(), h.newBlock()
	if s == nil || b == nil {
		if s != nil {
			h.dropSegment(s)
		}
		h.device.releaseSide(p, bytes)
		return h.refuse(r)
	}
	s.bytes, s.kind, s.pool, s.first, s.last = bytes, kind, p, b, b
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
