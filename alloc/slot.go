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
