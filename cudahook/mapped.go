package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

func (h *heap) segmentOf(r *Request) *segment { return (*segment)(raw.Ptr(uintptr(r.object))) }

// mapped takes the driver's answer to ActMap or ActMapManaged.
func (h *heap) mapped(r *Request) Action {
	s := h.segmentOf(r)
	if r.Result != Success || r.Value == 0 {
		h.unmake(s)
		if r.Result == Success {
			r.Result = ErrorOutOfMemory
		}
		if h.unmanaged(r, s) {
			return goOn
		}
		if r.has(warming) {
			h.warmFailed(r)
			return goOn
		}
		if r.Result != ErrorOutOfMemory {
			h.count.refused++
			return r.done(r.Result)
		}
		h.count.driverRefused++
		if s.pool.spilled != 0 {
			if h.backToDevice(r) {
				return goOn
			}
			return h.refuse(r)
		}
		r.set(short)
		r.returned = 0
		return goOn
	}
	if settings.zero {
		s.address = r.Value
		r.OnAddress, r.OnBytes = r.Value, s.bytes
		return r.act(phaseZero, ActZero)
	}
	return h.enroll(r, s, r.Value)
}

// unmake drops a segment that has no memory.
func (h *heap) unmake(s *segment) {
	h.device.releaseSide(s.pool, s.bytes)
	h.dropBlock(s.first)
	h.dropSegment(s)
}

// zeroed takes the driver's answer to ActZero.
func (h *heap) zeroed(r *Request) Action {
	s := h.segmentOf(r)
	if r.Result == Success {
		return h.enroll(r, s, s.address)
	}
	failure := r.Result
	h.waste(s)
	h.count.refused++
	return r.done(failure)
}

// waste drops a segment that cannot be used. It stays charged, because it stays mapped.
func (h *heap) waste(s *segment) {
	atomic.AddUint64(&h.unusable[s.pool.spilled&1], s.bytes)
	h.dropBlock(s.first)
	h.dropSegment(s)
}

// enroll makes a new segment one free block. It goes to the global cache, because no stream has
// work that could touch it. In a private pool it goes to the request's stream.
func (h *heap) enroll(r *Request, s *segment, address uint64) Action {
	if s.pool.gone != 0 { // meanwhile
		s.pool = h.mainPool
	}
	t := s.pool.global
	if t == nil {
		t = h.cacheOf(ordered(r.Stream), s.pool)
	}
	if t == nil || !h.adopt(s, address, t) {
		h.waste(s)
		return h.refuse(r)
	}
	if s.pool.spilled != 0 {
		raise(&h.device.hostPeak, atomic.LoadUint64(&h.device.host))
		h.count.spills++
		h.count.spilled += s.bytes
	} else {
		raise(&h.device.peak, atomic.LoadUint64(&h.device.reserved))
		h.count.reserved += s.bytes
		h.count.reservedPeak = max(h.count.reservedPeak, h.count.reserved)
	}
	if r.has(warming) {
		h.count.warmed += r.warmBlocks
		r.warmBlocks = 0
	} else {
		r.set(mappedOne)
	}
	return goOn
}

// unmap returns an idle segment to the driver. It drops the segment first: once the driver has
// freed it, another thread may get its address before this thread continues.
func (h *heap) unmap(r *Request, s *segment) Action {
	h.unbin(s.first)
	r.unmapping = s.bytes | s.pool.spilled // bytes are even
	r.owner = h.place()
	r.OnAddress, r.OnBytes = s.address, s.bytes
	h.count.releases++
	h.count.released += s.bytes
	if s.pool.spilled == 0 {
		h.count.reserved -= s.bytes
	}
	if s.addresses != nil {
		h.vacate(s)
		return r.act(phaseUnmap, ActUnmapAt)
	}
	h.forget(s)
	return r.act(phaseUnmap, ActUnmap)
}

// unmapped takes the driver's answer to ActUnmap. If the driver refuses, the segment stays charged
// to its heap, unless that heap's context has ended. The heap may be another one of the device
// (shrinkFor).
func (h *heap) unmapped(r *Request) {
	bytes, spilled := r.unmapping&^1, r.unmapping&1
	r.unmapping = 0
	owner := &heaps[r.owner&(heapMax-1)]
	if r.Result != Success && atomic.LoadUint64(&owner.epoch) == r.owner>>8 {
		atomic.AddUint64(&owner.unusable[spilled], bytes)
		return
	}
	if spilled != 0 {
		h.device.releaseHost(bytes)
		return
	}
	h.device.release(bytes)
	r.returned += bytes
}

// voided releases the charges of a request whose context ended between two steps.
func voided(r *Request) {
	d := &devices[r.Device&(deviceMax-1)]
	switch phase := r.phase(); {
	case (phase == phaseMap || phase == phaseZero) && r.has(spilling):
		d.releaseHost(r.OnBytes)
	case phase == phaseMap || phase == phaseZero, phase == phaseExpand, phase == phaseExpandZero:
		d.release(r.OnBytes)
	case phase == phaseRise || phase == phaseSink:
		d.release(r.rising)
	case phase == phaseUnmap && r.unmapping&1 == 0:
		d.release(r.unmapping)
	case phase == phaseUnmap:
		d.releaseHost(r.unmapping &^ 1)
	case phase == phaseDriver && r.has(charged):
		d.releaseForeign(rounded(min(r.Bytes, maxRequest)))
	case phase == phaseDriver && (r.Op == OpFree || r.Op == OpStreamFree):
		d.releaseForeign(r.foreign)
	}
}
