package cudahook

import (
	"sync/atomic"
	"unsafe"
)

// A region is a pool that can sleep: its memory returns to the driver for a while. Its blocks keep
// their addresses and, on request, their contents. All its segments are expandable, so the driver
// can unmap their memory and map other memory at the same addresses. torch_memory_saver and vLLM's
// sleep mode do the same for PyTorch alone.
//
//	awake --OpSleep--> falling --> asleep --OpWake--> rising --> awake
//	falling --the host has no memory--> awake
//	rising --the device has no memory--> asleep
//	a segment's memory is mapped ⇔ asleep == 0
//
// Meanwhile the region gives no memory. Its blocks may be freed. The host's memory is page-locked,
// which takes many times as long as the copy. So it stays for the next time, until OpTrim, or until
// the region sleeps without its contents.
const (
	regionAwake uint64 = iota
	regionFalling
	regionAsleep
	regionRising
)

// region returns the region that a request names, or nil.
func (h *heap) region(r *Request) *pool {
	return h.regionOf(r.Address, r.Bytes)
}

func (h *heap) regionOf(id0, id1 uint64) *pool {
	p := h.pools
	for p != nil && (p.tagged == 0 || p.id0 != id0 || p.id1 != id1) {
		p = p.next
	}
	return p
}

// startSleep begins OpSleep or OpWake.
func (h *heap) startSleep(r *Request) Action {
	p := h.region(r)
	switch {
	case p == nil:
		return r.done(ErrorInvalidValue)
	case p.sleep == regionFalling || p.sleep == regionRising:
		return r.act(phaseRegion, ActYield) // another request puts it to sleep, or wakes it
	case r.Op == OpSleep && p.sleep == regionAsleep || r.Op == OpWake && p.sleep == regionAwake:
		return r.done(Success)
	case !h.sleeps(p):
		return r.done(errorNotSupported)
	case capturing():
		return r.done(errorCapture)
	case r.Op == OpWake:
		return h.wakeUp(r, p)
	case !r.has(triedSync):
		return h.syncAll(r)
	}
	p.sleep = regionFalling
	r.region, r.until = uint64(uintptr(unsafe.Pointer(p))), 0
	return h.fallAsleep(r, p)
}

// sleeps reports whether a region may sleep: not if it has memory of cuMemAlloc.
func (h *heap) sleeps(p *pool) bool {
	for i := uintptr(0); i < h.index.n; i++ {
		if s := h.index.at(i); s.pool == p && s.addresses == nil {
			return false
		}
	}
	return true
}

// nextSegment returns the region's first segment from r.until on that sleeps or not, as asked.
func (h *heap) nextSegment(r *Request, p *pool, asleep uint64) *segment {
	for i := h.index.below(max(r.until, 1) - 1); i < h.index.n; i++ {
		s := h.index.at(i)
		if s.pool == p && s.first != nil && s.asleep == asleep {
			r.until = s.address + s.bytes
			r.OnAddress, r.OnBytes, r.OnHost = s.address, s.bytes, s.host
			return s
		}
	}
	r.until = 0
	return nil
}

// fallAsleep takes the next step of OpSleep: contents to keep are copied to the host, one segment
// after the other, and then all memory is unmapped.
func (h *heap) fallAsleep(r *Request, p *pool) Action {
	if r.Count != 0 {
		if s := h.nextSegment(r, p, 0); s != nil {
			return r.act(phaseSave, ActSave)
		}
		r.Count = 0 // all is saved
	} else if s := h.spareHost(p); s != nil {
		return h.freeHost(r, s)
	}
	if s := h.nextSegment(r, p, 0); s != nil {
		return r.act(phaseSleep, ActUnmapAt)
	}
	p.sleep = regionAsleep
	return r.done(Success)
}

// saved takes the driver's answer to ActSave. If the host has no memory the region stays awake.
func (h *heap) saved(r *Request) Action {
	p := poolIn(r.region)
	if r.Result == Success {
		s := h.index.find(r.OnAddress)
		s.host, s.kept = r.Value, 1
		return h.fallAsleep(r, p)
	}
	for i := uintptr(0); i < h.index.n; i++ {
		if s := h.index.at(i); s.pool == p {
			s.kept = 0
		}
	}
	p.sleep = regionAwake
	return r.done(r.Result)
}

// spareHost returns a segment that has memory of the host and no contents there, or nil: of a
// region, or, if p is nil, of any that is awake.
func (h *heap) spareHost(p *pool) *segment {
	for i := uintptr(0); i < h.index.n; i++ {
		s := h.index.at(i)
		if s.host != 0 && s.kept == 0 && (s.pool == p || p == nil && s.pool.sleep == regionAwake) {
			return s
		}
	}
	return nil
}

// freeHost returns a segment's memory of the host.
func (h *heap) freeHost(r *Request, s *segment) Action {
	r.OnHost, r.OnBytes, s.host = s.host, s.bytes, 0
	return r.act(phaseFreeHost, ActFreeHost)
}

