package alloc

import "tieralloc/internal/raw"

// segments: spans tile their segment, and the page map has them as pagemap.go
// says; used and free bytes add up.
func (v *inspection) segments() {
	free := v.binned()
	used, slices, splits := uintptr(0), uintptr(0), uintptr(0)
	var before *Page
	spansDo(func(s *segment, a uintptr, p *Page) bool {
		if !v.want(p != nil && p.spanStart() == a && (p.Start == a || p.state == spanInUse) &&
			p.slices > 0, "segment at %#x: no span at %#x", s.start, a) {
			return false
		}
		end := a + p.bytes()
		v.want(p.segment == s && end <= s.start+s.slices<<SliceShift, "span %p leaves its segment",
			p)
		switch p.state {
		case spanInUse:
			used += p.bytes()
			v.aged(p)
			v.entries(p, true)
			v.summary(p)
			if p.Owner == OwnerHuge {
				v.hugeSpan(p)
			} else {
				v.page(p)
			}
		case spanClean, spanDirty:
			v.want(free[p] == p.state, "span %p in state %d is not in its bin", p, p.state)
			v.want(p.Owner == ownerNone, "free span %p has owner %#x", p, p.Owner)
			v.want(before == nil || before.segment != s || before.state != p.state ||
				before.placement != p.placement, "spans %p and %p lie side by side, free", before,
				p)
			delete(free, p)
			v.entries(p, false)
			v.want(summaryOf(a) == 0, "free span %p is summed up", p)
		default:
			v.want(false, "span %p in state %d", p, p.state)
		}
		if before != nil && before.segment == s && before.placement != p.placement {
			splits++
		}
		before = p
		slices += uintptr(p.slices)
		return v.err == nil
	})
	v.want(slices == pool.segSlices, "spans have %d slices, segments %d", slices, pool.segSlices)
	v.want(splits == pool.vmaSplits, "%d neighbours lie in different placements, counted %d",
		splits, pool.vmaSplits)
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
		got := Lookup(p.spanStart() + at)
		if !v.want(got == want, "slice %d of %d of span %p: the map has %p", at>>SliceShift,
			p.slices, p, got) {
			return
		}
	}
}

// summary: it says what the page does.
func (v *inspection) summary(p *Page) {
	if w := summaryOf(p.Start); w != 0 {
		v.want(p.summed() && p.Owner&OwnerFull != 0 &&
			w == p.summary(), "page %p, owner %#x, has the summary %#x, not %#x", p, p.Owner, w,
			p.summary())
		v.summaries++
	}
}

// binned are the spans in the pool's bins, with the state of their bin.
func (v *inspection) binned() map[*Page]uint8 {
	free := map[*Page]uint8{}
	for i := range pool.freeSpans {
		s := &pool.freeSpans[i]
		for state, b := range map[uint8]*spanBins{spanClean: &s.clean, spanDirty: &s.dirty} {
			v.bins(b, func(p *Page) {
				_, twice := free[p]
				v.want(!twice && p.state == state,
					"span %p in state %d is in a bin of %d, or twice", p, p.state, state)
				v.want(p.placement == uint32(i) &&
					p.unmigrated == 0,
					"span %p of placement %d, %d unmigrated pages, is in a bin of placement %d",
					p,
					p.placement, p.unmigrated, i)
				free[p] = state
			})
		}
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
			v.want(binOf(uintptr(p.slices)) == uintptr(i), "a span of %d slices is in bin %d",
				p.slices, i)
			v.want(i >= exactBins || int(p.slices) == i, "a span of %d slices is in exact bin %d",
				p.slices, i)
			f(p)
			last = p
		}
	}
}

// free span sets: the equations of freeSpanSet. It returns the dirty bytes.
func (v *inspection) freeSpanSets() (dirty uintptr) {
	for i := range pool.freeSpans {
		s := &pool.freeSpans[i]
		granularity := hugePageSlices(uintptr(i)) << SliceShift
		listed, binned := map[*Page]bool{}, uintptr(0)
		v.ageList(&pool.oldest[i], func(p *Page) {
			v.want(p.state == spanDirty && purgeable(p),
				"span %p in state %d is on a list of what can be purged", p, p.state)
			listed[p] = true
		})
		v.bins(&s.dirty, func(p *Page) {
			binned += p.bytes()
			v.want(listed[p] == purgeable(p), "dirty span %p: on the list by age %v", p, listed[p])
		})
		v.bins(&s.clean, func(p *Page) {
			v.want(p.Start&(granularity-1) == 0 && p.bytes()&(granularity-1) == 0,
				"clean span %p at %#x is no multiple of %d", p, p.Start, granularity)
		})
		v.want(
			binned == s.dirtyBytes,
			"%d dirty bytes in bins of placement %d, counted %d",
			binned,
			i,
			s.dirtyBytes,
		)
		dirty += binned
	}
	v.want(dirty == pool.dirtyBytes, "%d bytes are dirty, counted %d", dirty, pool.dirtyBytes)
	v.want(pool.feedback.wanted <= uintptr(pool.count.peak),
		"%d bytes are wanted, at a peak of %d", pool.feedback.wanted, pool.count.peak)
	v.want(pool.trimFeedback.wanted <= trimWantedMost(),
		"%d bytes are wanted after trims, at a peak of %d", pool.trimFeedback.wanted,
		pool.count.peak)
	return dirty
}

