package alloc

// A block counts for the tier that its span is in, and a span that moves takes its counts along, so
// a tier's counts in reports may fall. Reports also have counts that never fall: blocks that
// entered the tier, by allocation or migration, and blocks that left it. If a span with a allocated
// and f freed blocks moves, a and f are subtracted from the one tier and added to the other, and a
// - f blocks enter that one:
//
//	entered = allocs + moves.allocs, left = frees + moves.frees
//	entered - left = allocs - frees
//
//	moves[from] += (a, a), moves[to] -= (f, f)

// forget resets the counts of a page, all of whose blocks are free, because the caller counts them.
func (p *Page) forget() {
	p.Allocs, p.Frees = 0, -p.remoteCount()
}

// entered returns the counts that have entered and left tier i.
func (k *Counts) entered(i uintptr) (t tally) {
	t = k.tier[i&(placementSlots-1)]
	t.add(&k.pool.huge[i&(placementSlots-1)])
	t.add(&k.zero[i&(placementSlots-1)])
	t.add(&k.pool.moves[i&(placementSlots-1)])
	return t
}

// rising is entered, but never less than at the call before. entered may fall by freed blocks that
// were on a thread's list when their span moved, and are in use again: these have entered the tier
// once more. Precondition: poolLock is held.
func (k *Counts) rising(i uintptr) (t tally) {
	t = k.entered(i)
	was := &pool.entered[i&(placementSlots-1)]
	again := tally{
		allocs:     max(less(was.allocs, t.allocs), less(was.frees, t.frees)),
		allocBytes: max(less(was.allocBytes, t.allocBytes), less(was.freeBytes, t.freeBytes)),
	}
	again.free(again.allocs, again.allocBytes)
	t.add(&again)
	pool.count.moves[i&(placementSlots-1)].add(&again)
	*was = t
	return t
}
