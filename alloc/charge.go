package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// Bytes are charged to a tier before they are mapped, or taken from a span that has
// no memory, and released when the kernel has them back. So what is resident never
// exceeds what is charged:
//
//	tiers' bytes_current = used + dirty + purging + huge + cached + lost, by tier
//
// A span is charged to the tier of its placement but for unmigrated memory pages that the
// kernel would not move.

// reserve charges n bytes for the heap's hint and returns the placement that they are to lie in.
// Before it gives up, or turns to a slower tier, what is cached in the tier goes back to the
// kernel; so it does before the process's control group has no room. Precondition: no lock is held.
func (h *Heap) reserve(n uintptr) (placement uintptr, ok bool) {
	if nearLimit(n) {
		h.Thread.heed(n)
	}
	placement, ok = h.reserveIn(n)
	h.Thread.capped = !ok
	return placement, ok
}

func (h *Heap) reserveIn(n uintptr) (placement uintptr, ok bool) {
	hint, trimmed := uintptr(h.Hint), uintptr(0)
	if hint >= hintMoved {
		return homeOf(hint), h.Thread.admitAtLast(homeOf(hint), n)
	}
	for range placementSlots {
		answer := tiers.Reserve(hint, n, trimmed)
		switch {
		case answer&tiers.Trim != 0:
			tier := answer & (placementSlots - 1)
			h.Thread.makeRoom(tier, n, tiers.Last(hint, tier, n))
			trimmed |= 1 << tier
		case answer == tiers.Refused:
			return 0, false
		default:
			return placementOf(hint, answer), true
		}
	}
	return 0, false
}

// lose notes n bytes that stay charged to the tier of the placement: they will not be used again,
// and the kernel keeps them resident. Precondition: poolLock is held.
func lose(placement uint32, n uintptr) { pool.lost[tierOf(placement)] += n }

// shape is what a request comes to in a placement: whole huge pages where it has them.
type shape struct {
	n    uintptr // bytes, whole slices
	span bool    // of a segment; else a mapping of its own
	pool bool    // a mapping may have the kernel's reserved huge pages
}

func (s *shape) bytes(placement uintptr) uintptr {
	switch {
	case s.span:
		return wholeHugePages(placement, s.n>>SliceShift) << SliceShift
	case s.pool && hugetlbSize(placement, s.n) != 0:
		return raw.RoundUp(s.n, hugetlbSize(placement, s.n))
	}
	return raw.RoundUp(s.n, hugePageSlices(placement)<<SliceShift)
}

// reserveShape is reserve for what comes to other sizes in other placements.
func (h *Heap) reserveShape(home uintptr, s *shape) (placement, n uintptr, ok bool) {
	n = s.bytes(home)
	if placement, ok = h.reserve(n); !ok {
		return 0, 0, false
	}
	fit, tier := s.bytes(placement), tierOf(uint32(placement))
	switch {
	case fit <= n:
		tiers.Release(tier, n-fit)
		return placement, fit, true
	case h.Thread.admit(tier, fit-n):
		return placement, fit, true
	}
	tiers.Release(tier, n)
	if !tiers.RoutesSlow() {
		return 0, 0, false
	}
	for placement = home; placement < placementPin; placement++ {
		if n = s.bytes(placement); !renamed(placement, home) && h.Thread.admit(placement, n) {
			return placement, n, true
		}
	}
	for placement = home; placement < placementPin; placement++ {
		if n = s.bytes(placement); !renamed(placement, home) && h.Thread.admitAtLast(placement, n) {
			return placement, n, true
		}
	}
	return 0, 0, false
}

// renamed reports whether a placement is the memory of the home under another name.
func renamed(placement, home uintptr) bool {
	return placement != home && tiers.Same(placement, tierOf(uint32(home)))
}

// admit charges n bytes to exactly this tier, for which what is cached there goes back to
// the kernel if need be. Precondition: no lock is held.
func (t *Thread) admit(tier, n uintptr) bool {
	if tiers.Full(tier, n) {
		t.makeRoom(tier, n, false)
	}
	return tiers.Admit(tier, n)
}

// admitAtLast is admit where a refusal is the end of a request.
func (t *Thread) admitAtLast(tier, n uintptr) bool {
	if tiers.Full(tier, n) {
		t.makeRoom(tier, n, true)
	}
	return tiers.Admit(tier, n)
}

// makeRoom gives back what is cached in the memory of a tier, with the empty pages of this thread,
// those without a thread, and those of other threads that can be had. Of the other threads it looks
// at a few, so that what it costs does not depend on how many there are; at all of them, and at all
// tiers, where the request is refused without room (last). Where the hard cap is in the way what
// other threads are giving back is waited for, too; where only the soft cap is, pages are not
// looked for all the time.
func (t *Thread) makeRoom(tier, n uintptr, last bool) {
	full, yields := tiers.Full(tier, n), yieldsStep
	if full || t.Now > t.combed {
		t.combed = t.Now
		t.release()
		t.collectPages(true)
		serveAbandoned(t.token, t.Now, abandonedStep, false)
		t.stealPages(stealStep)
	}
	if full && last {
		yields = yieldsMost
		t.lookRound()
	}
	for placement := uintptr(0); placement < placementSlots; placement++ {
		if full && last || tiers.Same(tierOf(uint32(placement)), tier) {
			hugeExpire(t.token, t.Now, placement, true)
			purgePlacement(t.token, t.Now, placement, 0, false)
		}
	}
	for i := 0; full && i < yields && pool.leaving != 0 && tiers.Full(tier, n); i++ {
		raw.Sys(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
	}
}

const (
	yieldsStep = 16
	yieldsMost = 1000
)

// uncharge releases what a whole span is charged with.
func uncharge(p *Page, bytes uintptr) {
	if p.unmigrated != 0 {
		unmigrated := uintptr(p.unmigrated) * raw.Page
		tiers.Release(tierOf(p.unmigratedIn), unmigrated)
		bytes -= unmigrated
		p.unmigrated = 0
	}
	tiers.Release(tierOf(p.placement), bytes)
}

// settle charges the unmigrated pages of a span to the tier of its placement. It reports false,
// and the span is given up with its charges, when that has no room.
func settle(p *Page) bool {
	unmigrated := uintptr(p.unmigrated) * raw.Page
	if !tiers.Admit(tierOf(p.placement), unmigrated) {
		return false
	}
	tiers.Release(tierOf(p.unmigratedIn), unmigrated)
	p.unmigrated = 0
	return true
}
