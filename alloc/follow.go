package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// With TA_ON_SOFTCAP=follow the control plane decides what moves (package tiers/follow). What it
// asks for names memory by address and size, as Survey found it: a span or a huge block, or a part
// of one. That may have changed since; then nothing is done.

// Answers of Follow.
const (
	FollowMoved   = iota
	FollowGone    // there is no such memory any more
	FollowRefused // it cannot move now, or the kernel did not move all of it
	FollowFull    // the tier has no room
	FollowLater   // TA_MIGRATE_BW does not allow it yet
)

// Follow moves the n bytes at start, of the span or huge block that starts at block, to a tier.
// Only one goroutine calls it.
func Follow(token, now, block, start, n, tier uintptr) (answer uintptr) {
	to := uint32(tier) & (placementSlots - 1)
	if !tiers.MigrateBudget(uint64(now)) || !poolLock.Take(token) {
		return FollowLater
	}
	p, i := regionAt(block, start, n)
	if p == nil {
		poolLock.Release()
		return FollowGone
	}
	from := p.placement
	if i >= 0 {
		from = p.placementAt(start - p.Start)
	}
	reached := uintptr(0)
	switch {
	case from == to, from == placementPin:
		answer = FollowGone
	case tiers.Full(tier, n):
		answer = FollowFull
	case i >= 0:
		reached, answer = followPart(token, p, uintptr(i), to)
	case p.done != 0 || !canMove(p, to) || !pinMigrationLocked(token, p):
		answer = FollowRefused
	default:
		reached, answer = followWhole(token, p, to)
	}
	tiers.MigrateCharge(uint64(now), reached)
	poolLock.Release()
	if reached != 0 {
		stats.Put1(config.LogDebug, stats.EventMigrate, tierOf(to), reached)
		tiers.WaitMoved(tierOf(from), tierOf(to), reached, uint64(now))
	}
	return answer
}

// followWhole moves a span or block that is pinned; it ends the pin. poolLock is held, and let go
// meanwhile.
func followWhole(token uintptr, p *Page, to uint32) (reached, answer uintptr) {
	n, from := spanBytes(p), p.placement
	if !charged(p, to, n) {
		unpinMigrationLocked(token, p)
		return 0, FollowFull
	}
	poolLock.Release()
	stayed := relocate(p.spanStart(), n, to)
	poolLock.Take(token)
	tiers.Moved(tierOf(from), (n-stayed)/raw.Page, stayed/raw.Page)
	moved(p, to, n, stayed)
	unpinMigrationLocked(token, p)
	if stayed != 0 {
		answer = FollowRefused
	}
	return n - stayed, answer
}

// followPart moves the part i of a huge block. poolLock is held, and let go meanwhile.
func followPart(token uintptr, p *Page, i uintptr, to uint32) (reached, answer uintptr) {
	if p.moving != 0 || !p.wholeSplit() {
		return 0, FollowRefused
	}
	m := p.makeParts(to)
	if m == nil || to != p.placement && to != p.unmigratedIn || !pinMigrationLocked(token, p) {
		return 0, FollowRefused
	}
	reached, ok := p.movePart(token, m, i)
	unpinMigrationLocked(token, p)
	if !ok {
		answer = FollowRefused
	}
	return reached, answer
}

// regionAt is the span or huge block that starts at block, if the n bytes at start are all of it
// or a part of it. part is the number of the part; it is -1 if they are all. Without such memory
// in use p is nil. Precondition: poolLock is held.
func regionAt(block, start, n uintptr) (p *Page, part int) {
	p = Lookup(block)
	if p == nil || p.spanStart() != block || p.state != spanHuge && p.state != spanInUse ||
		p.state == spanInUse && p.segment == nil {
		return nil, 0
	}
	if !p.hasParts() {
		if start != block || spanBytes(p) != n {
			return nil, 0
		}
		return p, -1
	}
	shift, at := p.partsShift()&63, start-block
	if at >= p.Size || at&(1<<shift-1) != 0 || min(1<<shift, p.Size-at) != n {
		return nil, 0
	}
	return p, int(at >> shift)
}

// hasParts reports whether a span or block moves by parts: a huge block of more than one.
func (p *Page) hasParts() bool {
	return p.state == spanHuge && (p.parts() != nil || p.Size > 1<<partShift && !p.reserved())
}

// partsShift is the shift of the parts that a block has or would have.
func (p *Page) partsShift() uint32 {
	if m := p.parts(); m != nil {
		return m.shift
	}
	return partShiftFor(p.Size)
}

// Distinguish gives the n bytes at start a policy of the same effect as that of their tier which
// the kernel does not join with it: so neighbours are mappings of their own, and their use can be
// told apart. With plain set they get the policy of their tier again. It reports false if there is
// no such memory, or the kernel cannot.
func Distinguish(token, block, start, n uintptr, plain bool) bool {
	if !bound && apart.Nodes == 0 || !poolLock.Take(token) {
		return false
	}
	p, i := regionAt(block, start, n)
	ok := p != nil && p.moving == 0
	if ok && i >= 0 && p.parts() == nil {
		// the block knows then that it is several mappings
		ok = p.wholeSplit() && p.makeParts(otherThan(p.placement)) != nil
	}
	if ok {
		placement := p.placement
		if i >= 0 {
			placement = p.placementAt(start - p.Start)
		}
		nodes := &placements[placement&(placementSlots-1)].nodes
		switch {
		case plain:
			ok = numa.Bind(start, n, nodes, false) == 0
		case bound && (apart.Nodes == 0 || nodes.Nodes != 0 && nodes.Promote == 0):
			ok = numa.BindApart(start, n, nodes) == 0
		default:
			ok = numa.Bind(start, n, &apart, false) == 0
		}
	}
	poolLock.Release()
	return ok
}

// apart tells regions apart where their tier has no policy of its own, or one that has the kernel
// move pages: it prefers all nodes, as no policy does.
var apart numa.Place

// SetApart has such regions told apart, because their memory is to be paged out or watched. nodes
// are all that memory comes from.
func SetApart(nodes uint64) {
	apart = numa.Place{Nodes: nodes, Mode: numa.PreferredMany}
}

// otherThan is a tier of other memory than a placement's.
func otherThan(placement uint32) uint32 {
	if lower, ok := tiers.Below(tierOf(placement)); ok {
		return uint32(lower)
	}
	return 0
}

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
			p, s.part = p.nextLive(), 0
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
