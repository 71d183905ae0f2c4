package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// Stream-ordered requests from 1 MiB on are served from expandable segments where the driver has
// virtual memory management. A segment that is too small for a request is expanded by the
// missing bytes, and no new segment of the request's size is made.

// expands reports whether new memory of a pool is to expand a segment.
func (h *heap) expands(r *Request, p *pool, kind uint64) bool {
	v := &p.addresses
	return (p == h.mainPool && kind == kindLarge || p.tagged != 0) && r.Op == OpStreamAlloc &&
		!v.none && (v.base != 0 || !v.asked) && settings.expandable &&
		atomic.LoadUint64(&h.device.managed) == 0
}

func poolIn(word uint64) *pool { return (*pool)(raw.Ptr(uintptr(word))) }

// reserve asks for the addresses of a pool.
func (h *heap) reserve(r *Request, p *pool) Action {
	p.addresses.asked = true
	r.object = uint64(uintptr(unsafe.Pointer(p)))
	r.OnBytes = mapRounded(h.device.memory) * reservedTimes
	return r.act(phaseReserve, ActReserve)
}

// expand maps memory at an address that room has returned. Precondition: the caller has charged it.
func (h *heap) expand(r *Request, p *pool, kind, at, bytes uint64) Action {
	s, b := h.newSegment(), h.newBlock()
	if s != nil {
		s.address, s.bytes, s.kind, s.pool, s.addresses = at, bytes, kind, p, &p.addresses
	}
	// The segment is in the index from now on, without a block, so that nobody else gets its
	// addresses.
	if s == nil || b == nil || !h.index.add(s) {
		if s != nil {
			h.dropSegment(s)
		}
		if b != nil {
			h.dropBlock(b)
		}
		h.device.release(bytes)
		return h.refuse(r)
	}
	b.segment = s
	r.object = uint64(uintptr(unsafe.Pointer(b)))
	r.OnAddress, r.OnBytes, r.OnPiece, r.OnAccess = at, bytes, pieceMax, h.access()
	return r.act(phaseExpand, ActMapAt)
}

// room returns where a segment of a pool is to be expanded for a block of n bytes, and by how much:
// behind the segment that has the most free memory at its end. 0: there are no addresses left.
func (h *heap) room(r *Request, p *pool, kind, n uint64) (at, bytes uint64) {
	t := h.cacheOf(ordered(r.Stream), p)
	if t == nil {
		t = p.global
	}
	v := &p.addresses
	end, have, found := v.base, uint64(0), false
	least := h.device.segment
	if kind == kindSmall {
		least = smallBytes
	}
	if r.has(tight) {
		least = mapUnit
	}
	for i := h.index.below(v.base - 1); ; i++ {
		next := v.base + v.bytes
		s := (*segment)(nil)
		if i < h.index.n {
			if s = h.index.at(i); v.contains(s.address) {
				next = s.address
			} else {
				s = nil
			}
		}
		more := max(mapRounded(n-have), least)
		if next-end >= more && (!found || more < bytes) {
			at, bytes, found = end, more, true
		}
		if s == nil {
			return at, bytes
		}
		end, have = s.address+s.bytes, 0
		b := s.last
		if b != nil && s.kind == kind && s.nonReusable == 0 && t != nil && b.joins(t) {
			have = min(b.bytes, n-1)
		}
	}
}

// expanded takes the driver's answer to ActMapAt.
func (h *heap) expanded(r *Request) Action {
	b := h.blockOf(r)
	s := b.segment
	if r.Result == Success {
		s.addresses.mark(s.address, s.bytes)
		if settings.zero {
			r.OnAddress, r.OnBytes = s.address, s.bytes
			return r.act(phaseExpandZero, ActZero)
		}
		return h.attach(r, b)
	}
	r.object = 0
	v := s.addresses
	h.index.remove(s)
	h.device.release(s.bytes)
	h.dropBlock(b)
	h.dropSegment(s)
	if r.Result != ErrorOutOfMemory {
		v.none = true // it is served from segments of the usual kind
		return goOn
	}
	h.count.driverRefused++
	r.set(short)
	r.returned = 0
	return goOn
}

// expandedZero takes the driver's answer to ActZero.
func (h *heap) expandedZero(r *Request) Action {
	b := h.blockOf(r)
	if r.Result == Success {
		return h.attach(r, b)
	}
	atomic.AddUint64(&h.unusable[0], b.segment.bytes) // it stays mapped, and in the index
	h.dropBlock(b)
	h.count.refused++
	return r.done(r.Result)
}

