package profile

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Slots of a part at first, and when it has a mapping of its own: a memory page.
const (
	firstSlots  = 16
	mappedSlots = 128
)

// part is the sampled blocks in use at a part of all addresses: an open hash table with linear
// probing. It doubles when it is half full, so that a process with few samples touches little
// memory.
//
//	n <= slots/2; slots is a power of two
type part struct {
	raw.Lock // is held by who changes it
	n, slots uintptr
	at       uintptr // the slots
	_        [4]uintptr
	first    [firstSlots]sample
}

func hash(addr uintptr) uintptr { return addr * 0x9e3779b97f4a7c15 }

// slotOf returns the number of the slot that the sample of the block at addr is in, or in one of
// those behind it.
func slotOf(addr uintptr) uintptr { return hash(addr) >> 32 }

// slot returns a slot. The first follows the last.
func (p *part) slot(i uintptr) *sample { return sampleAt(p.at, i&(p.slots-1)) }

func sampleAt(slots, i uintptr) *sample {
	return (*sample)(raw.Ptr(slots + i*unsafe.Sizeof(sample{})))
}

// find returns the slot of the sample of the block at addr. It reports false if there is none.
func (p *part) find(addr uintptr) (i uintptr, ok bool) {
	if p.n == 0 {
		return 0, false
	}
	for i = slotOf(addr); p.slot(i).addr != addr; i++ {
		if p.slot(i).addr == 0 {
			return 0, false
		}
	}
	return i, true
}

// add enters a sample. It reports false if there is no room for it.
func (p *part) add(e sample) bool {
	if 2*p.n >= p.slots && (p.n >= sampleCount/partCount || !p.grow()) {
		return false
	}
	p.insert(e)
	p.n++
	return true
}

func (p *part) insert(e sample) {
	i := slotOf(e.addr)
	for p.slot(i).addr != 0 {
		i++
	}
	*p.slot(i) = e
}

// grow doubles the slots. It reports false without memory for them.
func (p *part) grow() bool {
	if p.slots == 0 {
		p.at, p.slots = uintptr(unsafe.Pointer(&p.first)), firstSlots
		return true
	}
	was, n := p.at, p.slots
	more := max(2*n, mappedSlots)
	at := raw.Map(slotBytes(more))
	if at == 0 {
		return false
	}
	p.at, p.slots = at, more
	for i := uintptr(0); i < n; i++ {
		if e := sampleAt(was, i); e.addr != 0 {
			p.insert(*e)
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
func (p *part) vacate(i uintptr) {
	p.n--
	for j := i + 1; p.slot(j).addr != 0; j++ {
		if (j-slotOf(p.slot(j).addr))&(p.slots-1) >= (j-i)&(p.slots-1) {
			*p.slot(i) = *p.slot(j)
			i = j
		}
	}
	*p.slot(i) = sample{}
}
