package alloc

import (
	"math/bits"
	"sync/atomic"

	"tieralloc/numa"
	"tieralloc/tiers"
)

// A span is held while its memory is moved between nodes or addresses, so that nobody
// else moves it or gives it back meanwhile: a thread that frees it leaves the rest to the holder.
// Each pin is noted, with the bytes charged for the move, so that a forked child can
// drop the pins of other threads.
//
//	Page.moving = i+1, or that | movingFreed ⇔ holds.slot[i].page is the page
//	bit i of holds.used set ⇔ slot[i] is taken
const (
	migrationPinSlots = 64
	movingFreed       = 1 << 8
	movingSlot        = movingFreed - 1
)

type migrationPinSet struct {
	used uint64
	slot [migrationPinSlots]migrationPin
}

type migrationPin struct {
	page  *Page
	token uintptr
	tier  uintptr // charged with bytes until the move is over
	bytes uintptr
}

// pinMigration holds p, unless it is held already. Precondition: p is in use, by the caller.
func pinMigration(token uintptr, p *Page) bool {
	if !poolLock.Take(token) {
		return false
	}
	ok := pinMigrationLocked(token, p)
	poolLock.Release()
	return ok
}

func pinMigrationLocked(token uintptr, p *Page) bool {
	i := uint(bits.TrailingZeros64(^pool.migrationPins.used))
	if p.moving != 0 || i >= migrationPinSlots {
		return false
	}
	pool.migrationPins.used |= 1 << (i & (migrationPinSlots - 1))
	pool.migrationPins.slot[i&(migrationPinSlots-1)] = migrationPin{page: p, token: token}
	atomic.StoreUint32(&p.moving, uint32(i+1))
	p.dropSummary()
	return true
}

// unpinMigration ends the holding of p, and frees it when that has been asked for.
func unpinMigration(token uintptr, p *Page) {
	if poolLock.Take(token) {
		unpinMigrationLocked(token, p)
		poolLock.Release()
	}
}

func unpinMigrationLocked(token uintptr, p *Page) {
	freed := p.moving&movingFreed != 0
	i := (p.moving&movingSlot - 1) & (migrationPinSlots - 1)
	pool.migrationPins.used &^= 1 << i
	pool.migrationPins.slot[i].page = nil
	p.moving = 0
	switch {
	case !freed:
	case p.segment == nil || p.state == spanHugeCached:
		hugeFreed(token, p)
	default:
		spanFreed(token, p)
	}
}

// unpinOthers ends, in a forked child, the pins of the parent's other threads. Spans stay where the
// parent's accounts had them.
func unpinOthers(token uintptr) {
	for i := range pool.migrationPins.slot {
		s := &pool.migrationPins.slot[i]
		if pool.migrationPins.used>>(uint(i)&63)&1 == 0 || s.page == nil || s.token == token {
			continue
		}
		tiers.Release(s.tier, s.bytes)
		unpinMigrationLocked(token, s.page)
	}
}

// spanBytes is the size of a span or huge block.
func spanBytes(p *Page) uintptr {
	if p.isMapping() {
		return p.Size
	}
	return p.bytes()
}

// movable reports whether p can change its placement at its address. Less than a huge page
// does not where either placement is of such: it would be free in parts that never make one
// again.
func movable(p *Page, to uint32) bool {
	return p.state == spanHuge ||
		hugePageSlices(uintptr(p.placement)) == 1 && hugePageSlices(uintptr(to)) == 1
}

// relocate asks the kernel to move the n bytes at addr to a placement and returns how many
// bytes are elsewhere afterwards, or may be: bytes that the kernel refused to bind, and bytes whose
// node it does not tell. Bound memory that was never touched counts as moved, because its pages
// will come from the new nodes.
func relocate(addr, n uintptr, to uint32) (stayed uintptr) {
	dst := &placements[to&(placementSlots-1)].nodes
	if !bound || dst.Nodes == 0 {
		return 0
	}
	for at := uintptr(0); at < n; at += moveChunk {
		part := min(n-at, moveChunk)
		if numa.Bind(addr+at, part, dst, true) != 0 {
			stayed += part
		} else {
			stayed += residentOff(addr+at, part, dst.Nodes)
		}
	}
	return stayed
}

// bindAgain gives the n bytes at addr the policy of the placement that they have not left after
// all.
func bindAgain(addr, n uintptr, placement uint32) {
	if bound || apart.Nodes != 0 {
		numa.Bind(addr, n, &placements[placement&(placementSlots-1)].nodes, false)
	}
}

// moveChunk bounds the time that one call keeps the process's mappings locked.
const moveChunk = 32 << 20

// residentOff is how many of the n bytes at addr are resident on other nodes.
func residentOff(addr, n uintptr, nodes uint64) (bytes uintptr) {
	var r numa.Residency
	numa.Count(addr, n, &r)
	return uintptr(r.On(^nodes) + r.Failed)
}

// putIn records that a span in use is in another placement now, but for unmigrated pages that are
// in unmigratedIn. Precondition: poolLock is held.
func putIn(p *Page, placement, unmigratedIn, unmigrated, done uint32) {
	ageRemove(p)
	was := p.shares()
	if !p.isHuge() && tierOf(p.placement) != tierOf(placement) {
		noteMove(p.tally(), tierOf(p.placement), tierOf(placement))
	}
	if p.segment != nil {
		pool.vmaSplits += vmaSplits(p, placement) - vmaSplits(p, p.placement)
	}
	p.dropParts()
	p.placement = placement
	p.unmigratedIn, p.unmigrated, p.done = unmigratedIn, unmigrated, done
	p.reshare(&was)
	ageAdd(p)
}

// vmaSplits is how many neighbours of a span in use do not lie in the given placement: so often
// the kernel would have two mappings instead of one. Precondition: poolLock is held.
func vmaSplits(p *Page, placement uint32) (n uintptr) {
	seg := p.segment
	start := p.spanStart()
	if start > seg.start {
		if q := Lookup(start - SliceSize); q != nil && q.placement != placement {
			n++
		}
	}
	if end := start + p.bytes(); end < seg.start+seg.slices<<SliceShift {
		if q := Lookup(end); q != nil && q.placement != placement {
			n++
		}
	}
	return n
}

// vmaSplitLimit is how many VMA splits moving may make: half of the mappings that the kernel lets
// a process have, the rest is the program's.
var vmaSplitLimit = ^uintptr(0)

// overVMASplits reports whether moving p to a placement would make VMA splits beyond the limit.
// Precondition: poolLock is held.
func overVMASplits(p *Page, to uint32) bool {
	return p.segment != nil && pool.vmaSplits >= vmaSplitLimit &&
		vmaSplits(p, to) > vmaSplits(p, p.placement)
}
