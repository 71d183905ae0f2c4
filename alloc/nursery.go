package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A thread that allocates little would use far more memory for a page of each size class than for
// its blocks: a memory page for each class, which must be faulted in, and a slice that is charged.
// So a young heap serves its first blocks of all small classes from one page, its nursery. Each
// such block costs a call of the slow path, and so does its free. A class that has taken
// nurseryFirst blocks, or nurseryMost if there are many threads, gets pages of its own, but for a
// heap of sampled blocks, which has few of many classes. While there are few threads, there is no
// nursery in a tier with a cap or where addresses are few, because each slice counts there.
//
// A nursery is on no class's list. It counts as a page of class 0, whose blocks are called granules
// here, and has a table of them (granules.go). A block consists of as many consecutive granules as
// its class needs. The fast path finds no block in it (Carved is 0). Frees by other threads take
// the slow path and go on its remote list. A block begins at a multiple of its class's alignment
// here as well.
//
//	carved = Size·(Allocs - Frees + free granules); Free == 0, subreleased == 0
const (
	nurseryFirst   = 4       // blocks of each class
	nurserySmall   = 2 << 10 // and their bytes: larger ones need memory pages of their own anyway
	nurseryMost    = 64      // of heaps after nurseryAfter: the memory of many threads matters more
	nurseryAfter   = 32      // heaps
	nurseryLargest = 8 << 10 // bytes of a block
)

// granule is the index of the granule at b.
func (p *Page) granule(b uintptr) uintptr {
	return (b - p.Start) / sizeclass.Granule & (granuleCount - 1)
}

// young reports whether the heap serves class c from a nursery.
func (h *Heap) young(c uintptr) bool {
	if c >= granuleClasses || sizeclass.Size(c) > nurseryLargest || secure {
		return false
	}
	n := h.nursed[granuleIndex(c)]
	if h.Number > nurseryAfter {
		return n < nurseryMost || h.sampled
	}
	return (n < nurseryFirst && sizeclass.Size(c) <= nurserySmall || h.sampled) &&
		addressLimit == 0 && tiers.Room(homeOf(uintptr(h.Hint)), maxRequest)
}

// rejuvenate makes the heaps of a thread that has ended young again for the next one, if there are
// many: short threads are faster with the pages of those before them.
func (t *Thread) rejuvenate() {
	for h := t.heaps; h != nil; h = h.sibling {
		if h.Number > nurseryAfter {
			h.nursed = [granuleClasses]uint8{}
		}
	}
}

// fromNursery returns a block of class c from the nursery, or 0 if the nursery has no room or there
// is no memory for one.
func (h *Heap) fromNursery(c uintptr) uintptr {
	if h.nursery == nil {
		h.Thread.tick()
		h.newNursery()
	}
	p := h.nursery
	if p == nil {
		return 0
	}
	h.nursed[granuleIndex(c)]++
	h.takeNurseryRemote(p)
	size, t := sizeclass.Size(c), p.table()
	k := size / sizeclass.Granule
	u := t.find(k, (size&-size)/sizeclass.Granule)
	if u == granuleCount {
		return 0
	}
	h.open(c)
	t.take(u, k)
	p.Allocs += uint64(k)
	h.granules.took(p, k)
	b := p.Start + u*sizeclass.Granule
	raw.Store(b+8, 0)
	return b
}

// newNursery takes a page for the nursery, if there is memory. Like any page it may be in another
// tier than the hint's, if that has no room.
func (h *Heap) newNursery() {
	h.Thread.capped = false
	if poolLock.Refuses(h.Thread.token) { // an emergency span could not be returned
		return
	}
	t := newGranuleTable(h.Thread.token)
	if t == nil {
		return
	}
	p := h.spanAlloc(1, 1)
	if p == nil {
		t.drop(h.Thread.token)
		return
	}
	h.setUp(p, 0, 1)
	if p.zero != 0 {
		t.given = ^uint16(0)
	}
	p.carved, p.zero = SliceSize, 0
	p.disarm()
	p.setTable(t)
	p.role = roleNursery
	p.prev, p.next = nil, nil
	mapFill(p, p) // from now on others can find it
	h.nursery = p
	h.Thread.migrate()
}

