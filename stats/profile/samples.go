package profile

import "sync/atomic"

// sample is a block in use.
type sample struct {
	addr uintptr // 0: the slot is empty; the number of a block on a device (device.go)
	born uint64  // nanoseconds since the table's start
	what uint64  // its level << levelBit | its size << siteBits | the index of its site
}

// levelBit leaves a size of 2^48 bytes, more than an address space has.
const (
	levelBit = 60
	maxLevel = 1<<(64-levelBit) - 1
)

func whatOf(level uint8, size uint64, site uintptr) uint64 {
	return uint64(level)<<levelBit | size<<siteBits&(1<<levelBit-1) | uint64(site)
}

func (e *sample) level() uint8 { return uint8(e.what >> levelBit) }
func (e *sample) size() uint64 { return e.what & (1<<levelBit - 1) >> siteBits }
func (e *sample) site() uint64 { return e.what & (siteCount - 1) }

// There are parts so that threads do not wait for each other.
const (
	partBits  = 4
	partCount = 1 << partBits
	nearCount = 8 << 10
)

// samples is the sampled blocks in use by address. How many there are by a part of slotOf is read
// without a lock, so that threads which free other blocks do not wait.
//
//	Σ n of the parts = Σ near
type samples struct {
	part [partCount]part
	near [nearCount]uint32
}

func (s *samples) of(addr uintptr) *part { return &s.part[hash(addr)>>(64-partBits)&(partCount-1)] }

func (s *samples) nearOf(addr uintptr) *uint32 { return &s.near[slotOf(addr)&(nearCount-1)] }

// mayHave reports whether there may be a sample of the block at addr, which the caller has.
func (s *samples) mayHave(addr uintptr) bool { return atomic.LoadUint32(s.nearOf(addr)) != 0 }

// add enters a sample. It reports false if there is no room for it. Precondition for this and
// vacate: the part of the address is held.
func (s *samples) add(e sample) bool {
	if !s.of(e.addr).add(e) {
		return false
	}
	atomic.AddUint32(s.nearOf(e.addr), 1)
	return true
}

// vacate empties slot i of a part.
func (s *samples) vacate(p *part, i uintptr) {
	atomic.AddUint32(s.nearOf(p.slot(i).addr), ^uint32(0))
	p.vacate(i)
}

// place is a slot of a part.
type place struct{ part, slot uintptr }

// next returns the first sample from a place on, and the place behind it, or nil. Precondition: the
// table is held.
func (s *samples) next(at place) (*sample, place) {
	for ; at.part < partCount; at = (place{at.part + 1, 0}) {
		p := &s.part[at.part&(partCount-1)]
		for at.slot < p.slots {
			e := p.slot(at.slot)
			at.slot++
			if e.addr != 0 {
				return e, at
			}
		}
	}
	return nil, at
}
