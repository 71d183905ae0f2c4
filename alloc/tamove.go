package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// TierOf returns the tier of the first byte of the block at addr, or TierCount if there is no such
// block.
func TierOf(addr uintptr) uintptr {
	p := Lookup(addr)
	if check(p, addr) != FreeOK {
		return uintptr(config.TierCount)
	}
	return tierOf(p.blockPlacement())
}

// TierOfRange writes how many of the n bytes from offset on of the block at addr are in each tier
// to the TierCount words at to. Bytes after the block's end do not count. It returns EINVAL if
// there is no such block.
func TierOfRange(addr, offset, n, to uintptr) (errno uintptr) {
	p := Lookup(addr)
	if check(p, addr) != FreeOK {
		return uintptr(syscall.EINVAL)
	}
	size := p.usable(addr)
	offset = min(offset, size)
	n = min(n, size-offset)
	there := p.blockElsewhere(offset+n) - p.blockElsewhere(offset)
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		bytes := uintptr(0)
		if tierOf(p.unmigratedIn) == tier {
			bytes = there
		}
		if tierOf(p.placement) == tier {
			bytes += n - there
		}
		raw.Store(to+tier*8, bytes)
	}
	return 0
}

// blockPlacement is where the first byte of a block of p lies.
func (p *Page) blockPlacement() uint32 {
	if p.Owner == OwnerHuge {
		return p.placementAt(0)
	}
	return p.placement
}

// Move moves the block at addr to a tier. If the block is a span of its own, it returns the same
// address. Otherwise it returns the address of a new block; the caller copies the contents and
// frees the old block. A result below a page is an errno: EINVAL if addr is not a block, EPERM for
// a block of PIN_FAST, ENOMEM if the tier has no room, EBUSY if the kernel did not move a single
// page.
func Move(h *Heap, addr, tier uintptr) uintptr {
	p := Lookup(addr)
	if check(p, addr) != FreeOK || tier >= uintptr(config.TierCount) {
		return uintptr(syscall.EINVAL)
	}
	here := tierOf(p.placement) == tier
	switch {
	case p.placement == placementPin && !here:
		return uintptr(syscall.EPERM)
	case p.Owner == OwnerZero:
		if here {
			return addr
		}
		return h.moveBlock(p, addr, tier)
	case here && (p.placement == placementPin ||
		p.unmigrated == 0 && p.done == 0 && p.parts() == nil):
		h.Thread.atHome(p)
		return addr
	case p.state == spanInUse && (p.blocks != 1 || !movable(p, uint32(tier))):
		return h.moveBlock(p, addr, tier)
	case p.state == spanHugeAlone || p.state == spanInUse && p.segment == nil:
		return uintptr(syscall.EBUSY)
	}
	return h.moveSpan(p, tier)
}

// moveBlock allocates a block in the tier for the contents of a block of p.
func (h *Heap) moveBlock(p *Page, addr, tier uintptr) uintptr {
	how := uintptr(stats.CallTaMove)
	if secure && p.Owner != OwnerZero {
		how |= p.made(addr) << HowFamily
	}

	if b := h.Thread.heap(hintMoved+tier).serve(p.usable(addr), how); b != 0 {
		return b &^ ZeroBit
	}
	return uintptr(syscall.ENOMEM)
}

// moveAway passes a page of one block, in use, to the thread's heap for memory that was moved to
// the tier, if the page is the thread's own. So the freed block is not allocated again for the old
// hint.
func (t *Thread) moveAway(p *Page, to *Heap) {
	owner := atomic.LoadUintptr(&p.Owner)
	if owner == OwnerHuge || owner == ownerNone || to == nil || heapOf(owner).Thread != t ||
		heapOf(owner).sampled {
		return
	}
	if owner&OwnerFull == 0 {
		heapOf(owner).setFull(p)
	}
	if atomic.LoadUintptr(&p.Owner)&OwnerFull != 0 {
		p.Hint = to.Hint
		atomic.StoreUintptr(&p.Owner, to.fullOwnerOf(uintptr(p.Class)))
	}
}

