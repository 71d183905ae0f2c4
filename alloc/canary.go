package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// The last word of a slot is its canary:
//
//	bits 0-7    zero: a string that has lost its end ends here, and does not show the rest
//	bits 8-27   the size of the block, or a number that differs from time to time
//	bits 28-31  the state
//	bits 32-63  a check value
//
//	canary = 0 in a slot that was never used; all of it is zero then
//	stateClean:   all before the canary is zero
//	stateListed:  all before it but the first two words is zero; the first is a sealed link
//	live, fence:  what lies between the size and the canary is filled: a byte at least, none of
//	              them 0, so that a string's end written behind the block shows
//	stateBusy:    any of it may be about to change
//
// A thread that looks at another's slot sees a state and what belongs to it, or, looking at
// the canary again, that this has changed: who changes a slot makes it busy first, and amd64
// makes stores visible in their order.
const (
	canaryBytes = 8
	slotExtra   = canaryBytes + 1 // bytes that a slot has more than its block, at least
	canaryMask  = 0xffff_ffff_0000_0000

	stateKinds  = 3 // states below are live blocks: the family that made them
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

// slotKey is a number for the slot at b, from which its canary and its fill are made.
func slotKey(b uintptr) uint64 { return (uint64(b) ^ secret.canary) * CanaryFactor }

// canaryFor is the canary of the slot at b in a state.
func canaryFor(b, state, n uintptr) uintptr {
	what := uint64(state<<stateShift|n&sizeMask) & 0xff_ffff << 8
	check := (slotKey(b) + what) * CanaryFactor
	return uintptr(check&canaryMask | what)
}

func canaryState(l uintptr) uintptr { return l >> (8 + stateShift) & 15 }
func canarySize(l uintptr) uintptr  { return l >> 8 & sizeMask }

// canaryValid reports whether l is a canary of the slot at b.
func canaryValid(b, l uintptr) bool { return l == canaryFor(b, canaryState(l), canarySize(l)) }

// room is how many bytes of a slot come before its canary.
func (p *Page) room() uintptr { return p.Size - canaryBytes }

func (p *Page) canaryWord(b uintptr) *uintptr { return (*uintptr)(raw.Ptr(b + p.room())) }

func (p *Page) canary(b uintptr) uintptr { return atomic.LoadUintptr(p.canaryWord(b)) }

func (p *Page) setCanary(b, state, n uintptr) {
	atomic.StoreUintptr(p.canaryWord(b), canaryFor(b, state, n))
}

// fillOf is what a word of the fill of the slot at b is. None of its bytes is 0.
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

// filled reports whether it is all still there.
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
