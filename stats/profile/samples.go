package profile

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// sample is a block in use.
type sample struct {
	addr uintptr // 0: the slot is empty; the number of a block on a device (device.go)
	born uint64  // nanoseconds since the table's start
	what uint64  // its size << siteBits | the index of its site
}

func (e *sample) size() uint64 { return e.what >> siteBits }
func (e *sample) site() uint64 { return e.what & (siteCount - 1) }

// firstSlots is how many slots there are at first, so that they take less than a memory page.
const firstSlots = 128

// samples is the sampled blocks in use, by address: an open hash table with linear probing. It
// doubles when it is half full, so that a process with few samples touches little memory.
//
//	n <= slots/2; slots is a power of two
//	n = Σ near
type samples struct {
	n, slots uintptr
	at       uintptr // the slots
	first    [firstSlots]sample

	// How many samples there are by a part of slotOf. It is read without the table, so that threads
	// which free other blocks do not wait for that.
	near [nearCount]uint32
}

const nearCount = 8 << 10

func (s *samples) nearOf(addr uintptr) *uint32 { return &s.near[slotOf(addr)&(nearCount-1)] }

// mayHave reports whether there may be a sample of the block at addr, which the caller has.
func (s *samples) mayHave(addr uintptr) bool { return atomic.LoadUint32(s.nearOf(addr)) != 0 }

// slotOf returns the number of the slot that the sample of the block at addr is in, or in one of
// those behind it.
func slotOf(addr uintptr) uintptr { return addr * 0x9e3779b97f4a7c15 >> 32 }

// slot returns a slot. The first follows the last.
func (s *samples) slot(i uintptr) *sample { return sampleAt(s.at, i&(s.slots-1)) }

func sampleAt(slots, i uintptr) *sample {
	return (*sample)(raw.Ptr(slots + i*unsafe.Sizeof(sample{})))
}

// find returns the slot of the sample of the block at addr. It reports false if there is none.
func (s *samples) find(addr uintptr) (i uintptr, ok bool) {
	if s.n == 0 {
		return 0, false
	}
	for i = slotOf(addr); s.slot(i).addr != addr; i++ {
		if s.slot(i).addr == 0 {
			return 0, false
		}
	}
	return i, true
}

// add enters a sample. It reports false if there is no room for it.
func (s *samples) add(e sample) bool {
	if 2*s.n >= s.slots && (s.n >= sampleCount || !s.grow()) {
		return false
	}
	s.insert(e)
	s.n++
	atomic.AddUint32(s.nearOf(e.addr), 1)
	return true
}

func (s *samples) insert(e sample) {
	i := slotOf(e.addr)
	for s.slot(i).addr != 0 {
		i++
	}
	*s.slot(i) = e
}

// grow doubles the slots. It reports false without memory for them.
func (s *samples) grow() bool {
	if s.slots == 0 {
		s.at, s.slots = uintptr(unsafe.Pointer(&s.first)), firstSlots
		return true
	}
	was, n := s.at, s.slots
	at := raw.Map(slotBytes(2 * n))
	if at == 0 {
		return false
	}
	s.at, s.slots = at, 2*n
	for i := uintptr(0); i < n; i++ {
		if e := sampleAt(was, i); e.addr != 0 {
			s.insert(*e)
		}
	}
	if n != firstSlots {
		raw.Unmap(was, slotBytes(n))
	}
	return true
}

// slotBytes is the size of the mapping of n slots.
func slotBytes(n uintptr) uintptr { return raw.RoundUp(n*unsafe.Sizeof(sample{}), raw.Page) }

// vacate empties slot i, and moves those behind it that it kept from their place (Knuth, TAOCP 3,
// algorithm 6.4R).
func (s *samples) vacate(i uintptr) {
	s.n--
	atomic.AddUint32(s.nearOf(s.slot(i).addr), ^uint32(0))
	for j := i + 1; s.slot(j).addr != 0; j++ {
		if (j-slotOf(s.slot(j).addr))&(s.slots-1) >= (j-i)&(s.slots-1) {
			*s.slot(i) = *s.slot(j)
			i = j
		}
	}
	*s.slot(i) = sample{}
}

// next returns the first slot from i on that has a sample, or s.slots.
func (s *samples) next(i uintptr) uintptr {
	for i < s.slots && s.slot(i).addr == 0 {
		i++
	}
	return i
}