// endNursery ends the nursery, whose page is about to return to the pool.
func (h *Heap) endNursery() {
	p := h.nursery
	h.nursery = nil
	p.role = 0
	p.table().drop(h.Thread.token) // the address stays valid: another thread may read it (isFree)
}

// freeNursery frees a block of the heap's nursery.
func (h *Heap) freeNursery(p *Page, b uintptr) {
	t, u := p.table(), p.granule(b)
	k := t.granulesOf(u)
	h.granules.gave(p, k)
	t.give(u, k)
	raw.Store(b+8, FreeKey) // for another thread that frees it again
	p.Frees += uint64(k)
	if p.Frees == p.Allocs && p.away() {
		h.release(p, h.Thread.Now)
	}
}

// freeNurseryRemote frees a block of another thread's nursery, granule by granule, and counts it in
// r unless that is nil.
func freeNurseryRemote(r *granuleCounts, p *Page, b uintptr) {
	k := p.table().granulesOf(p.granule(b))
	if r != nil {
		r.gaveRemote(p, k)
	}
	last := b + (k-1)*sizeclass.Granule
	for at := b; at != last; at += sizeclass.Granule {
		raw.Store(at, at+sizeclass.Granule)
		raw.Store(at+8, FreeKey)
	}
	pushRemote(p, b, last, k)
}

// takeNurseryRemote takes back the granules that other threads have freed in the nursery.
func (h *Heap) takeNurseryRemote(p *Page) {
	if !p.takeRemote() {
		return
	}
	t := p.table()
	for b := p.Free; b != 0; b = raw.Load(b) {
		t.give(p.granule(b), 1)
	}
	p.Free = 0
}

// collectNursery takes back the granules that other threads have freed, and returns the nursery to
// the pool if it is empty. If the nursery has rested since the last call, or with all set, it
// returns unused memory to the kernel. It returns the bytes.
func (h *Heap) collectNursery(all bool) (given uintptr) {
	p := h.nursery
	if p == nil {
		return 0
	}
	h.takeNurseryRemote(p)
	now, last := p.counts(), p.nurseryRest()
	switch {
	case p.Frees == p.Allocs:
		h.release(p, h.Thread.Now)
	case last == now || all && last != now|restDone:
		bytes, ok := h.Thread.trimNursery(p)
		given = bytes
		if ok {
			now |= restDone
		}
		p.setNurseryRest(now)
	case last != now|restDone:
		p.setNurseryRest(now)
	}
	return given
}

// trimNursery returns the free memory pages of a nursery to the kernel. It returns the bytes, and
// whether it examined the nursery. No other code needs to know, because the table is not in these
// pages.
func (t *Thread) trimNursery(p *Page) (bytes uintptr, ok bool) {
	table := p.table()
	if t.Now < pool.quiet || !p.mayGiveMemory() {
		return 0, false
	}
	from := uintptr(0) // the first of the memory pages to return
	for at := uintptr(0); at <= SliceSize; at += raw.Page {
		const most = raw.Page / sizeclass.Granule
		if at < SliceSize && table.given&memoryPages(at, at+1) == 0 &&
			table.free.ones(at/sizeclass.Granule, most) == most {
			continue
		}
		if at > from {
			if !p.discard(p.Start+from, at-from) {
				pool.quiet = t.Now + PurgeDelay // without the lock: an approximate value
				return bytes, false
			}
			table.given |= memoryPages(from, at)
			bytes += at - from
		}
		from = at + raw.Page
	}
	return bytes, true
}

// took corrects the counts of p for a block of k granules that was handed out.
func (r *granuleCounts) took(p *Page, k uintptr) {
	r.allocs[granuleIndex(sizeclass.Of(k*sizeclass.Granule))]++
	r.allocs[0] -= uint64(k)
	p.table().allocs += 1 - uint64(k)
}

// gave corrects them for a block that the page's owner has freed.
func (r *granuleCounts) gave(p *Page, k uintptr) {
	r.freed(k)
	p.table().frees += 1 - uint64(k)
}

// gaveRemote corrects them for a block that another thread frees.
func (r *granuleCounts) gaveRemote(p *Page, k uintptr) {
	r.freed(k)
	atomic.AddUint64(&p.table().remote, 1-uint64(k))
}

func (r *granuleCounts) freed(k uintptr) {
	r.frees[granuleIndex(sizeclass.Of(k*sizeclass.Granule))]++
	r.frees[0] -= uint64(k)
}
