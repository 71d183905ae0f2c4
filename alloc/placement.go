package alloc

import (
	"unsafe"

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

// DescriptorSize is the size of a span's descriptor, for who reads another process's heap.
const DescriptorSize = unsafe.Sizeof(Page{})

// Extent says where the span of a copied descriptor lies: the bytes from start to cut in one tier,
// those from cut to end in another. The copy may be of anything; the answer is then of no use, but
// start ≤ cut ≤ end.
func Extent(descriptor *[DescriptorSize]byte) (start, cut, end, first, rest uintptr) {
	p := (*Page)(unsafe.Pointer(descriptor))
	size, part := p.bytes(), firstPart{placement: p.placement}
	switch p.state {
	case spanHuge, spanHugeCached, spanHugeAlone:
		size = p.Size & mapMask
	}
	if p.state == spanHuge {
		part = p.parted(size)
	}
	start = p.Start & mapMask
	cut = start + min(part.bytes, size)
	return start, cut, start + size, known(part.placement), known(p.placement)
}

const mapMask = RootEntries<<RootShift - 1

// known is the tier of a placement that may be none.
func known(placement uint32) uintptr { return min(tierOf(placement), uintptr(config.TierSlow)) }

// Beside the program's hints there is one for each tier: of blocks that share their span
// and that ta_move has put there. Nothing but the hard cap decides about them.
const hintMoved = 5 // + tier

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
	// so many threads that idle with what they keep have the memory of a hard cap
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
		// Bound only when its pages are there: see pin.go.
		placements[placementPin].nodes = numa.Place{Nodes: m.Pin.Nodes, Mode: numa.PreferredMany}
		pinned = m.Pin
	}
}

// settlePages tells the kernel where a fresh mapping's pages are to come from. It
// refuses only what a later page fault will show in bytes_per_node.
func settlePages(addr, n uintptr, placement uint32, hugetlb bool) {
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
