package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// The spans in use are on lists by age, oldest first, one for each tier, rank and
// whether the tier is the one that the span is meant for. Demotion takes from them
// in the order of ranks, promotion against it.
//
//	list = tier·8 + rank·2 + away, or listPin
//	away ⇔ placement != home
//
// The tier of a split block is the faster one, because its first part is the one to demote.
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
func listFor(p *Page) uint16 {
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
	return uint16(listOf(tier, rankOf(p.Hint), away))
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

// Where memory that followed its use moves by age from now on, in a forked child or when nothing
// measures use any more, a block with a part map moves part by part between its two tiers. One that
// lies in one tier loses the map, and moves as any other.

// canMoveParts reports whether a block with a part map may move to a placement by age.
func (p *Page) canMoveParts(to uint32) bool {
	faster := uintptr(p.unmigrated) * raw.Page
	switch {
	case !p.wholeSplit():
		return false
	case to == p.placement:
		return faster != 0
	case to == p.unmigratedIn:
		return faster != p.Size
	}
	return faster == 0 || faster == p.Size
}

// endParts ends the parts of a block in use that lies in one tier. Precondition: poolLock is held.
func (p *Page) endParts() {
	if p.parts() == nil {
		return
	}
	switch uintptr(p.unmigrated) * raw.Page {
	case 0:
		putIn(p, p.placement, p.unmigratedIn, 0, 0)
	case p.Size:
		putIn(p, p.unmigratedIn, p.placement, 0, 0)
	default:
		return
	}
	bindAgain(p.Start, p.Size, p.placement)
}

// migratePart moves one part of a block that is pinned to a placement, the last of those in the
// faster tier or the first of those in the slower, and ends the pin. It returns what it moved.
// poolLock is held, and is not when it returns.
func migratePart(token uintptr, now uint64, p *Page, to uint32) (reached uintptr) {
	m, from := p.parts(), p.unmigratedIn
	i, step := m.index(p.Size-1), ^uintptr(0)
	if to == from {
		i, step, from = 0, 1, p.placement
	}
	for n := 0; n < partsMost && p.partPlacement(m, i) == to; n++ {
		i += step
	}
	reached, ok := p.movePart(token, m, i)
	unpinMigrationLocked(token, p)
	tiers.MigrateCharge(now, reached)
	if !ok {
		pool.unwilling = now + migrateRest
		reached = 0
	}
	stats.Put1(config.LogDebug, stats.EventMigrate, tierOf(to), reached)
	poolLock.Release()
	tiers.WaitMoved(tierOf(from), tierOf(to), reached, now)
	return reached
}
