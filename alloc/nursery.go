package alloc

// A page for each size class costs a thread that allocates a little far more than its blocks have:
// a memory page for each class that it touches, and a slice to be charged. So where there are many
// threads, a young heap serves its first blocks of all small classes from one page in runs
// (runs.go), its nursery. Each such block costs a call of the slow path. A class that has taken
// nurseryMost of them gets pages of its own.
//
//	nursery is on the heap's list of pages in runs, or nil
const (
	nurseryAfter   = 32      // heaps that are made without: where there are few, what each of them has does not matter
	nurseryMost    = 64      // blocks of each class
	nurseryLargest = 8 << 10 // bytes of a block
)

// young reports whether the heap has a nursery, and it serves class c.
func (h *Heap) young(c uintptr) bool { return h.Number > nurseryAfter && h.nurses(c) }

func (h *Heap) nurses(c uintptr) bool {
	return c < runClasses && h.nursed[c&(runClasses-1)] < nurseryMost && ClassSize(c) <= nurseryLargest && !secure
}

// rejuvenate makes the heaps of a thread that ended young for the next one.
func (t *Thread) rejuvenate() {
	for _, h := range t.Heaps {
		if h != nil {
			h.nursed = [runClasses]uint8{}
		}
	}
}

// fromNursery is a block of class c out of the nursery, or 0 where it has no room or there is no
// memory for one.
func (h *Heap) fromNursery(c uintptr) uintptr {
	if h.nursery == nil {
		h.Thread.tick()
		h.newNursery()
	}
	p := h.nursery
	if p == nil {
		return 0
	}
	h.nursed[c&(runClasses-1)]++
	h.takeUnits(p)
	b, _ := h.cutRun(p, c, 0, 1)
	return b
}

// newNursery takes a page for the nursery, where it can. Like any page that a class allocates from
// it may lie in another tier than the hint's, where that has no room.
func (h *Heap) newNursery() {
	h.Thread.capped = false
	if poolLock.Refuses(h.Thread.token) { // a page without the pool could not be given back
		return
	}
	t := newRuns(h.Thread.token)
	if t == nil {
		return
	}
	p := h.spanAlloc(1)
	if p == nil {
		h.dropTable(t)
		return
	}
	h.setUp(p, 0, 1)
	t.markAll(uintptr(p.blocks))
	if p.zero != 0 {
		t.given = ^uint16(0)
	}
	p.carved, p.zero = uint32(p.Size)*p.blocks, 0
	h.enlist(p, t)
	mapFill(p, p) // from now on others can find it
	h.nursery = p
	h.Thread.migrate()
}

// markAll makes all units of a zero table free.
func (t *Runs) markAll(units uintptr) {
	set(&t.Free, 0, units, true)
	t.left, t.most, t.Units = uint32(units), uint32(units), uint64(units)
}