// nextSaved returns the region's first segment from r.until on whose contents the host has.
func (h *heap) nextSaved(r *Request, p *pool) *segment {
	for i := h.index.below(max(r.until, 1) - 1); i < h.index.n; i++ {
		s := h.index.at(i)
		if s.pool == p && s.kept != 0 {
			r.until = s.address + s.bytes
			r.OnAddress, r.OnBytes, r.OnHost = s.address, s.bytes, s.host
			return s
		}
	}
	r.until = 0
	return nil
}

// unmappedAsleep takes the driver's answer to ActUnmapAt for a segment that falls asleep.
func (h *heap) unmappedAsleep(r *Request) Action {
	s := h.index.find(r.OnAddress)
	if r.Result == Success {
		h.lay(s)
		h.device.release(s.bytes)
	}
	return h.fallAsleep(r, poolIn(r.region))
}

// wakeUp begins OpWake: it charges the region's memory, for which other free memory is returned if
// need be.
func (h *heap) wakeUp(r *Request, p *pool) Action {
	bytes := h.bytesAsleep(p)
	if !h.device.chargeSegment(bytes) {
		if action := h.roomToWake(r, bytes); action != goOn {
			return action
		}
		return r.done(ErrorOutOfMemory)
	}
	p.sleep, r.rising = regionRising, bytes
	r.region, r.until = uint64(uintptr(unsafe.Pointer(p))), 0
	return h.rise(r, p)
}

// bytesAsleep returns the bytes of the region's segments that sleep.
func (h *heap) bytesAsleep(p *pool) (bytes uint64) {
	for i := uintptr(0); i < h.index.n; i++ {
		if s := h.index.at(i); s.pool == p && s.asleep != 0 {
			bytes += s.bytes
		}
	}
	return bytes
}

// roomToWake returns free memory to the driver. goOn: there is none.
func (h *heap) roomToWake(r *Request, bytes uint64) Action {
	if s := h.idleOn(0, bytes); s != nil {
		return h.unmap(r, s)
	}
	if !r.has(triedSync) {
		return h.syncAll(r)
	}
	return goOn
}

// rise takes the next step of OpWake: all memory is mapped, and then kept contents are copied back.
func (h *heap) rise(r *Request, p *pool) Action {
	if s := h.nextSegment(r, p, 1); s != nil {
		r.OnPiece, r.OnAccess = pieceMax, h.access()
		return r.act(phaseRise, ActMapAt)
	}
	return h.restore(r, p)
}

// risen takes the driver's answer to ActMapAt for a segment that wakes.
func (h *heap) risen(r *Request) Action {
	p := poolIn(r.region)
	if r.Result != Success {
		r.failure, r.until = r.Result, 0
		return h.sink(r, p)
	}
	s := h.index.find(r.OnAddress)
	s.addresses.mark(s.address, s.bytes)
	s.asleep = 0
	r.rising -= s.bytes
	h.count.asleep -= s.bytes
	h.count.reserved += s.bytes
	h.count.reservedPeak = max(h.count.reservedPeak, h.count.reserved)
	raise(&h.device.peak, atomic.LoadUint64(&h.device.reserved))
	return h.rise(r, p)
}

// restore copies the kept contents back, one segment after the other, and ends OpWake.
func (h *heap) restore(r *Request, p *pool) Action {
	if s := h.nextSaved(r, p); s != nil {
		return r.act(phaseRestore, ActRestore)
	}
	p.sleep = regionAwake
	return r.done(r.failure)
}

// restored takes the driver's answer to ActRestore.
func (h *heap) restored(r *Request) Action {
	if r.Result != Success {
		r.failure = r.Result
	}
	h.index.find(r.OnAddress).kept = 0
	return h.restore(r, poolIn(r.region))
}

// sink unmaps again the mapped memory of a region that cannot wake. Then other free memory is
// returned and the region is tried again, or the request ends.
func (h *heap) sink(r *Request, p *pool) Action {
	if s := h.nextSegment(r, p, 0); s != nil {
		return r.act(phaseSink, ActUnmapAt)
	}
	h.device.release(r.rising)
	p.sleep, r.rising = regionAsleep, 0
	if r.failure == ErrorOutOfMemory {
		h.count.driverRefused++
		if action := h.roomToWake(r, ^uint64(0)); action != goOn {
			r.failure = 0
			return action
		}
	}
	return r.done(r.failure)
}

// sunk takes the driver's answer to ActUnmapAt.
func (h *heap) sunk(r *Request) Action {
	if r.Result == Success {
		s := h.index.find(r.OnAddress)
		h.lay(s)
		r.rising += s.bytes
	}
	return h.sink(r, poolIn(r.region))
}

// lay notes that a segment's memory is unmapped.
func (h *heap) lay(s *segment) {
	s.addresses.unmark(s.address, s.bytes)
	s.asleep = 1
	h.count.reserved -= s.bytes
	h.count.asleep += s.bytes
}
