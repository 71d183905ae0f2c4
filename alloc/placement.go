package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/tiers"
)

// A placement is where the memory of a span is to lie: one of the tiers, or the fast one
// for good. Spans of different placements are never joined, and each placement has its own
// free spans.
const (
	placementPin   = 3 // PIN_FAST: the fast tier, never moved
	placementSlots = 4
	anyPlacement   = placementSlots // as an argument: all of them
)

// tierOf is the tier that a placement's bytes are charged to.
func tierOf(placement uint32) uintptr {
	if placement == placementPin {
		placement = config.TierFast
	}
	return uintptr(placement) & (placementSlots - 1)
}

// Beside the program's hints there is one for each tier: of blocks that share their span
// and that ta_move has put there. Nothing but the hard cap decides about them.
const (
	hintMoved = 5 // + tier
	hintSlots = 8 // hints of the program, and hintMoved for each tier; a power of two

	_ = uint(hintSlots - hintMoved - placementPin) // it does not compile with fewer
)

// It does not compile unless these hints follow the program's.
const _ = -(config.HintCount ^ hintMoved)

// homeOf is the tier that memory for a hint belongs to.
func homeOf(hint uintptr) uintptr {
	if hint >= hintMoved {
		return (hint - hintMoved) & (placementSlots - 1)
	}
	return tiers.Home(hint)
}

// away reports whether the page lies in another tier than its hint's.
func (p *Page) away() bool { return tierOf(p.placement) != homeOf(uintptr(p.Hint)) }

// placementOf is the placement of memory for a hint in a tier.
func placementOf(hint, tier uintptr) uintptr {
	if hint == uintptr(config.HintPinFast) {
		return placementPin
	}
	return tier
}

// placement is what the kernel is told of a placement's memory.
type placement struct {
	nodes numa.Place // the nodes to take it from; zero: the default
	huge  uint32     // config.Huge…
	spans uint32     // the same for segments
	// No huge pages: with them more is resident than was charged, and where one reaches
	// into a neighbouring span the kernel moves both.
	small     bool
	auto      bool    // huge pages by measure (autohuge.go)
	retireMax uintptr // bytes of empty pages that a thread keeps
}

var (
	placements [placementSlots]placement
	bound      bool // the tiers lie on nodes of their own; else they are only accounts

	reservedPages bool // some placement has the kernel's reserved huge pages

	hugeFallbacks [placementSlots]uint64 // mappings that had to do with ordinary pages
)

const (
	retireMax = 4 << 20 // of a placement without a hard cap
	// with this many idle threads, their empty pages fill a hard cap
	retireShare = 128
)

// SetPlacements says where the tiers lie. It is called once, before the first block.
func SetPlacements(s *config.Settings, m *numa.Map) {
	bound = !m.Simulated
	for i := range placements {
		tier := &s.Tiers[tierOf(uint32(i))&3]
		w := &placements[i]
		*w = placement{huge: tier.HugePages, retireMax: retireMax}
		w.small = w.huge == config.HugeOff ||
			w.huge == config.HugeAuto && (tier.Hard != 0 || bound)
		w.auto = w.huge == config.HugeAuto && !w.small && !s.Secure
		if tier.Hard != 0 {
			w.retireMax = uintptr(min(retireMax, tier.Hard/retireShare))
		}
		w.spans = w.huge
		if i == placementPin && w.huge > config.HugeThp {
			// one span of a reserved page cannot be bound alone
			w.spans, w.small = config.HugeOff, true
		}
		if w.huge > config.HugeThp {
			reservedPages = true
		}
		if !bound {
			continue
		}
		w.nodes = m.Tier[i&3]
	}
	if bound {
		vmaSplitLimit = uintptr(numa.MaxMappings() / 2)
		// Bound only when its pages are there: see pin.
		placements[placementPin].nodes = numa.Place{Nodes: m.Pin.Nodes, Mode: numa.PreferredMany}
		pinned = m.Pin
	}
}

// placePages tells the kernel where a fresh mapping's pages are to come from. It
// refuses only what a later page fault will show in bytes_per_node.
func placePages(addr, n uintptr, placement uint32, hugetlb bool) {
	w := &placements[placement&(placementSlots-1)]
	if w.nodes.Mode != 0 {
		numa.Bind(addr, n, &w.nodes, false)
	}
	switch {
	case hugetlb:
	case w.spans >= config.HugeThp:
		raw.Sys(sysMadvise, addr, n, madvHugePage, 0, 0, 0)
	case w.small:
		raw.Sys(sysMadvise, addr, n, madvNoHugePage, 0, 0, 0)
	}
}

// pinned is what memory of the pin place is bound to in the end.
var pinned numa.Place

// pin makes n bytes at addr resident on the fast nodes, for good, or reports false.
// Their contents are kept: they may be fresh or purged.
func pin(addr, n uintptr) bool {
	ok := numa.Pin(addr, n, &pinned)
	if !ok {
		tiers.Unpinned()
	}
	return ok
}

// PlacementControl places the n bytes at addr, fresh memory of the control plane, on the slowest
// tier's nodes: no tier is charged for it, so it must not take room in a faster tier. The kernel
// does not promote it. It gets no huge pages, of which the Go runtime would touch little more than
// the beginning.
func PlacementControl(addr, n uintptr) {
	slow := placements[config.TierSlow&(placementSlots-1)].nodes
	if slow.Mode != numa.Default {
		slow.Mode &^= numa.Balanced
		slow.Promote = 0
		numa.Bind(addr, n, &slow, false)
	}
	raw.Sys(sysMadvise, addr, n, madvNoHugePage, 0, 0, 0)
}

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