// atHome makes the current tier of a span with one block its home.
func (t *Thread) atHome(p *Page) {
	if uintptr(p.home) == tierOf(p.placement) || p.Owner != OwnerHuge && p.blocks != 1 ||
		!poolLock.Take(t.token) {
		return
	}
	ageRemove(p)
	p.home = uint32(tierOf(p.placement))
	ageAdd(p)
	poolLock.Release()
}

// moveSpan moves the span of p in one step and makes the tier its home. A span that is partly in a
// third tier first moves to its home, because only two tiers can be accounted for. Of a split block
// the rest moves to the new tier first.
func (h *Heap) moveSpan(p *Page, tier uintptr) uintptr {
	if p.parts() != nil && h.gather(p, tierOf(p.placement)) != 0 {
		return uintptr(syscall.EBUSY)
	}
	if renamed(tierOf(p.placement), tier) ||
		p.unmigrated != 0 && renamed(tierOf(p.unmigratedIn), tier) {
		if errno := h.rename(p, tier); errno != 0 {
			return errno
		}
		if missing(p, tier) == 0 {
			return p.block()
		}
	}
	if here := tierOf(p.placement); here != tier && p.unmigrated != 0 &&
		tierOf(p.unmigratedIn) != tier {
		if p.done != 0 && p.wholeSplit() {
			if errno := h.moveRest(p, tier); errno != 0 {
				return errno
			}
		} else if h.gather(p, here) != 0 || p.unmigrated != 0 {
			return uintptr(syscall.EBUSY)
		}
	}
	if errno := h.gather(p, tier); errno != 0 {
		return errno
	}
	return p.block()
}

// moveRest moves all but the first part of a split block to a third tier, which has room for the
// whole block, or returns an errno with the block as it was.
func (h *Heap) moveRest(p *Page, tier uintptr) (errno uintptr) {
	t, to := h.Thread, uint32(tier)
	if tiers.Full(tier, p.Size) {
		t.makeRoom(tier, p.Size, true)
	}
	if tiers.Full(tier, p.Size) {
		return uintptr(syscall.ENOMEM)
	}
	if !pinMigration(t.token, p) {
		return uintptr(syscall.EBUSY)
	}
	poolLock.Take(t.token)
	first, from := p.parted(p.Size), p.placement
	n, start := p.Size-first.bytes, p.Start+first.bytes
	if !p.wholeSplit() || n == 0 {
		errno = uintptr(syscall.EBUSY) // a step of migration intervened
	} else if !charged(p, to, n) {
		errno = uintptr(syscall.ENOMEM)
	}
	poolLock.Release()
	if errno != 0 {
		unpinMigration(t.token, p)
		return errno
	}
	stayed := relocate(start, n, to)
	if stayed != 0 { // it would be in three tiers
		relocate(start, n, from)
		errno = uintptr(syscall.EBUSY)
	}
	poolLock.Take(t.token)
	if errno != 0 {
		tiers.Release(tier, n)
	} else {
		tiers.Release(tierOf(from), n)
		p.putSplit(first, to)
	}
	unpinMigrationLocked(t.token, p)
	poolLock.Release()
	if errno == 0 {
		tiers.Moved(tierOf(from), n/raw.Page, 0)
		tiers.MigrateCharge(t.Now, n)
		tiers.WaitMoved(tierOf(from), tier, n, t.Now)
	}
	return errno
}

