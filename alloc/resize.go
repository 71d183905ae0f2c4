package alloc

import (
	"syscall"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// ResizeMin is the smallest block whose page table entries are worth moving.
const ResizeMin = 256 << 10

// Resize makes the block at addr n bytes long without copying it. It returns the block's address,
// which may be new. If it cannot, it returns 0 with the block unchanged, and the caller copies. h
// is owned by the calling thread, and addr is a live block.
func Resize(h *Heap, addr, n uintptr) uintptr {
	p := Lookup(addr)
	if p == nil || n > maxRequest || poolLock.Refuses(h.Thread.token) || h.ruledAway(p, n) {
		return 0
	}
	if secure {
		return p.resizeSecure(addr, n)
	}
	huge := p.Owner == OwnerHuge
	if !huge {
		if n <= p.Size {
			return 0
		}
		if to := h.growInPlace(p, addr, n); to != 0 {
			return to
		}
		if p.blocks != 1 || p.Size < ResizeMin || addr != p.Start ||
			n <= inPlaceMost && pool.threadCount > 1 && !p.away() { // its page serves the next one
			return 0
		}
	}
	lead := p.lead()
	whole := lead + n
	to := h.growCached(p, whole)
	switch {
	case to != 0:
	case huge && p.state != spanInUse:
		to = hugeResize(h, p, whole)
	case n <= p.Size:
		to = p.shorten(h.Thread, whole)
	default:
		to = h.toHuge(p, whole)
	}
	if to != 0 {
		to += lead
	}
	if Profiling && to != 0 {
		h.resized(addr, to, n)
		if n <= sizeclass.MaxSize {
			h.ration(sizeclass.Of(n))
		}
	}
	return to
}

// ruledAway reports whether a rule wants the block in another tier, or pinned to its tier, once it
// is n bytes long. The caller then copies it there.
func (h *Heap) ruledAway(p *Page, n uintptr) bool {
	if !tiers.RulesOn() {
		return false
	}
	hint := tiers.Match(h.Thread.rules&tiers.CallerSet(0, 0, 0), n)
	return hint != tiers.NoHint &&
		placementOf(hint, homeOf(hint)) != placementOf(uintptr(p.Hint), uintptr(p.home))
}

// shorten makes a span with one block n bytes long and gives the rest of it to the pool. It returns
// the address of the span, or 0 with everything as it was.
func (p *Page) shorten(t *Thread, n uintptr) (at uintptr) {
	if !poolLock.Take(t.token) {
		return 0
	}
	if p.moving == 0 && p.unmigrated == 0 {
		if rest := cut(p, raw.RoundUp(n, SliceSize)>>SliceShift); rest != nil {
			p.Size = p.bytes() - p.lead()
			pool.count.huge[tierOf(p.placement)].free(0, uint64(rest.bytes()))
			spare(rest, t.Now)
			at = p.spanStart()
		}
	}
	poolLock.Release()
	return at
}

// spare puts what was cut from a span in use among the dirty spans. Precondition: poolLock is held.
func spare(rest *Page, now uint64) {
	pool.usedBytes -= rest.bytes()
	mapFill(rest, nil)
	rest.setFreeSince(now)
	addDirty(rest)
}

// toHuge moves the only block of a page to a mapping of its own of n bytes, where it can grow
// further, and frees the page. It returns the address of the mapping, in which the block begins
// where it did in the page, or 0. The page's addresses stay mapped and read as zero.
func (h *Heap) toHuge(p *Page, n uintptr) uintptr {
	size := raw.RoundUp(n, SliceSize)
	have := p.bytes()
	if size < have || p.segment == nil || p.segment.reserved() ||
		p.placement == placementPin && bound ||
		!pinMigration(h.Thread.token, p) {
		return 0
	}
	to := uintptr(0)
	if p.unmigrated == 0 && h.Thread.admit(tierOf(p.placement), have, false) {
		to = h.movedOut(p, n)
		if to == 0 {
			tiers.Release(tierOf(p.placement), have)
		}
	}
	unpinMigration(h.Thread.token, p)
	if to != 0 {
		Free(h, p.Start, HowAny, NoSize, 0)
	}
	return to
}

// movedOut moves the block. If it cannot, it returns 0 and changes nothing. Precondition: p is
// pinned and the bytes of the new mapping are charged.
func (h *Heap) movedOut(p *Page, n uintptr) uintptr {
	size, have, was := raw.RoundUp(n, SliceSize), p.bytes(), p.spanStart()
	if !oneMapping(was, have) {
		return 0
	}
	to := reserveAligned(size, SliceSize)
	if to == 0 {
		return 0
	}
	// The rest of the reservation is unmapped, and the moved block grows into its place.
	errno, kept := raw.MoveContents(was, have, to)
	if size > have {
		giveBackBarred(h.Thread.token, to+have, size-have, p.placement)
	}
	if errno != 0 {
		unmapTarget(to, have, kept)
		return 0
	}
	q := hugeAdopt(h.Thread.token, to, have, p.placement, p.Hint, p.home, firstPart{}, true)
	if q == nil {
		copyBack(h.Thread.token, was, to, have, p.placement)
		return 0
	}
	q.pages = uint8(p.segment.pages)
	h.Calls[CallReallocAllocs]++
	h.Calls[CallReallocFrees]++ // of q or of p
	q.setBlockOffset(p.lead())
	at := q.Start
	if size != have {
		at = hugeResized(h, q, size)
	}
	if at == 0 {
		hugeReturn(h.Thread.token, q, was)
		return 0
	}
	unpinMigration(h.Thread.token, q)
	return at
}

// oneMapping reports whether the n bytes at addr are one mapping for the kernel. They are, unless
// the host has changed a part of them. It tries to grow the mapping in place: for a split one the
// error differs from that for lack of room.
func oneMapping(addr, n uintptr) bool {
	_, errno := raw.Remap(addr, n, n+SliceSize, 0, 0)
	if errno == 0 {
		unmapFresh(addr+n, SliceSize)
	}
	return errno == 0 || errno == uintptr(syscall.ENOMEM)
}

// A block that a program lengthens by realloc, as a buffer is filled, grows into the memory that
// freed huge blocks have left in the cache. Otherwise a program that fills one buffer after another
// would fault in each of them while the last ones are still resident.
//
// It is copied to the front of a cached block in which it has room to double, and the rest of that
// stays cached. From then on it absorbs what it needs of the rest, without a call of the kernel. If
// there is none, a smaller one serves the block of a span, which returns to the pool, and that of a
// mapping where copying takes less time than the page faults for the new memory: one fault costs
// more than copying copyShare memory pages.
const copyShare = 2

// growCached makes the mapping of the block of p n bytes long with memory of the cache alone. It
// returns its address, or 0: it may be longer than before, but not n bytes. p.lead does not change.
func (h *Heap) growCached(p *Page, n uintptr) uintptr {
	size := raw.RoundUp(n, SliceSize)
	if pool.cache.n == 0 || n <= p.Size || p.unmigrated != 0 || p.Hint >= hintMoved ||
		!canCoalesce(uintptr(p.placement), size) {
		return 0
	}
	token := h.Thread.token
	if p.state == spanHuge && pinMigration(token, p) {
		absorbed := p.absorb(token, size)
		unpinMigration(token, p)
		switch {
		case p.Size >= size:
			return p.Start
		case absorbed:
			return 0 // the kernel may lengthen it further
		}
	}
	q := growthHuge(token, p, size, p.state == spanInUse || p.Size <= copyShare*(n-p.Size))
	if q == nil {
		return 0
	}
	h.Calls[CallReallocAllocs]++
	h.Calls[CallReallocFrees]++
	from := p.block()
	lead := from - p.spanStart()
	q.setBlockOffset(lead)
	to := q.Start // from now on q may be moved
	raw.Copy(to+lead, from, min(p.usable(from), size-lead))
	Free(h, from, HowAny, NoSize, 0)
	return to
}
