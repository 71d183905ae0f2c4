package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// A page of the secure mode has slots, at least eight. The first is a fence: it is never handed
// out, so that a write before the first block is detected. A write after the last block is detected
// in at least tailBytes that belong to no slot.
const (
	tailBytes = 64

	reach      = 64   // bytes on both sides of a block in which slots are checked
	nearby     = 256  // bytes of a slot that are checked then
	fenceBytes = 64   // filled bytes of the first slot
	carveBytes = 8192 // bytes of slots that are carved at a time, in random order
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

// slotSlices returns the number of slices of a page of slots of class c: enough for the fence,
// eight more slots and the tail.
func slotSlices(c uintptr) uintptr {
	least := raw.RoundUp(9*sizeclass.Size(c)+tailBytes, SliceSize) >> SliceShift
	return max(sizeclass.PageSlices(c), least)
}

// harden makes a fresh page a page of slots. Precondition: it is not in the page map yet.
func (p *Page) harden() {
	size := p.Size
	if size == 0 { // it never is; the compiler wants to see it
		return
	}
	p.Magic = 0
	p.blocks = uint32((p.bytes() - tailBytes) / size)
	p.Carved = uint64(size)
	if p.zero == 0 {
		wipe(p.Start, p.bytes())
	}
	from := p.room() - min(p.room(), fenceBytes)
	fill(p.Start, from, p.room())
	p.setCanary(p.Start, stateFence, from)
}

// isSlot is isBlock for a page of slots.
func (p *Page) isSlot(addr uintptr) bool {
	off, size := addr-p.Start, p.Size
	return size != 0 && off != 0 && uint64(off) < p.Carved && off%size == 0
}

// carveSlots is carve for a page of slots. The slots go on the list in random order.
func (p *Page) carveSlots() uintptr {
	end, n := p.Size*uintptr(p.blocks), uintptr(1)
	at := uintptr(p.Carved)
	if at >= end {
		return 0
	}
	for n < 16 && 2*n*p.Size <= carveBytes && at+2*n*p.Size <= end {
		n *= 2
	}
	r := random()
	first, step := uintptr(r>>32), uintptr(r)|1
	p.Carved = uint64(at + n*p.Size) // before any link that other threads may read
	head := uintptr(0)
	for i := uintptr(0); i < n; i++ {
		b := p.Start + at + (first+i*step)&(n-1)*p.Size
		if !p.freshBlank(b) {
			corrupt(p.caller(), p, b, foundUsed)
		}
		p.setCanary(b, stateBusy, 0)
		raw.Store(b, encodeLink(b, head))
		raw.Store(b+8, FreeKey)
		p.setCanary(b, stateListed, 0)
		head = b
	}
	p.Free = encodeLink(head, raw.Load(head))
	p.Allocs++
	return head
}

// freshBlank reports whether a slot that was never used is still zero near its ends.
func (p *Page) freshBlank(b uintptr) bool {
	n := min(p.Size, nearby)
	return blank(b, b+n) && blank(b+p.Size-n, b+p.Size)
}

// handOut makes a slot that was taken off its list a live block of n bytes.
func (p *Page) handOut(in *running, b, n, how uintptr) {
	p.takeListed(in, b)
	fill(b, n, p.room())
	p.setCanary(b, how>>HowFamily&familyMask%stateKinds, n)
	if bad, what := p.around(b); what != 0 {
		corrupt(in, p, bad, what)
	}
}

// takeListed makes a slot that was taken off its list a busy one whose bytes are zero.
func (p *Page) takeListed(in *running, b uintptr) {
	switch p.canary(b) {
	case canaryFor(b, stateListed, 0): // carved and not used since
		if room := b + p.room(); !blank(b+2*8, min(b+nearby, room)) {
			corrupt(in, p, b, foundUsed)
		}
	case canaryFor(b, stateListed, 1):
		if !blank(b+2*8, b+p.room()) {
			corrupt(in, p, b, foundFreed)
		}
	default:
		corrupt(in, p, b, foundCanary)
	}
	p.setCanary(b, stateBusy, 0)
	raw.Store(b, 0)
	raw.Store(b+8, 0)
}

// around checks the slots within reach of the one at b. It returns the first with a fault, and the
// fault.
func (p *Page) around(b uintptr) (bad, what uintptr) {
	for a := b - p.Size; a >= p.Start && b-a-p.Size < reach; a -= p.Size {
		if what = p.slot(a, false); what != 0 {
			return a, what
		}
	}
	last := p.Start + p.Size*uintptr(p.blocks)
	for a := b + p.Size; a-b-p.Size < reach; a += p.Size {
		if a >= last {
			if !blank(last, last+tailBytes) {
				return last, foundTail
			}
			break
		}
		if what = p.slot(a, true); what != 0 {
			return a, what
		}
	}
	return 0, 0
}

// slot returns the fault of the slot at b, or 0. near says that its start is checked, otherwise its
// end. If another thread changes the slot meanwhile it returns 0.
func (p *Page) slot(b uintptr, near bool) (what uintptr) {
	l := p.canary(b)
	for range 2 {
		if what = p.slotAs(b, l, near); what == 0 || p.canary(b) != l {
			return 0
		}
	}
	return what
}

// slotAs is slot for a slot whose canary is l.
func (p *Page) slotAs(b, l uintptr, near bool) (what uintptr) {
	from, to, found := b, b+p.room(), uintptr(foundFreed)
	switch state := canaryState(l); {
	case l == 0:
		found = foundUsed
	case !canaryValid(b, l):
		return foundCanary
	case state < stateKinds || state == stateFence:
		n, room := canarySize(l), p.room()
		first := min(raw.RoundUp(n, 8)+nearby, room)
		if !fillIntact(b, n, first) || !fillIntact(b, max(first, room-min(room, nearby)), room) {
			return foundBehind
		}
		return 0
	case state == stateBusy:
		return 0
	case state == stateListed:
		if link := encodeLink(b, raw.Load(b)); link != 0 && !p.isSlot(link) {
			return foundLink
		}
		from += 2 * 8
	}
	if near {
		to = min(to, b+nearby)
	} else {
		from = max(from, to-min(p.room(), nearby))
	}
	if !blank(from, to) {
		return found
	}
	return 0
}

// checkSlot is check for a page of slots.
func (p *Page) checkSlot(b uintptr) uintptr {
	if !p.isSlot(b) {
		return FreeInside
	}
	l := p.canary(b)
	switch state := canaryState(l); {
	case !canaryValid(b, l):
		return FreeDamaged
	case state >= stateKinds:
		return FreeDouble
	}
	return FreeOK
}

// freeSlot zeroes the live block at b for the call in. It returns a result of Free. size is the
// size that the caller states, or NoSize.
func (p *Page) freeSlot(in *running, b, how, size uintptr) uintptr {
	l := p.canary(b)
	if why := judge(in, canaryState(l), canarySize(l), how, size); why != FreeOK {
		return why
	}
	if !fillIntact(b, canarySize(l), p.room()) {
		corrupt(in, p, b, foundBehind)
	}
	if !atomic.CompareAndSwapUintptr(p.canaryWord(b), l, canaryFor(b, stateBusy, 0)) {
		return FreeDouble
	}
	if bad, what := p.around(b); what != 0 {
		corrupt(in, p, bad, what)
	}
	wipe(b, p.room())
	p.setCanary(b, stateClean, uintptr(random()))
	return FreeOK
}

// discharge puts a block on its page's list after checking that it is still zero.
func (h *Heap) discharge(b uintptr) {
	p := Lookup(b)
	if p == nil {
		return
	}
	if k := h.Thread.Cache; k != nil && k.Last == b {
		k.Last = 0
	}
	if l := p.canary(b); !canaryValid(b, l) || canaryState(l) != stateClean {
		corrupt(&h.Thread.running, p, b, foundCanary)
	}
	if !blank(b, b+p.room()) {
		corrupt(&h.Thread.running, p, b, foundFreed)
	}
	p.enlist(b)
	freeInner(h, p, b)
}

// enlist gives a zeroed block the canary of a listed one, before it is put on a list.
func (p *Page) enlist(b uintptr) {
	p.setCanary(b, stateBusy, 0)
	raw.Store(b, encodeLink(b, 0))
	raw.Store(b+8, FreeKey)
	p.setCanary(b, stateListed, 1)
}