// attach makes b the one block of its new segment, and joins that to the segments beside it.
func (h *heap) attach(r *Request, b *block) Action {
	s := b.segment
	r.object = 0
	i := h.index.below(s.address) - 1
	t := s.pool.global
	own := h.cacheOf(ordered(r.Stream), s.pool)
	// It may continue a block of the stream's.
	if t == nil || own != nil && i > 0 && h.index.at(i-1).last.joins(own) {
		t = own
	}
	b.address, b.bytes, b.number, b.since = s.address, s.bytes, h.clock, h.sinceNow()
	if t == nil || !h.table.add(b) {
		atomic.AddUint64(&h.unusable[0], s.bytes) // it stays in the index, without a block
		h.dropBlock(b)
		return h.refuse(r)
	}
	s.first, s.last = b, b
	h.count.segments++
	raise(&h.device.peak, atomic.LoadUint64(&h.device.reserved))
	h.count.reserved += s.bytes
	h.count.reservedPeak = max(h.count.reservedPeak, h.count.reserved)
	r.set(mappedOne)
	h.bin(b, t)
	if i+1 < h.index.n {
		h.joinSegments(s, h.index.at(i+1))
	}
	if i > 0 {
		h.joinSegments(h.index.at(i-1), s)
	}
	if h.access()&^r.OnAccess != 0 { // since the driver was asked
		return h.grant(r)
	}
	return goOn
}

// continues reports whether the expandable segment b may be joined to a: it begins where a ends,
// and both have blocks of the same kind. A region that sleeps, or has memory of the host, stays as
// it is.
func (b *segment) continues(a *segment) bool {
	return a.addresses != nil && a.addresses == b.addresses && a.address+a.bytes == b.address &&
		a.first != nil && b.first != nil && a.kind == b.kind && a.pool == b.pool &&
		a.nonReusable|b.nonReusable == 0 && a.host|b.host == 0 && a.pool.sleep == regionAwake
}

// joinSegments makes the segment b part of a, if it continues a.
func (h *heap) joinSegments(a, b *segment) {
	if !b.continues(a) {
		return
	}
	seam := b.first
	for c := seam; c != nil; c = c.after {
		c.segment = a
	}
	a.last.after, seam.before = seam, a.last
	a.last = b.last
	a.bytes += b.bytes
	h.index.remove(b)
	h.count.segments--
	h.dropSegment(b)
	if seam.state == stateFree {
		t := seam.cache
		h.unbin(seam)
		h.give(seam, t)
	}
}

// vacate drops the block of a segment whose memory is about to be returned. The segment stays in
// the index until the driver has done so (vacated): its addresses cannot be mapped before.
func (h *heap) vacate(s *segment) {
	s.addresses.unmark(s.address, s.bytes)
	h.table.remove(s.first)
	h.dropBlock(s.first)
	s.first, s.last = nil, nil
	h.count.segments--
}

// vacated takes the driver's answer to ActUnmapAt. Precondition: no lock is held.
func vacated(r *Request) {
	h := &heaps[r.owner&(heapMax-1)]
	if r.Result != Success || !h.lock.Take(uintptr(r.Token)) {
		return
	}
	if s := h.index.find(r.OnAddress); h.place() == r.owner && s != nil && s.first == nil {
		h.index.remove(s)
		h.dropSegment(s)
	}
	h.lock.Release()
}

// mappedEnd returns the end of the last segment in a reservation.
func (h *heap) mappedEnd(v *reservation) uint64 {
	i := h.index.below(v.base + v.bytes - 1)
	if v.base == 0 || i == 0 || !v.contains(h.index.at(i-1).address) {
		return v.base
	}
	s := h.index.at(i - 1)
	return s.address + s.bytes
}

// access returns the other devices that may access the heap's memory, a bit each.
func (h *heap) access() uint64 { return accessTo(h.context) &^ (1 << h.ordinal) }

// grant lets the devices of a heap's peers access its expandable segments, one after the other from
// r.until on. goOn: all are accessible.
func (h *heap) grant(r *Request) Action {
	access := h.access()
	if access == 0 {
		return goOn
	}
	for i := h.index.below(max(r.until, 1) - 1); i < h.index.n; i++ {
		s := h.index.at(i)
		if s.addresses == nil || s.first == nil {
			continue
		}
		r.until = s.address + s.bytes
		r.OnAddress, r.OnBytes, r.OnAccess = s.address, s.bytes, access
		return r.act(phaseGrant, ActAccess)
	}
	r.until = 0
	return goOn
}

// grantPeer continues a request that lets a device access the memory of the context at r.Address.
func grantPeer(r *Request) Action {
	h := heapOf(r.Address)
	if h == nil || !h.lock.Take(uintptr(r.Token)) {
		return r.done(Success)
	}
	action := goOn
	if h.context == r.Address {
		h.own(r)
		action = h.called(h.grant(r))
	}
	h.lock.Release()
	if action == goOn {
		return r.done(Success)
	}
	return action
}
