package alloc

// A block counts for the tier that its span is in, and a span that moves takes its counts along: so
// what a report says of a tier may fall. Beside that it says what has entered the tier and left it,
// which never falls: blocks that were allocated there and that were freed there, and those that
// have moved in and out. A span of a allocated and f freed blocks that moves takes away a and f of
// the one tier and adds them to the other, where a - f enter:
//
//	entered = allocs + moves.allocs, left = frees + moves.frees
//	entered - left = allocs - frees
//
//	moves[from] += (a, a), moves[to] -= (f, f)

// tally is what the page says of its blocks.
func (p *Page) tally() (t tally) {
	frees, size := p.Frees+p.remoteCount(), uint64(p.Size)
	t.alloc(p.Allocs, p.Allocs*size)
	t.free(frees, frees*size)
	if p.isNursery() {
		t.granules(p)
	}
	return t
}

// forget makes the page one whose blocks are counted elsewhere: all of them are free.
func (p *Page) forget() {
	p.Allocs, p.Frees = 0, -p.remoteCount()
}

// entered is what has entered tier i and left it.
func (k *Counts) entered(i uintptr) (t tally) {
	t = k.tier[i&(placementSlots-1)]
	t.add(&k.pool.huge[i&(placementSlots-1)])
	t.add(&k.zero[i&(placementSlots-1)])
	t.add(&k.pool.moves[i&(placementSlots-1)])
	return t
}

// rising is entered, and never less than it was before. It would be by the freed blocks that waited
// on a thread's list, in a span that was moved, and are in use again: those have entered the tier
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