// ageList follows a list by age.
func (v *inspection) ageList(l *ageList, f func(*Page)) {
	var last *Page
	for p := l.head; p != nil && v.err == nil; p = p.ageNext {
		v.want(p.agePrev == last, "span %p on a list by age: the one before is %p, not %p", p,
			p.agePrev, last)
		f(p)
		last = p
	}
	v.want(l.tail == last, "a list by age ends in %p, not %p", l.tail, last)
}

// aged: a span in use is on the list that age.go says, and charged as it says.
func (v *inspection) aged(p *Page) {
	v.want(p.list == listFor(p), "span %p is on list %d, not %d", p, p.list, listFor(p))
	v.want(p.moving == 0, "span %p is held: %#x", p, p.moving)
	v.want(
		p.unmigrated == 0 || p.unmigratedIn != p.placement,
		"span %p has unmigrated pages in its own placement",
		p,
	)
	bytes := uint64(spanBytes(p))
	unmigrated := uint64(p.unmigrated) * raw.Page
	v.want(
		unmigrated <= bytes,
		"span %p of %d bytes has %d unmigrated pages",
		p,
		bytes,
		p.unmigrated,
	)
	v.charged[tierOf(p.placement)] += bytes - unmigrated
	v.charged[tierOf(p.unmigratedIn)] += unmigrated
	v.inUse[p] = true
}

// lists: every span in use is on a list by age, once, and nothing else.
func (v *inspection) lists() {
	seen, away := 0, uint64(0)
	for i := range pool.aged {
		v.ageList(&pool.aged[i], func(p *Page) {
			v.want(v.inUse[p] && p.list == uint16(i), "span %p on list %d says %d; in use: %v", p,
				i, p.list, v.inUse[p])
			seen++
			away += uint64(i & 1)
		})
	}
	v.want(away == pool.away, "%d spans are away, counted %d", away, pool.away)
	v.want(seen == len(v.inUse), "%d spans are in use, %d on lists by age", len(v.inUse), seen)
}

// pool: the equations of poolState, hugeCache and placement.go.
func (v *inspection) pool() {
	dirty := v.freeSpanSets()
	for i := range pool.freeSpans {
		v.charged[tierOf(uint32(i))] += uint64(pool.freeSpans[i].dirtyBytes)
	}
	v.want(pool.purging == 0 && pool.leaving == 0, "%d bytes are being purged, %d are leaving",
		pool.purging, pool.leaving)
	v.want(pool.migrationPins.used == 0, "spans are held: %#x", pool.migrationPins.used)

	huge := v.huge()
	v.lists()
	c := &pool.cache
	cached := uintptr(0)
	for i, p := range c.slot[:c.n] {
		v.want(p.state == spanHugeCached && p.Owner == ownerNone &&
			p.unmigrated == 0, "cached block %d is in state %d", i, p.state)
		v.want(Lookup(p.Start) == p, "cached block %d of %d bytes", i, p.Size)
		v.extents(p)
		cached += p.Size
		v.charged[tierOf(p.placement)] += uint64(p.Size)
	}
	v.want(cached == c.bytes, "%d bytes are cached, counted %d", cached, c.bytes)
	v.want(uintptr(v.extra) == pool.extents, "%d parts beyond the first, counted %d", v.extra,
		pool.extents)
	lost := uintptr(0)
	for tier, n := range pool.lost {
		lost += n
		v.charged[tier] += uint64(n)
	}
	sum := pool.usedBytes + dirty + pool.purging + huge + cached + lost
	v.want(pool.count.committed == uint64(sum),
		"committed %d: used %d + dirty %d + huge %d + cached %d + lost %d = %d",
		pool.count.committed, pool.usedBytes, dirty, huge, cached, lost, sum)
	v.want(pool.count.peak >= pool.count.committed, "the peak is below what is committed")
	if alone.pages == 0 && alone.threads == 0 {
		for tier, t := range tierFigures() {
			v.want(t.BytesCurrent == v.charged[tier], "tier %d is charged with %d bytes, holds %d",
				tier, t.BytesCurrent, v.charged[tier])
			v.want(t.CapacityHard == 0 || t.BytesPeak <= t.CapacityHard,
				"tier %d had %d bytes, more than its hard cap of %d", tier, t.BytesPeak,
				t.CapacityHard)
		}
	}
}

