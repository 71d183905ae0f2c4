package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

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
	stats.Put1(logDebug, stats.EventMigrate, tierOf(to), reached)
	poolLock.Release()
	tiers.WaitMoved(tierOf(from), tierOf(to), reached, now)
	return reached
}