// rename transfers the charges of p's span in tiers of the same memory to the tier; its pages stay.
// If the tier has no room for the rest it does nothing and returns an errno.
func (h *Heap) rename(p *Page, tier uintptr) (errno uintptr) {
	t, to, moved := h.Thread, uint32(tier), h.Thread.heap(hintMoved+tier)
	if n := inOtherTiers(p, tier); n != 0 && tiers.Full(tier, n) {
		t.makeRoom(tier, n, true)
	}
	if !pinMigration(t.token, p) {
		return uintptr(syscall.EBUSY)
	}
	poolLock.Take(t.token)
	first, rest := uintptr(p.done)<<SliceShift, spanBytes(p)
	if n := inOtherTiers(p, tier); n != 0 && tiers.Full(tier, n) || overVMASplits(p, to) {
		poolLock.Release()
		unpinMigration(t.token, p)
		return uintptr(syscall.ENOMEM)
	}
	placement, unmigratedIn, unmigrated, done := p.placement, p.unmigratedIn, p.unmigrated, p.done
	if tiers.Same(tierOf(placement), tier) {
		tiers.Shift(tierOf(placement), tier, rest-uintptr(unmigrated)*raw.Page)
		placement = to
	}
	if unmigrated != 0 && tiers.Same(tierOf(unmigratedIn), tier) {
		tiers.Shift(tierOf(unmigratedIn), tier, uintptr(unmigrated)*raw.Page)
		unmigratedIn = to
	}
	if placement == to && (unmigrated == 0 || unmigratedIn == to) {
		unmigrated, done = 0, 0
		t.moveAway(p, moved)
		p.home = to
	}
	putIn(p, placement, unmigratedIn, unmigrated, done)
	poolLock.Release()
	start := p.spanStart()
	if unmigratedIn == to {
		bindAgain(start, first, to)
	}
	if placement == to {
		bindAgain(start+first, rest-first, to)
	}
	unpinMigration(t.token, p)
	return 0
}

// inOtherTiers returns the bytes of p's span that are charged to other memory than the tier's.
func inOtherTiers(p *Page, tier uintptr) (n uintptr) {
	unmigrated := uintptr(p.unmigrated) * raw.Page
	if !tiers.Same(tierOf(p.placement), tier) {
		n = spanBytes(p) - unmigrated
	}
	if !tiers.Same(tierOf(p.unmigratedIn), tier) {
		n += unmigrated
	}
	return n
}

// gather moves all of p's span to a tier. It returns an errno if pages had to move and none did.
func (h *Heap) gather(p *Page, tier uintptr) (errno uintptr) {
	t, moved := h.Thread, h.Thread.heap(hintMoved+tier)
	if n := missing(p, tier); n <= spanBytes(p) && tiers.Full(tier, n) {
		t.makeRoom(tier, n, true)
	}
	if !pinMigration(t.token, p) {
		return uintptr(syscall.EBUSY)
	}
	poolLock.Take(t.token)
	total, n, from, to := spanBytes(p), missing(p, tier), p.placement, uint32(tier)
	source := from // the tier of the missing bytes
	if from == to {
		source = p.unmigratedIn
	}
	ok := n <= total && !overVMASplits(p, to) && charged(p, to, n)
	poolLock.Release()
	if !ok {
		unpinMigration(t.token, p)
		return uintptr(syscall.ENOMEM)
	}
	stayed := min(relocate(p.spanStart(), total, to), n)

	poolLock.Take(t.token)
	tiers.Release(tier, stayed)
	if stayed == n && n != 0 {
		p.bindAgain(from)
		errno = uintptr(syscall.EBUSY)
	} else {
		t.moveAway(p, moved)
		tiers.Release(tierOf(source), n-stayed)
		p.home = to
		putIn(p, to, source, uint32(stayed/raw.Page), 0)
	}
	unpinMigrationLocked(t.token, p)
	poolLock.Release()
	tiers.Moved(tierOf(source), (n-stayed)/raw.Page, stayed/raw.Page)
	tiers.MigrateCharge(t.Now, n-stayed)
	tiers.WaitMoved(tierOf(source), tier, n-stayed, t.Now)
	return errno
}

// missing returns the bytes of p's span that are not charged to a tier. It returns more than the
// span has if the span is in two other tiers.
func missing(p *Page, tier uintptr) uintptr {
	unmigrated := uintptr(p.unmigrated) * raw.Page
	switch {
	case tierOf(p.placement) == tier:
		return unmigrated
	case unmigrated == 0:
		return spanBytes(p)
	case tierOf(p.unmigratedIn) == tier:
		return spanBytes(p) - unmigrated
	}
	return ^uintptr(0)
}
