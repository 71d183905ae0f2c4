package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
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
	case p.Owner == OwnerZero:
		if here {
			return addr
		}
		return h.moveBlock(p, addr, tier)
	case here && p.stray == 0 && p.done == 0:
		h.Thread.atHome(p)
		return addr
	case p.Owner != OwnerHuge && (p.blocks != 1 || !movable(p, uint32(tier))):
		return h.moveBlock(p, addr, tier)
	case p.state == spanHugeAlone || p.Owner != OwnerHuge && p.segment == nil:
		return uintptr(syscall.EBUSY)
	}
	return h.moveSpan(p, tier)
}

// moveBlock allocates a block in the tier for the contents of one of p's.
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

// retire gives a page of one block, in use, to the thread's heap for what has been moved
// to the tier, if the page is the thread's own: so the block is not allocated again for
// the old hint when it is freed.
func (t *Thread) retire(p *Page, to *Heap) {
	owner := atomic.LoadUintptr(&p.Owner)
	if owner == OwnerHuge || owner == ownerNone || to == nil || heapOf(owner).Thread != t {
		return
	}
	if owner&OwnerFull == 0 {
		heapOf(owner).setFull(p)
	}
	if atomic.LoadUintptr(&p.Owner)&OwnerFull != 0 {
		p.Hint = to.Hint
		atomic.StoreUintptr(&p.Owner, to.ownerOf(uintptr(p.Class))|OwnerFull)
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

// moveSpan moves the span of p, all at once, and makes the tier its home. One that is
// partly in a third tier goes home first, for only two can be accounted for.
func (h *Heap) moveSpan(p *Page, tier uintptr) uintptr {
	if here := tierOf(p.place); here != tier && p.stray != 0 && tierOf(p.astray) != tier {
		if h.gather(p, here) != 0 || p.stray != 0 {
			return uintptr(syscall.EBUSY)
		}
	}
	if errno := h.gather(p, tier); errno != 0 {
		return errno
	}
	return p.Start
}

// gather brings all of a span of p to a tier. It returns an errno unless some pages, or
// none that had to, have moved.
func (h *Heap) gather(p *Page, tier uintptr) (errno uintptr) {
	t, moved := h.Thread, h.Thread.heap(hintMoved+tier)
	if n := missing(p, tier); n <= spanBytes(p) && tiers.Full(tier, n) {
		t.makeRoom(tier, n, true)
	}
	if !hold(t.token, p) {
		return uintptr(syscall.EBUSY)
	}
	poolLock.Take(t.token)
	total, n, from, to := spanBytes(p), missing(p, tier), p.place, uint32(tier)
	source := from // of what is missing there
	if from == to {
		source = p.astray
	}
	ok := n <= total && !sews(p, to) && charged(p, to, n)
	poolLock.Release()
	if !ok {
		letGo(t.token, p)
		return uintptr(syscall.ENOMEM)
	}
	stayed := min(relocate(p.Start, total, to), n)

	poolLock.Take(t.token)
	tiers.Release(tier, stayed)
	if stayed == n && n != 0 {
		settlePages(p.Start, total, from, p.hugetlb != 0)
		errno = uintptr(syscall.EBUSY)
	} else {
		t.retire(p, moved)
		tiers.Release(tierOf(source), n-stayed)
		p.astray, p.stray = source, uint32(stayed/raw.Page)
		p.home = to
		putIn(p, to)
	}
	letGoLocked(t.token, p)
	poolLock.Release()
	tiers.Moved(tierOf(source), (n-stayed)/raw.Page, stayed/raw.Page)
	tiers.MigrateCharge(t.Now, n-stayed)
	return errno
}

// missing is how many bytes of p's span are not charged to a tier. It is more than there
// are when the span lies in two others.
func missing(p *Page, tier uintptr) uintptr {
	stray := uintptr(p.stray) * raw.Page
	switch {
	case tierOf(p.place) == tier:
		return stray
	case stray == 0:
		return spanBytes(p)
	case tierOf(p.astray) == tier:
		return spanBytes(p) - stray
	}
	return ^uintptr(0)
}
