package alloc

import (
	"tieralloc/internal/config"
)

// The spans in use are on lists by age, oldest first, one for each tier, rank and
// whether the tier is the one that the span is meant for. Demotion takes from them
// in the order of ranks, promotion against it.
//
//	list = tier·8 + rank·2 + away, or listPin
//	away ⇔ placement != home
//
// Of a split block the tier is the faster one: its first part is what goes down.
//
//	pool.away = the number of spans that are away
const (
	rankFirst = iota // PREFER_FAST
	rankMiddle
	rankLast // HOT
	ranks

	listPin   = 3 * 8
	listSlots = 32
)

type ageList struct{ head, tail *Page }

func rankOf(hint uint32) uint32 {
	switch hint {
	case config.HintPreferFast:
		return rankFirst
	case config.HintHot, hintMoved + config.TierFast:
		return rankLast
	}
	return rankMiddle
}

func listOf(tier, rank, away uint32) uint32 { return tier<<3 | rank<<1 | away }

// listFor is the list that a span in use belongs on.
func listFor(p *Page) uint32 {
	if p.placement == placementPin {
		return listPin
	}
	away := uint32(0)
	if p.placement != p.home {
		away = 1
	}
	tier := p.placement
	if p.isSplit() {
		tier = p.unmigratedIn
	}
	return listOf(tier, rankOf(p.Hint), away)
}

// ageAdd puts a span that is in use now on its list, as the youngest. Precondition:
// poolLock is held.
func ageAdd(p *Page) {
	p.list = listFor(p)
	pool.away += uint64(p.list & 1)
	pool.settled = 0
	pool.aged[p.list&(listSlots-1)].add(p)
}

func ageRemove(p *Page) {
	pool.away -= uint64(p.list & 1)
	pool.aged[p.list&(listSlots-1)].remove(p)
}

// ageAgain puts a span that has changed on the list where it belongs now.
func ageAgain(p *Page) {
	if p.list != listFor(p) {
		ageRemove(p)
		ageAdd(p)
	}
}

func (l *ageList) add(p *Page) {
	p.ageNext = nil
	p.agePrev = l.tail
	if l.tail != nil {
		l.tail.ageNext = p
	} else {
		l.head = p
	}
	l.tail = p
}

// addOldest puts p at the other end.
func (l *ageList) addOldest(p *Page) {
	p.agePrev = nil
	p.ageNext = l.head
	if l.head != nil {
		l.head.agePrev = p
	} else {
		l.tail = p
	}
	l.head = p
}

// remove takes p off. In a child that was forked in the middle of another thread's
// change (ForkUnprepared) a neighbour may not know p: it is then left alone.
func (l *ageList) remove(p *Page) {
	switch {
	case p.agePrev == nil:
		if l.head == p {
			l.head = p.ageNext
		}
	case p.agePrev.ageNext == p:
		p.agePrev.ageNext = p.ageNext
	}
	switch {
	case p.ageNext == nil:
		if l.tail == p {
			l.tail = p.agePrev
		}
	case p.ageNext.agePrev == p:
		p.ageNext.agePrev = p.agePrev
	}
}
