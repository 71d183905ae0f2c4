package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// The last word of a slot is its canary:
//
//	bits 0-7    zero: it ends a string without an end, so that the canary is not printed
//	bits 8-27   the size of the block, or a number that varies
//	bits 28-31  the state
//	bits 32-63  a check value
//
//	canary = 0 in a slot that was never used; all of it is zero then
//	stateClean:   all before the canary is zero
//	stateListed:  all before it except the first two words is zero; the first is an encoded link
//	live, fence:  the bytes between the size and the canary are filled: at least one, none of
//	              them 0, so that a string's end written after the block is detected
//	stateBusy:    any of it may be about to change
//
// A thread that examines another thread's slot reads the canary, the contents, and the canary
// again. If the canary has not changed, the contents belong to the state: a thread that changes a
// slot makes it busy first, and on amd64 stores become visible in their order.
const (
	canaryBytes = 8
	slotExtra   = canaryBytes + 1 // bytes of a slot beyond its block, at least
	canaryMask  = 0xffff_ffff_0000_0000

	stateKinds  = 3 // states below this are live blocks: the family that allocated them
	stateFence  = 8 // the first slot of a page, which is never handed out
	stateClean  = 9
	stateListed = 10
	stateBusy   = 11
)

const (
	stateShift = 20
	sizeMask   = 1<<stateShift - 1
)

// CanaryFactor is 2^64 divided by the golden ratio.
const CanaryFactor = 0x9e3779b97f4a7c15

// slotKey returns the number for the slot at b from which its canary and its fill are computed.
func slotKey(b uintptr) uint64 { return (uint64(b) ^ secret.canary) * CanaryFactor }

// canaryFor returns the canary of the slot at b in a state.
func canaryFor(b, state, n uintptr) uintptr {
	what := uint64(state<<stateShift|n&sizeMask) & 0xff_ffff << 8
	check := (slotKey(b) + what) * CanaryFactor
	return uintptr(check&canaryMask | what)
}

func canaryState(l uintptr) uintptr { return l >> (8 + stateShift) & 15 }
func canarySize(l uintptr) uintptr  { return l >> 8 & sizeMask }

// canaryValid reports whether l is a canary of the slot at b.
func canaryValid(b, l uintptr) bool { return l == canaryFor(b, canaryState(l), canarySize(l)) }

// room returns the bytes of a slot before its canary.
func (p *Page) room() uintptr { return p.Size - canaryBytes }

func (p *Page) canaryWord(b uintptr) *uintptr { return (*uintptr)(raw.Ptr(b + p.room())) }

func (p *Page) canary(b uintptr) uintptr { return atomic.LoadUintptr(p.canaryWord(b)) }

func (p *Page) setCanary(b, state, n uintptr) {
	atomic.StoreUintptr(p.canaryWord(b), canaryFor(b, state, n))
}

// fillOf returns a word of the fill of the slot at b. None of its bytes is 0.
func fillOf(b uintptr) uintptr {
	return uintptr(slotKey(b) ^ secret.fill | 0x0101_0101_0101_0101)
}

// fill writes fill from offset from of the slot or block at b up to offset to, a multiple
// of 8.
func fill(b, from, to uintptr) {
	w := fillOf(b)
	for ; from&7 != 0 && from < to; from++ {
		raw.StoreByte(b+from, byte(w>>(from&7*8)))
	}
	for ; from < to; from += 8 {
		raw.Store(b+from, w)
	}
}

// fillIntact reports whether that fill is unchanged.
func fillIntact(b, from, to uintptr) bool {
	w := fillOf(b)
	for ; from&7 != 0 && from < to; from++ {
		if raw.LoadByte(b+from) != byte(w>>(from&7*8)) {
			return false
		}
	}
	for ; from < to; from += 8 {
		if raw.Load(b+from) != w {
			return false
		}
	}
	return true
}

// wipe zeroes n bytes at addr, multiples of 8.
func wipe(addr, n uintptr) {
	end := addr + n
	for ; addr+32 <= end; addr += 32 {
		*(*[4]uint64)(raw.Ptr(addr)) = [4]uint64{}
	}
	for ; addr < end; addr += 8 {
		raw.Store(addr, 0)
	}
}

// blank reports whether the bytes from addr up to end, multiples of 8, are zero.
func blank(addr, end uintptr) bool {
	bits := uintptr(0)
	for ; addr+32 <= end; addr += 32 {
		bits |= raw.Load(addr) | raw.Load(addr+8) | raw.Load(addr+16) | raw.Load(addr+24)
	}
	for ; addr < end; addr += 8 {
		bits |= raw.Load(addr)
	}
	return bits == 0
}