// blockTiers returns how many of the first n bytes of a block of p lie in the tier that is returned
// with them. The others lie in the tier rest.
func (p *Page) blockTiers(n uintptr) (there, tier, rest uintptr) {
	return p.blockElsewhere(n), tierOf(p.unmigratedIn), tierOf(p.placement)
}

// blockElsewhere is how many of the first n bytes of a block of p lie in unmigratedIn.
func (p *Page) blockElsewhere(n uintptr) uintptr {
	if p.Owner != OwnerHuge {
		return 0
	}
	at := p.blockOffset()
	return p.elsewhere(at+n) - p.elsewhere(at)
}

// elsewhere is how many of the first n bytes of a huge block, in use or just freed, lie in
// unmigratedIn.
func (p *Page) elsewhere(n uintptr) uintptr {
	if m := p.parts(); m != nil {
		return m.within(n)
	}
	return min(n, uintptr(p.done)<<SliceShift)
}

// Huge pages, by TA_HUGEPAGES. A tier of transparent ones (thp) is charged, and
// purged, in whole huge pages: a touch of one slice makes all of them resident.
//
//	of a placement with a unit above one slice, every clean span starts and ends at a
//	multiple of it, and so does what is purged
//
// Pages of the kernel's pool (2M, 1G) are mapped when they are to be had, and ordinary
// ones otherwise. A segment of them is charged whole, is never purged in parts, because a
// page once given back may not be there when it is touched again and the process dies,
// and is unmapped when nothing in it is in use.
const (
	log2M  = 21
	log1G  = 30
	huge2M = 1 << log2M
	huge1G = 1 << log1G

	sysMadvise     = syscall.SYS_MADVISE
	madvHugePage   = 14
	madvNoHugePage = 15
	mapHuge        = 0x40000 // MAP_HUGETLB
	mapHugeShift   = 26      // where the logarithm of the page size goes
)

// hugePageSlices is the number of slices in which a placement is charged: a power of two.
func hugePageSlices(placement uintptr) uintptr {
	if placements[placement&(placementSlots-1)].spans >= config.HugeThp {
		return huge2M >> SliceShift
	}
	return 1
}

// wholeHugePages is how many slices are charged for a span of n.
func wholeHugePages(placement, n uintptr) uintptr {
	if placements[placement&(placementSlots-1)].spans > config.HugeThp {
		n = max(n, minGrowth)
	}
	return raw.RoundUp(n, hugePageSlices(placement))
}

// hugetlbSize is the size of the kernel's huge pages that a mapping of n bytes would
// have, or 0. Pages of 1 GiB are used where they waste no more than an eighth.
func hugetlbSize(placement, n uintptr) uintptr {
	switch placements[placement&(placementSlots-1)].huge {
	case config.Huge1G:
		if whole := raw.RoundUp(n, huge1G); whole-n <= whole/8 {
			return huge1G
		}
		return huge2M
	case config.Huge2M:
		return huge2M
	}
	return 0
}

// mapHugetlb maps n bytes, a multiple of the page's size, of huge pages. It returns 0,
// and counts that, when the kernel has not enough of them.
func mapHugetlb(placement, n, page uintptr) uintptr {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	flags := uintptr(syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS | mapHuge | log2M<<mapHugeShift)
	if page == huge1G {
		flags ^= (log2M ^ log1G) << mapHugeShift
	}
	addr, errno := raw.Sys(syscall.SYS_MMAP, 0, n, prot, flags, ^uintptr(0), 0)
	if errno != 0 {
		atomic.AddUint64(&hugeFallbacks[placement&(placementSlots-1)], 1)
		return 0
	}
	return addr
}

// purgeable reports whether a dirty span has anything that can be purged.
func purgeable(p *Page) bool {
	if p.segment.reserved() {
		return uintptr(p.slices) == p.segment.slices && p.segment.epoch == pool.epoch
	}
	granularity := hugePageSlices(uintptr(p.placement)) << SliceShift
	return raw.RoundUp(p.Start, granularity)+granularity <= p.Start+p.bytes()
}

// purgeablePart is what can be purged of a span that is in no list: whole huge pages.
// The rest goes back among the dirty spans. The part is marked at its ends, for the lock
// is let go while it is purged, and its neighbours look there. Precondition: purgeable(p).
func purgeablePart(p *Page) *Page {
	granularity := hugePageSlices(uintptr(p.placement)) << SliceShift
	if granularity == SliceSize || p.segment.reserved() {
		return p
	}
	start := raw.RoundUp(p.Start, granularity)
	if head := start - p.Start; head != 0 {
		rest := cut(p, head>>SliceShift)
		if rest == nil {
			return p // no memory for a descriptor: less of the huge page is kept whole
		}
		insertFree(p, spanDirty)
		rememberDirty(p)
		p = rest
	}
	if rest := cut(p, p.bytes()&^(granularity-1)>>SliceShift); rest != nil {
		insertFree(rest, spanDirty)
		rememberDirty(rest)
	}
	mapEnds(p)
	return p
}

// purgeHugetlb unmaps a segment of the kernel's huge pages, when p is all of it.
// poolLock is held, and let go meanwhile.
func purgeHugetlb(token uintptr, p *Page) bool {
	if !purgeable(p) {
		return false
	}
	n, placement := p.bytes(), p.placement
	unmigrated, unmigratedIn := uintptr(p.unmigrated)*raw.Page, p.unmigratedIn
	pool.leaving += n
	ok := unmapSegment(token, p)
	pool.leaving -= n
	if !ok {
		lose(placement, n-unmigrated)
		lose(unmigratedIn, unmigrated)
		return true
	}
	tiers.Release(tierOf(placement), n-unmigrated)
	tiers.Release(tierOf(unmigratedIn), unmigrated)
	uncommit(n)
	pool.count.purges++
	pool.count.purgedBytes += uint64(n)
	return true
}
