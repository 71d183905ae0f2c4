package alloc

// segments: spans tile their segment, and the page map has them as pagemap.go
// says; used and free bytes add up.
func (v *inspection) segments() {
	free := v.binned()
	used, slices := uintptr(0), uintptr(0)
	var before *Page
	spansDo(func(s *segment, a uintptr, p *Page) bool {
		if !v.want(p != nil && p.Start == a && p.slices > 0, "segment at %#x: no span at %#x", s.start, a) {
			return false
		}
		end := a + p.bytes()
		v.want(p.segment == s && end <= s.start+s.slices<<SliceShift, "span %p leaves its segment", p)
		switch p.state {
		case spanInUse:
			used += p.bytes()
			v.entries(p, true)
			v.page(p)
		case spanClean, spanDirty:
			v.want(free[p] == p.state, "span %p in state %d is not in its bin", p, p.state)
			v.want(p.Owner == ownerNone, "free span %p has owner %#x", p, p.Owner)
			v.want(before == nil || before.segment != s || before.state != p.state, "spans %p and %p lie side by side, free", before, p)
			delete(free, p)
			v.entries(p, false)
		default:
			v.want(false, "span %p in state %d", p, p.state)
		}
		before = p
		slices += uintptr(p.slices)
		return v.err == nil
	})
	v.want(slices == pool.segSlices, "spans have %d slices, segments %d", slices, pool.segSlices)
	v.want(len(free) == 0, "%d spans in bins are in no segment", len(free))
	v.want(used == pool.usedBytes, "%d bytes in use, counted %d", used, pool.usedBytes)
	total := uintptr(0)
	var last *segment
	for s := pool.segments; s != nil; s = s.next {
		v.want(s.prev == last, "segment at %#x is linked wrongly", s.start)
		total += s.slices
		last = s
	}
	v.want(total == pool.segSlices, "segments have %d slices, counted %d", total, pool.segSlices)
}

// entries: every slice of a span in use leads to it, of a free one only the ends.
func (v *inspection) entries(p *Page, all bool) {
	last := p.bytes() - SliceSize
	for at := uintptr(0); at <= last; at += SliceSize {
		want := p
		if !all && at != 0 && at != last {
			want = nil
		}
		got := Lookup(p.Start + at)
		if !v.want(got == want, "slice %d of %d of span %p: the map has %p", at>>SliceShift, p.slices, p, got) {
			return
		}
	}
}

// binned are the spans in the pool's bins, with the state of their bin.
func (v *inspection) binned() map[*Page]uint32 {
	free := map[*Page]uint32{}
	for state, b := range map[uint32]*spanBins{spanClean: &pool.clean, spanDirty: &pool.dirty} {
		v.bins(b, func(p *Page) {
			_, twice := free[p]
			v.want(!twice && p.state == state, "span %p in state %d is in a bin of %d, or twice", p, p.state, state)
			free[p] = state
		})
	}
	return free
}

// bins holds one set of bins to what is said above spanBins.
func (v *inspection) bins(b *spanBins, f func(*Page)) {
	for i, head := range b.head {
		marked := b.mask[i>>6]>>(i&63)&1 != 0
		v.want(marked == (head != nil), "bin %d: marked %v, head %p", i, marked, head)
		var last *Page
		for p := head; p != nil && v.err == nil; p = p.next {
			v.want(p.prev == last, "span %p: prev is %p, not %p", p, p.prev, last)
			v.want(binOf(uintptr(p.slices)) == uintptr(i), "a span of %d slices is in bin %d", p.slices, i)
			v.want(i >= exactBins || int(p.slices) == i, "a span of %d slices is in exact bin %d", p.slices, i)
			f(p)
			last = p
		}
	}
}

// pool: the equations of poolState and hugeCache.
func (v *inspection) pool() {
	dirty := uintptr(0)
	var last *Page
	for p := pool.lruHead; p != nil && v.err == nil; p = p.lruNext {
		v.want(p.lruPrev == last && p.state == spanDirty, "span %p in state %d is on the lru list, or linked wrongly", p, p.state)
		dirty += p.bytes()
		last = p
	}
	v.want(pool.lruTail == last, "the lru list ends in %p, not %p", pool.lruTail, last)
	v.want(dirty == pool.dirtyBytes, "%d bytes are dirty, counted %d", dirty, pool.dirtyBytes)
	binned := uintptr(0)
	v.bins(&pool.dirty, func(p *Page) { binned += p.bytes() })
	v.want(binned == dirty, "%d dirty bytes in bins, %d on the lru list", binned, dirty)
	v.want(pool.purging == 0, "%d bytes are being purged", pool.purging)

	huge := v.huge()
	c := &pool.cache
	cached := uintptr(0)
	for i, p := range c.slot[:c.n] {
		v.want(p.state == spanHugeCached && p.Owner == ownerNone, "cached block %d is in state %d", i, p.state)
		v.want(p.Size <= hugeCacheBlock && Lookup(p.Start) == p, "cached block %d of %d bytes", i, p.Size)
		cached += p.Size
	}
	v.want(cached == c.bytes && cached <= hugeCacheMax, "%d bytes are cached, counted %d", cached, c.bytes)
	sum := pool.usedBytes + dirty + pool.purging + huge + cached
	v.want(pool.count.committed == uint64(sum), "committed %d: used %d + dirty %d + huge %d + cached %d = %d",
		pool.count.committed, pool.usedBytes, dirty, huge, cached, sum)
	v.want(pool.count.peak >= pool.count.committed, "the peak is below what is committed")
}

// huge returns the bytes of live huge blocks.
func (v *inspection) huge() (bytes uintptr) {
	blocks := uint64(0)
	var last *Page
	for p := pool.huge; p != nil && v.err == nil; p = p.next {
		v.want(p.prev == last && p.state == spanHuge && p.Owner == OwnerHuge, "huge block %p: state %d, owner %#x", p, p.state, p.Owner)
		v.want(Lookup(p.Start) == p && p.Start&(SliceSize-1) == 0, "huge block %p at %#x: the map has %p", p, p.Start, Lookup(p.Start))
		bytes += p.Size
		blocks++
		last = p
	}
	k := &pool.count
	v.want(blocks == k.hugeAllocs-k.hugeFrees, "%d huge blocks, counted %d", blocks, k.hugeAllocs-k.hugeFrees)
	v.want(uint64(bytes) == k.hugeAllocBytes-k.hugeFreeBytes, "%d huge bytes, counted %d", bytes, k.hugeAllocBytes-k.hugeFreeBytes)
	return bytes
}
