package alloc

import (
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

// lose notes n bytes that stay charged to the tier of the placement: they will not be used again,
// and the kernel keeps them resident. Precondition: poolLock is held.
func lose(placement uint32, n uintptr) { pool.lost[tierOf(placement)] += n }

// shape is a request rounded to its placement's unit, which may be a huge page.
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

// renamed reports whether a placement is the memory of the home under another name.
func renamed(placement, home uintptr) bool {
	return placement != home && tiers.Same(placement, tierOf(uint32(home)))
}

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
