package alloc

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A sparse page of small blocks that has rested is cut into runs when the heap grows nevertheless: what lies free between the few blocks in
// use serves requests of any class, as many of its blocks side by side as are needed. Else the survivors of one phase of a program
// would keep all that the phase had from the others; and no memory page of it may be free for a hole.
//
// A page in runs is on no class's list but on its heap's (Heap.runs), until it is empty. It has a table with two bits for each of its
// blocks, here called units: whether it is free, and whether it continues the block that the unit before it belongs to.
// The fast path finds no block in it (Carved 0), but C puts those that their thread frees on a ring from the heap to itself; other threads'
// frees come to Free. Only the owner writes to the bits. A block of a class begins at a multiple of the class's alignment here as well.
//
//	carved = Size·(Allocs - Frees + free units); Free == 0, holes == 0
//	a unit is not both free and a continuation; the unit before a continuation is not free
//	runs.left = Σ free
//
// To count, a run of k units is one block of the largest class that it holds (Heap.ran).
const (
	runUnits   = SliceSize / Granule
	runLeast   = 112     // bytes of a block in a run: with smaller ones it would be calls, not memory, that there are many of
	runLargest = 2 << 10 // larger gaps have gone to the kernel, as holes
	runClasses = 64      // the class of no run is as high: one has at most runWaste·runLargest bytes
	runSmall   = 512     // the largest unit
	runSparse  = 4       // the part of a page that may be in use
	runLook    = 4       // pages that one request looks at
	runWaste   = 2       // times the bytes of its class that a block may take
	runBatch   = 16      // blocks that are cut beside the one that is wanted, or as many
	runBytes   = 4 << 10 // as these bytes hold
	runWorth   = 16      // the part of the pages that is to come free before they are looked through in vain again

	CutInRuns = 2 // Page.Rests
)

func (p *Page) inRuns() bool { return p.Rests == CutInRuns }

func (p *Page) table() *Runs { return (*Runs)(raw.Ptr(uintptr(p.Stamp))) }

// unit is the index of the block at b. For 0 <= off < 2^32, off/size is the upper half of off·divMagic(size).
func (p *Page) unit(b uintptr) uintptr {
	u, _ := bits.Mul64(uint64(b-p.Start), p.Magic)
	return uintptr(u) & (runUnits - 1)
}

// runClass is the class that k units of the page count for, the largest whose blocks they hold.
func (p *Page) runClass(k uintptr) uintptr { return Class(k*p.Size+1) - 1 }

// cutIntoRuns has p, which is on its class's list and not the current one, serve all classes. It reports whether it does.
func (h *Heap) cutIntoRuns(p *Page) bool {
	live, size := p.Allocs-p.Frees, p.Size
	rested := p.Stamp == p.Allocs+p.Frees|restSeen|restDone && p.Trigger != keptEmpty
	sparse := live != 0 && runSparse*live*uint64(size) <= uint64(p.carved)
	if size == 0 || size > runSmall || p.slices != 1 || !rested || !sparse || p.Magic == 0 || p.segment == nil ||
		h.Thread.walk < uintptr(p.blocks) || tiers.AnyThrottled() || p.away() {
		return false
	}
	t := newRuns(h.Thread.token)
	if t == nil {
		return false
	}
	h.Thread.walk -= uintptr(p.blocks)
	all := uint64(p.markFree(t))
	h.unmarkWaiting(p, t)
	if t.left == 0 || all != uint64(t.left)+live {
		h.dropTable(t)
		return false // a block in use has what marks a free one, or the program has written to a free one; or one is on its way here
	}
	t.most, t.Units = runUnits, all
	if h.Self == nil {
		h.Self = h.newRing(h.Thread.token)
	}
	h.unlink(p)
	p.Free, p.holes = 0, 0
	h.enlist(p, t)
	return true
}

// enlist puts p, in runs from now on, on the heap's list with its table.
func (h *Heap) enlist(p *Page, t *Runs) {
	p.Trigger = neverEmpty
	atomic.StoreUint64(&p.Stamp, uint64(uintptr(unsafe.Pointer(t))))
	p.Rests = CutInRuns
	atomic.StoreUint64(&p.Carved, 0) // from now on others look at the table
	p.prev, p.next = nil, h.runs
	if h.runs != nil {
		h.runs.prev = p
	}
	h.runs, h.runPage, h.runAt, h.runMisses = p, p, 0, 0
	h.runPages++
}

// newRuns is a zero table, or nil.
func newRuns(token uintptr) *Runs {
	if !poolLock.Take(token) {
		return nil
	}
	t := pool.freeRuns
	if t != nil {
		pool.freeRuns = t.next
	} else {
		t = (*Runs)(raw.Ptr(metaAlloc(runsBytes)))
	}
	poolLock.Release()
	if t != nil {
		*t = Runs{}
	}
	return t
}

