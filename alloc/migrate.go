package alloc

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// With TA_ON_SOFTCAP=demote, spans of a tier that is over its soft cap move to the next lower one
// that is other memory, and those that are not where they are meant to be move back when there is
// room: by address unchanged, a step at a time, from the slow paths of whichever thread comes by,
// or from the control plane, at TA_MIGRATE_BW.
//
// A huge block moves in chunks. Between them it is charged to both tiers:
//
//	done > 0 ⇒ its first done slices have been moved, unmigrated pages of them to unmigratedIn
//
// and when the last chunk has moved the two change roles. A split block goes down from the end of
// its first part, so that it is split further up. Where pages of that stay behind, no step moves
// the block any more.
const (
	migrateChunk = 4 << 20  // of one step
	migrateTick  = 16 << 20 // of one call from a slow path
	migrateScan  = 32       // spans looked at on one list
	migrateRest  = 100e6    // nanoseconds without a try after the kernel would not move most of one
	// nanoseconds without a look after one that found no span to move, unless one is put to use
	migrateAgain = 1e6
)

// migrate takes the steps that are due, and reports whether it stopped because those were
// enough for one call.
func migrate(token uintptr, now uint64) (more bool) {
	if !tiers.Migrating() {
		return false
	}
	for moved := uintptr(0); moved < migrateTick; {
		n := migrateStep(token, now)
		if n == 0 {
			return false
		}
		moved += n
	}
	return true
}

// migrateStep demotes, else promotes, one span or chunk. It returns the bytes it tried
// to move, 0 when there is nothing to do now.
func migrateStep(token uintptr, now uint64) uintptr {
	if !unsettled() || now < max(pool.unwilling, pool.settled) || !tiers.MigrateBudget(now) ||
		!poolLock.Take(token) {
		return 0
	}
	p, to := demotable()
	if p == nil {
		p, to = promotable()
	}
	if p == nil {
		pool.settled = now + migrateAgain
	}
	if p == nil || !pinMigrationLocked(token, p) {
		poolLock.Release()
		return 0
	}
	if p.endParts(); p.parts() != nil {
		return migratePart(token, now, p, to)
	}
	start, n, from := p.chunk(to)
	if !charged(p, to, n) {
		unpinMigrationLocked(token, p)
		poolLock.Release()
		return 0
	}
	poolLock.Release()

	stayed := relocate(start, n, to)
	reached := n - stayed
	tiers.Moved(tierOf(from), reached/raw.Page, stayed/raw.Page)

	poolLock.Take(token)
	moved(p, to, n, stayed)
	unpinMigrationLocked(token, p)
	tiers.MigrateCharge(now, reached)
	if stayed != 0 {
		stats.Put1(config.LogInfo, stats.EventStuck, tierOf(to), stayed)
	}
	stats.Put1(config.LogDebug, stats.EventMigrate, tierOf(to), reached)
	// so it may be for the next, too: looking at pages costs as much as moving them
	if stayed > n/2 {
		pool.unwilling = now + migrateRest
		n = 0
	}
	poolLock.Release()
	tiers.WaitMoved(tierOf(from), tierOf(to), reached, now)
	return n
}

// chunk returns the part of p, which is pinned, that one step moves to a placement, and the
// placement that the part leaves.
func (p *Page) chunk(to uint32) (start, n uintptr, from uint32) {
	first := uintptr(p.done) << SliceShift
	if p.goesBack(to) {
		n = min(first, migrateChunk)
		return p.spanStart() + first - n, n, p.unmigratedIn
	}
	n = spanBytes(p) - first
	if n > migrateChunk && p.state == spanHuge && !p.reserved() {
		n = migrateChunk
	}
	return p.spanStart() + first, n, p.placement
}

// goesBack reports whether moving p to a placement makes its first part smaller.
func (p *Page) goesBack(to uint32) bool { return p.done != 0 && p.placement == to }

// unsettled reports whether there may be anything to move: a look without the lock.
func unsettled() bool {
	return pool.away != 0 || tiers.Excess(uintptr(config.TierFast)) != 0 ||
		tiers.Excess(uintptr(config.TierNormal)) != 0
}

// charged charges n bytes of a held span to the tier it is about to move to.
func charged(p *Page, to uint32, n uintptr) bool {
	if tiers.Full(tierOf(to), n) || !tiers.Admit(tierOf(to), n) {
		return false
	}
	s := &pool.migrationPins.slot[(p.moving-1)&(migrationPinSlots-1)]
	s.tier, s.bytes = tierOf(to), n
	return true
}

// settled notes that the charge for the move of a held span is the span's by now, or nobody's: a
// forked child does not take it back.
func settled(p *Page) {
	pool.migrationPins.slot[(p.moving&movingSlot-1)&(migrationPinSlots-1)].bytes = 0
}

