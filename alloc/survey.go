package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// Region is memory in use that moves between tiers as one: a span, a huge block, or a part of one.
type Region struct {
	Block        uintptr // where its span or huge block starts
	Start, Bytes uintptr
	Tier         uint32 // config's number
	Home         uint32 // the tier that its hint, or ta_move, wants it in
	Rank         uint8  // RegionCold, …: what these say of it
	Fixed        bool   // it never moves, or pages of it did not
}

// Ranks of regions: a greater one is for the faster tier.
const (
	RegionCold = iota
	RegionMiddle
	RegionHot
)

// Survey is how far SurveyNext has got. The zero value begins.
type Survey struct {
	at      uintptr // spans below this address are listed
	spans   uint32  // 1: all are
	again   uint32  // how often the list of huge blocks was begun
	huge    uintptr // the descriptor of the next huge block; 0: the first, 1: none
	part    uintptr // its next part
	Regions [surveyMost]Region
}

const (
	surveyMost  = 256 // regions listed while the lock is held
	surveySteps = 4 * surveyMost
	surveyTries = 16
	surveyEnd   = 1
)

// SurveyNext lists regions, at address survey's Regions, and returns how many: 0 when all have been
// listed. Between two calls spans come and go, so a region may be listed twice, and one that is new
// not at all.
func SurveyNext(token, survey uintptr) (n uintptr) {
	s := (*Survey)(raw.Ptr(survey))
	if !poolLock.Take(token) {
		return 0
	}
	for i := 0; i < surveySteps && n == 0 && s.huge != surveyEnd; i++ {
		if s.spans == 0 {
			n = s.nextSpans()
		} else {
			n = s.nextHuge()
		}
	}
	poolLock.Release()
	return n
}

// nextSpans lists spans of the first segment that is not listed yet.
func (s *Survey) nextSpans() (n uintptr) {
	var next *segment
	for seg := pool.segments; seg != nil; seg = seg.next {
		if seg.start+seg.slices<<SliceShift > s.at && (next == nil || seg.start < next.start) {
			next = seg
		}
	}
	if next == nil {
		s.spans = 1
		return 0
	}
	at, end := max(s.at, next.start), next.start+next.slices<<SliceShift
	for i := 0; i < surveySteps && n < surveyMost && at < end; i++ {
		p := Lookup(at)
		if p == nil || p.segment != next || p.slices == 0 {
			at += SliceSize
			continue
		}
		at = p.spanStart() + p.bytes()
		if p.state == spanInUse {
			s.add(&n, p, p.spanStart(), p.bytes(), p.placement)
		}
	}
	s.at = at
	return n
}

// nextHuge lists huge blocks, or parts of one.
func (s *Survey) nextHuge() (n uintptr) {
	p := (*Page)(raw.Ptr(s.huge))
	if p == nil || p.state != spanHuge || p.Owner != OwnerHuge {
		p, s.part = pool.huge.head, 0 // the next one is gone: begin again
		s.again++
	}
	if p == nil || s.again > surveyTries {
		s.huge = surveyEnd
		return 0
	}
	for n < surveyMost && p != nil {
		if s.addParts(&n, p) {
			p, s.part = p.pendNext, 0
		}
	}
	s.huge = max(addrOf(p), surveyEnd)
	return n
}

// addParts lists the block of p, or its next parts, and reports whether that was all of it.
func (s *Survey) addParts(n *uintptr, p *Page) bool {
	if !p.hasParts() {
		s.add(n, p, p.Start, p.Size, p.placement)
		return true
	}
	shift := p.partsShift() & 63
	for ; *n < surveyMost; s.part++ {
		at := s.part << shift
		if at >= p.Size {
			return true
		}
		s.add(n, p, p.Start+at, min(1<<shift, p.Size-at), p.placementAt(at))
	}
	return false
}

func (s *Survey) add(n *uintptr, p *Page, start, bytes uintptr, placement uint32) {
	r := &s.Regions[*n&(surveyMost-1)]
	*n++
	*r = Region{Block: p.spanStart(), Start: start, Bytes: bytes, Tier: uint32(tierOf(placement)),
		Home: p.home, Rank: p.regionRank(), Fixed: placement == placementPin || p.isStuck()}
}

// regionRank is the rank by the tier that the program has named: by a hint, or by ta_move.
func (p *Page) regionRank() uint8 {
	named := uintptr(p.home) != homeOf(uintptr(p.Hint)) || p.Hint >= hintMoved
	switch {
	case p.Hint == config.HintHot, named && p.home == config.TierFast:
		return RegionHot
	case p.Hint == config.HintCold, named && p.home == config.TierSlow:
		return RegionCold
	}
	return RegionMiddle
}