// markFree notes in a zero table which blocks are free: those that are marked so, and those in holes, whose memory is not touched. It returns
// how many blocks there are. To look at one after the other takes half as long as to follow the list.
func (p *Page) markFree(t *Runs) (blocks uintptr) {
	for at := uintptr(0); at < uintptr(p.carved); {
		word, first := uint64(0), blocks
		for bit := uint64(1); bit != 0 && at < uintptr(p.carved); bit <<= 1 {
			if b := p.Start + at; p.inHole(b) || raw.Load(b+8) == FreeKey {
				word |= bit
			}
			at += p.Size
			blocks++
		}
		t.Free[first>>6&(runUnits/64-1)] = word
		t.left += uint32(bits.OnesCount64(word))
	}
	return blocks
}

// unmarkWaiting takes those out of the table that are marked free and still in use to the page p, whoever has freed them: on its remote list, on the
// spill list, on rings.
func (h *Heap) unmarkWaiting(p *Page, t *Runs) {
	left := p.blocks
	for b := atomic.LoadUintptr(&p.Remote) & RemoteAddr; b != 0 && left != 0; b = raw.Load(b) {
		p.unmark(t, b)
		left--
	}
	left = spillMax
	for b := h.Spill[uintptr(p.Class)&(Classes-1)].Head; b != 0 && left != 0; b = raw.Load(b) {
		p.unmark(t, b)
		left--
	}
	for r := h.firstRing(); r != nil; r = r.next {
		for at, tail := atomic.LoadUint64(&r.Head), atomic.LoadUint64(&r.Tail); at < tail; at++ {
			p.unmark(t, r.Slots[at&(RingSlots-1)])
		}
	}
}

func (p *Page) unmark(t *Runs, b uintptr) {
	if Lookup(b) == p && has(&t.Free, p.unit(b)) {
		set(&t.Free, p.unit(b), 1, false)
		t.left--
	}
}

// dropTable keeps a table for the next page. (In a signal handler within the pool it is lost.)
func (h *Heap) dropTable(t *Runs) {
	if poolLock.Take(h.Thread.token) {
		t.next = pool.freeRuns
		pool.freeRuns = t
		poolLock.Release()
	}
}

// uncut takes p, which is about to go to the pool, off the heap's list of pages in runs.
func (h *Heap) uncut(p *Page) {
	if p.next != nil {
		p.next.prev = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		h.runs = p.next
	}
	if h.runPage == p {
		h.runPage, h.runAt = p.next, 0
	}
	if h.nursery == p {
		h.nursery = nil
	}
	h.runPages--
	p.Rests = 0
	h.dropTable(p.table()) // the address stays: somebody may just be about to look (onList)
}

// fromRuns is a block of class c out of a page in runs, of which there is one at least, or 0: it looks at a few pages, from where it stopped before, until
// it has been round in vain; with all set at each page.
func (h *Heap) fromRuns(c uintptr, all bool) uintptr {
	size, look := ClassSize(c), uintptr(runLook)
	switch {
	case size < runLeast || size > runLargest || h.guarded(c):
		return 0
	case all:
		look = h.runPages + 1
	case h.runMisses > h.runPages && size >= h.runMissed:
		return 0
	}
	h.open(c)
	if size < h.runMissed {
		h.runMisses, h.runMissed = 0, size
	}
	for ; look != 0; look-- {
		p := h.runPage
		if p == nil {
			p = h.runs
			h.runPage, h.runAt = p, 0
		}
		if p != h.nursery || all && !tiers.AnyThrottled() {
			if b := h.cutBatch(p, c, size); b != 0 {
				h.runMisses, h.runMissed = 0, runLargest
				return b
			}
		}
		h.runPage, h.runAt = p.next, 0
		h.runMisses++
	}
	return 0
}

// cutBatch takes blocks of class c from the page, from h.runAt on: the first is returned, the
// others go on the class's spill list as far as there is room.
func (h *Heap) cutBatch(p *Page, c, size uintptr) (first uintptr) {
	if size == 0 {
		return 0
	}
	first, h.runAt = h.cutRun(p, c, h.runAt, min(h.Spill[c&(Classes-1)].Room, max(runBatch, runBytes/uint64(size)))+1)
	return first
}

// cutRun takes up to most blocks of class c from the page, from the unit at on, and returns the
// first. The others go on the class's spill list, which has room for them. end is the unit after
// the last.
func (h *Heap) cutRun(p *Page, c, at uintptr, most uint64) (first, end uintptr) {
	t, size := p.table(), ClassSize(c)
	if p.Size == 0 || size == 0 || uintptr(min(t.left, t.most))*p.Size < size || p.away() && p != h.nursery {
		return 0, at
	}
	whole := at == 0
	k := (size + p.Size - 1) / p.Size
	if k*p.Size > runWaste*size {
		return 0, at
	}
	step := max((size&-size)>>(uint(bits.TrailingZeros64(uint64(p.Size)))&63), 1)
	s := &h.Spill[c&(Classes-1)]
	n, last := uint64(0), uintptr(0)
	search := newRunSearch(at, uintptr(t.Units), k, step)
	for ; n < most; n++ {
		u := search.next(t)
		if u == runUnits {
			if whole && n == 0 {
				t.most = min(t.most, uint32(k+step-2))
			}
			break
		}
		t.take(u, k)
		if t.given != 0 {
			t.given &^= memoryPages(u*p.Size, (u+k)*p.Size)
		}
		t.left -= uint32(k)
		p.Allocs += uint64(k)
		b := p.Start + u*p.Size
		if first == 0 {
			first = b
			raw.Store(b+8, 0)
			continue
		}
		raw.Store(b, 0)
		raw.Store(b+8, FreeKey)
		if last == 0 {
			s.Head = b
		} else {
			raw.Store(last, b)
		}
		last = b
		s.Room--
	}
	if n != 0 {
		h.ran.cut(p, c, k, n)
	}
	return first, search.at
}