// moved settles the accounts of a chunk of n bytes of which stayed did not move.
// Precondition: poolLock is held.
func moved(p *Page, to uint32, n, stayed uintptr) {
	if p.goesBack(to) {
		movedBack(p, n, stayed)
		return
	}
	from := p.placement
	tiers.Release(tierOf(to), stayed)
	tiers.Release(tierOf(from), n-stayed)
	if stayed == n && p.done == 0 { // the kernel will not: try others first
		bindAgain(p.spanStart(), n, from)
		putIn(p, from, p.unmigratedIn, p.unmigrated, 0)
		return
	}
	was := p.shares()
	p.unmigratedIn = to
	p.unmigrated += uint32((n - stayed) / raw.Page)
	p.done += uint32(n >> SliceShift)
	p.reshare(&was)
	if uintptr(p.done)<<SliceShift == spanBytes(p) {
		putIn(p, to, from, uint32(spanBytes(p)/raw.Page)-p.unmigrated, 0)
		return
	}
	ageAgain(p)
}

// movedBack is moved for the last n bytes of the first part of a whole split, which go to the rest.
func movedBack(p *Page, n, stayed uintptr) {
	tiers.Release(tierOf(p.placement), stayed)
	tiers.Release(tierOf(p.unmigratedIn), n-stayed)
	was := p.shares()
	p.done -= uint32(n >> SliceShift)
	p.unmigrated -= uint32((n - stayed) / raw.Page)
	p.reshare(&was)
	ageAgain(p)
}

// isStuck reports whether pages of p that would not move lie beyond its first part. A step could
// not tell which of the pages it moves are charged where.
func (p *Page) isStuck() bool {
	return uintptr(p.unmigrated)*raw.Page > p.elsewhere(spanBytes(p))
}

// fits reports whether a step may move p to the given placement: the page that a thread allocates
// from now, the youngest of its kind, stays. It is the first of its list, or the nursery, which is
// on none.
func fits(p *Page, to uint32) bool {
	if !canMove(p, to) {
		return false
	}
	owner := atomic.LoadUintptr(&p.Owner)
	return owner == OwnerHuge || owner&OwnerFull != 0 || p.prev != nil
}

// canMove reports whether p, all of which moves at once or chunk by chunk, may move to the given
// placement.
func canMove(p *Page, to uint32) bool {
	if p.moving != 0 || !movable(p, to) || overVMASplits(p, to) || p.isStuck() {
		return false
	}
	if p.parts() != nil {
		return p.canMoveParts(to)
	}
	if p.done != 0 && p.unmigratedIn != to {
		return p.goesBack(to) && p.wholeSplit()
	}
	return atomic.LoadUintptr(&p.Owner) != ownerNone
}

// demotable is the span that goes down next, from the fastest tier that is over its
// soft cap, or nil. Precondition: poolLock is held.
func demotable() (*Page, uint32) {
	for tier := config.TierFast; tier < config.TierSlow; tier++ {
		lower, ok := tiers.Below(uintptr(tier))
		if tiers.Excess(uintptr(tier)) == 0 || !ok {
			continue
		}
		for rank := uint32(rankFirst); rank < ranks; rank++ {
			if p, to := oldest(tier, rank, uint32(lower)); p != nil {
				return p, to
			}
		}
	}
	return nil, 0
}

// oldest is the span of a rank that goes down next, to the lower tier or to that of its rest, of
// those in this tier and in those after it that are the same memory. Precondition: poolLock is
// held.
func oldest(tier, rank, lower uint32) (*Page, uint32) {
	for from := tier; from < lower; from++ {
		for away := uint32(0); away < 2 && tiers.Same(uintptr(from), uintptr(tier)); away++ {
			l := &pool.aged[listOf(from, rank, away)&(listSlots-1)]
			for i := 0; i < migrateScan && l.head != nil; i++ {
				p, to := l.head, lower
				if p.isSplit() {
					to = p.placement
				}
				if fits(p, to) {
					return p, to
				}
				l.remove(p) // not now: so it is in nobody's way
				l.add(p)
			}
		}
	}
	return nil, 0
}

// promotable is the span that goes back to its tier next, or nil: HOT first and the
// youngest of each rank. Precondition: poolLock is held.
func promotable() (*Page, uint32) {
	if pool.away == 0 || !tiers.Room(uintptr(config.TierFast), SliceSize) &&
		!tiers.Room(uintptr(config.TierNormal), SliceSize) {
		return nil, 0
	}
	// so spans whose move has begun are finished first
	for tier := config.TierFast; tier <= config.TierSlow; tier++ {
		for rank := uint32(ranks); rank > rankFirst; rank-- {
			l := &pool.aged[listOf(tier, rank-1, 1)&(listSlots-1)]
			for i := 0; i < migrateScan && l.tail != nil; i++ {
				p := l.tail
				to := p.home
				if p.isSplit() {
					to = tier
				}
				if p.home < p.placement && !tiers.Same(uintptr(p.home), uintptr(p.placement)) &&
					fits(p, to) &&
					tiers.Room(uintptr(to), min(spanBytes(p), migrateChunk)) {
					return p, to
				}
				l.remove(p)
				l.addOldest(p)
			}
		}
	}
	return nil, 0
}