// huge returns the bytes of live huge blocks.
func (v *inspection) huge() (bytes uintptr) {
	listed, last := uint64(0), (*Page)(nil)
	for p := pool.huge.head; p != nil && v.err == nil; p = p.pendNext {
		v.want(p.state == spanHuge && p.prev == last,
			"huge block %p in state %d: the one before is %p, not %p", p, p.state, p.prev, last)
		last = p
		listed++
	}
	var blocks, size [placementSlots]uint64
	for i := range pool.aged {
		v.ageList(&pool.aged[i], func(p *Page) {
			if p.segment != nil && p.state == spanInUse {
				return
			}
			v.want(p.state == spanHuge && p.Owner == OwnerHuge,
				"huge block %p: state %d, owner %#x", p, p.state, p.Owner)
			v.want(Lookup(p.Start) == p && p.Start&(raw.Page-1) == 0,
				"huge block %p at %#x: the map has %p", p, p.Start, Lookup(p.Start))
			v.aged(p)
			v.extents(p)
			bytes += p.Size
			there := p.elsewhere(p.Size)
			v.want(p.done == 0 || p.unmigrated != 0 && there < p.Size,
				"huge block %p of %d bytes: %d slices are in its first part, %d pages of them", p,
				p.Size, p.done, p.unmigrated)
			v.parts(p)
			blocks[tierOf(p.placementAt(0))]++
			size[tierOf(p.unmigratedIn)] += uint64(there)
			size[tierOf(p.placement)] += uint64(p.Size - there)
		})
	}
	for i := range pool.count.huge {
		k := &pool.count.huge[i]
		listed -= blocks[i]
		blocks[i] += v.hugeSpans[i].blocks
		size[i] += v.hugeSpans[i].bytes
		v.want(blocks[i] == k.allocs-k.frees, "%d huge blocks in tier %d, counted %d", blocks[i], i,
			k.allocs-k.frees)
		v.want(size[i] == k.allocBytes-k.freeBytes, "%d huge bytes in tier %d, counted %d", size[i],
			i, k.allocBytes-k.freeBytes)
	}
	v.want(listed == 0, "the list of huge blocks has %d more than there are", int64(listed))
	return bytes
}

// hugeSpan: a huge block in a span.
func (v *inspection) hugeSpan(p *Page) {
	v.want(p.bytes() <= hugeSpanMost+SliceSize && p.Size+p.lead() == p.bytes() && p.blocks == 1 &&
		p.Gap == 0 && p.Magic == 0 && p.Free|p.Remote == 0 && p.Allocs|p.Frees == 0 &&
		p.Carved == 0 && p.subreleased == 0 && p.done == 0 && p.parts() == nil,
		"huge block of %d bytes in the span %p of %d", p.Size, p, p.bytes())
	v.hugeSpans[tierOf(p.placement)].blocks++
	v.hugeSpans[tierOf(p.placement)].bytes += uint64(p.bytes())
}

// parts: the equations of parts.go.
func (v *inspection) parts(p *Page) {
	m := p.parts()
	if m == nil {
		return
	}
	v.want(p.done == 0 && p.unmigratedIn < p.placement && !p.reserved(),
		"block %p with parts: done %d, in %d and %d", p, p.done, p.unmigratedIn, p.placement)
	sum, last := uintptr(0), m.index(p.Size-1)
	for i := range uintptr(partsMost) {
		if m.has(i) {
			v.want(i <= last, "block %p has no part %d", p, i)
			sum += min(m.bytes(), p.Size-i*m.bytes())
		}
	}
	v.want(sum == p.elsewhere(p.Size), "block %p: parts of %d bytes, not %d", p, sum,
		p.elsewhere(p.Size))
}

// extents: the equation of coalesce.go.
func (v *inspection) extents(p *Page) {
	n, last := 1, p.Start
	for q := p.next; q != nil && n <= hugeExtents; q = q.next {
		v.want(q.Start > last && q.Start < p.Start+p.Size,
			"part %d of %#x, %d bytes, is at %#x behind %#x", n, p.Start, p.Size, q.Start, last)
		last = q.Start
		n++
	}
	v.want(n <= hugeExtents, "%d parts", n)
	v.extra += n - 1
}