// freeRun takes back a block of a page in runs of the heap's own.
func (h *Heap) freeRun(p *Page, b uintptr) {
	t, u := p.table(), p.unit(b)
	if has(&t.Free, u) || has(&t.Cont, u) {
		return // freed twice, and written to in between: it was on a ring already
	}
	k := t.unitsOf(u)
	h.ran.freed(p, k)
	h.freeUnits(p, u, k)
	if p.Frees == p.Allocs && (p != h.nursery || p.away()) {
		h.release(p, h.Thread.Now)
	}
}

// runOnSpill is onSpill for a run, which may be there for the class of any size that needs so many units.
func (p *Page) runOnSpill(owner, b uintptr) bool {
	k := p.table().unitsOf(p.unit(b))
	for c := p.runClass(k); ClassSize(c) > (k-1)*p.Size; c-- {
		if heapOf(owner).onSpill(b, c) {
			return true
		}
		if c == 0 {
			break
		}
	}
	return false
}

func (h *Heap) freeUnits(p *Page, u, k uintptr) {
	t := p.table()
	t.give(u, k)
	t.left += uint32(k)
	t.most = runUnits
	p.Frees += uint64(k)
	h.runFreed += k * p.Size
	if h.runFreed >= h.runPages*SliceSize/runWorth {
		h.runFreed, h.runMisses = 0, 0
	}
}

// freeRunRemote gives back a block of another thread's page in runs, by its units, counted in r unless that is nil.
func freeRunRemote(r *runCounts, p *Page, b uintptr) {
	k := p.table().unitsOf(p.unit(b))
	if r != nil {
		r.freedRemote(p, k)
	}
	last := b + (k-1)*p.Size
	for at := b; at != last; at += p.Size {
		raw.Store(at, at+p.Size)
		raw.Store(at+8, FreeKey)
	}
	pushRemote(p, b, last, k)
}

// collectRuns takes back what other threads have freed in the heap's pages in runs, and gives those that are empty to the pool. Of those
// that have rested since it looked last, or with all set of all of them, it gives memory back to the kernel, and returns the bytes.
func (h *Heap) collectRuns(all bool) (given uintptr) {
	for p := h.runs; p != nil; {
		next := p.next
		h.takeUnits(p)
		seen := p.Allocs + p.Frees | restSeen
		switch {
		case p.Frees == p.Allocs:
			h.release(p, h.Thread.Now)
		case p.Trigger == seen || all && p.Trigger != seen|restDone:
			bytes, ok := h.Thread.giveUnits(p)
			given += bytes
			p.Trigger = seen
			if ok {
				p.Trigger = seen | restDone
			}
		case p.Trigger != seen|restDone:
			p.Trigger = seen
		}
		p = next
	}
	return given
}

// takeUnits takes back what other threads have freed in p, a page in runs.
func (h *Heap) takeUnits(p *Page) {
	if !p.takeRemote() {
		return
	}
	for b := p.Free; b != 0; b = raw.Load(b) {
		p.Frees-- // it is counted with its unit
		h.freeUnits(p, p.unit(b), 1)
	}
	p.Free = 0
}

// memoryPages has a bit for each of a span's memory pages that the bytes from at to end, offsets in it, touch.
func memoryPages(at, end uintptr) uint16 {
	return uint16(uint32(2)<<((end-1)>>raw.PageShift&15) - uint32(1)<<(at>>raw.PageShift&15))
}

// giveUnits gives the memory pages of p, in runs, that free units alone touch back to the kernel, and returns the bytes, and whether it has
// looked. Nobody else has to know: the table is elsewhere.
func (t *Thread) giveUnits(p *Page) (bytes uintptr, ok bool) {
	size, table := p.Size, p.table()
	if size == 0 || t.Now < pool.quiet || t.walk < runUnits/64 || !p.mayGiveMemory() {
		return 0, false
	}
	t.walk -= runUnits / 64
	from := uintptr(0) // the first of the memory pages that are to go
	for at := uintptr(0); at <= SliceSize; at += raw.Page {
		first, last := at/size, (at+raw.Page-1)/size
		if at < SliceSize && table.given&memoryPages(at, at+1) == 0 && ones(&table.Free, first, last+1-first) == last+1-first {
			continue
		}
		if at > from {
			if !raw.Discard(p.Start+from, at-from) {
				pool.quiet = t.Now + PurgeDelay // without the lock: a hint
				return bytes, false
			}
			table.given |= memoryPages(from, at)
			bytes += at - from
		}
		from = at + raw.Page
	}
	return bytes, true
}
