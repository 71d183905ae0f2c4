package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// TierOf is the tier in which the block at addr lies, or TierCount when there is no
// such block.
func TierOf(addr uintptr) uintptr {
	p := Lookup(addr)
	if check(p, addr) != FreeOK {
		return uintptr(config.TierCount)
	}
	return tierOf(p.place)
}

// Move brings the block at addr to a tier. It returns the block's address, which is
// the same where the block is a span of its own; or the address of a new block, into which
// the caller copies the contents and frees the old one; or an errno, which is less than a
// page: EINVAL for what is no block, EPERM for a block of PIN_FAST, ENOMEM when the tier
// has no room, EBUSY when the kernel would not move a single page.
func Move(h *Heap, addr, tier uintptr) uintptr {
	p := Lookup(addr)
	if check(p, addr) != FreeOK || tier >= uintptr(config.TierCount) {
		return uintptr(syscall.EINVAL)
	}
	here := tierOf(p.place) == tier
	switch {
	case p.place == placePin && !here:
		return uintptr(syscall.EPERM)
	case here && p.stray == 0 && p.done == 0:
		h.Thread.atHome(p)
		return addr
	case p.Owner != OwnerHuge && (p.blocks != 1 || !movable(p, uint32(tier))):
		return h.moveBlock(p, tier)
	case p.state == spanHugeAlone || p.Owner != OwnerHuge && p.segment == nil:
		return uintptr(syscall.EBUSY)
	}
	return h.moveSpan(p, tier)
}

// moveBlock allocates a block in the tier for the contents of one of p's.
func (h *Heap) moveBlock(p *Page, tier uintptr) uintptr {
	if b := h.Thread.heap(hintMoved + tier).serve(p.Size); b != 0 {
		return b &^ ZeroBit
	}
	return uintptr(syscall.ENOMEM)
}

// retire takes a page of one block, in use, off the list of its heap if that is the
// thread's own: so the fast path does not take the block again, for the old hint, when it
// is freed.
func (t *Thread) retire(p *Page) {
	owner := atomic.LoadUintptr(&p.Owner)
	if owner == OwnerHuge || owner&OwnerFull != 0 || heapOf(owner).Thread != t {
		return
	}
	if h := heapOf(owner); h.cur[p.Class&(Classes-1)] == p && p.Free == 0 {
		h.setFull(p)
	}
}

// atHome makes the tier that the only block of a span is in its home.
func (t *Thread) atHome(p *Page) {
	if uintptr(p.home) == tierOf(p.place) || p.Owner != OwnerHuge && p.blocks != 1 || !poolLock.Take(t.token) {
		return
	}
	ageRemove(p)
	p.home = uint32(tierOf(p.place))
	ageAdd(p)
	poolLock.Release()
}

// moveSpan moves the span of p, all at once, and makes the tier its home.
func (h *Heap) moveSpan(p *Page, tier uintptr) uintptr {
	t := h.Thread
	total, to := spanBytes(p), uint32(tier)
	if tiers.Full(tier, total) {
		t.makeRoom(tier, total)
	}
	if !hold(t.token, p) {
		return uintptr(syscall.EBUSY)
	}
	poolLock.Take(t.token)
	ok := charged(p, to, total)
	poolLock.Release()
	if !ok {
		letGo(t.token, p)
		return uintptr(syscall.ENOMEM)
	}
	h.Thread.retire(p)
	from := p.place
	stayed := relocate(p.Start, total, from, to)

	poolLock.Take(t.token)
	before := uintptr(p.stray) * raw.Page // of the span's old charge, in another tier than from
	refused := stayed >= total-before && before == 0
	if refused {
		tiers.Release(tier, total)
		settlePages(p.Start, total, from, p.hugetlb != 0)
	} else {
		stayed = min(stayed, total-before)
		tiers.Release(tierOf(p.astray), before)
		tiers.Release(tierOf(from), total-before-stayed)
		tiers.Release(tier, stayed)
		p.astray, p.stray = from, uint32(stayed/raw.Page)
		p.home = to
		putIn(p, to)
	}
	letGoLocked(t.token, p)
	poolLock.Release()
	tiers.MigrateCharge(t.Now, total-stayed)
	if refused {
		return uintptr(syscall.EBUSY)
	}
	return p.Start
}
