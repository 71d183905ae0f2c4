package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A hugeCache has freed huge blocks:
//
//	bytes = Σ Size of slot[0:n]
//
// They go back to the kernel by age, as spans do, and at once when there are more than
// hugeCacheMax bytes, or than limitMost. Once such memory was wanted again, more may stay, as of
// spans (feedback in purge.go).
//
// Where the newest block is twice as large as one that is freed, as that of a table which has moved
// to have room to double, the second rule of purging is for them, too (purge.go): the table will
// soon use all of its block, and what it left is too small for its next one.
const (
	hugeCacheSlots = 256
	hugeCacheMax   = 64<<20 + SliceSize // a block of 64 MiB, and what lies before it
	hugeCacheLeast = 1 << 20            // smaller remainders of a block are not kept
)

type hugeCache struct {
	slot  [hugeCacheSlots]*Page
	n     uintptr
	bytes uintptr
}

// put keeps a block that is in no list. Precondition: poolLock is held; there is a slot.
func (c *hugeCache) put(p *Page) {
	c.slot[c.n&(hugeCacheSlots-1)] = p
	c.n++
	c.bytes += p.Size
}

func (c *hugeCache) remove(i uintptr) *Page {
	p := c.slot[i&(hugeCacheSlots-1)]
	c.n--
	c.slot[i&(hugeCacheSlots-1)] = c.slot[c.n&(hugeCacheSlots-1)]
	c.bytes -= p.Size
	return p
}

// smallest is the slot of the smallest block of a placement with at least so many bytes, at a
// multiple of grain, or hugeCacheSlots.
func (c *hugeCache) smallest(placement, size, grain uintptr) uintptr {
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if p.Size >= size && uintptr(p.placement) == placement && p.Start&(grain-1) == 0 &&
			(best == hugeCacheSlots || p.Size < c.slot[best&(hugeCacheSlots-1)].Size) {
			best = i
		}
	}
	return best
}

// largest is the slot of the largest block of a placement that has at most so many parts, at a
// multiple of grain and at least that large, or hugeCacheSlots.
func (c *hugeCache) largest(placement, parts, grain uintptr) uintptr {
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if uintptr(p.placement) == placement && (best == hugeCacheSlots ||
			p.Size > c.slot[best&(hugeCacheSlots-1)].Size) &&
			p.Start&(grain-1) == 0 && p.Size >= grain && p.extents() <= parts {
			best = i
		}
	}
	return best
}

// index is the slot of a block, or hugeCacheSlots if it is not cached.
func (c *hugeCache) index(p *Page) uintptr {
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		if c.slot[i] == p {
			return i
		}
	}
	return hugeCacheSlots
}

// neighbour is the slot of a block that can be one with p, or hugeCacheSlots.
func (c *hugeCache) neighbour(p *Page) uintptr {
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		if q := c.slot[i]; joinsHuge(p, q) || joinsHuge(q, p) {
			return i
		}
	}
	return hugeCacheSlots
}

// shrink takes n bytes off the end of a block. Precondition: poolLock is held.
func (c *hugeCache) shrink(p *Page, n uintptr) {
	p.Size -= n
	c.bytes -= n
	dropExtents(p.extentsFrom(p.Start + p.Size))
}

// oldest is the slot of the block of a placement, or of anyPlacement, with at least so many bytes
// that was freed first, or hugeCacheSlots.
func (c *hugeCache) oldest(placement, size uintptr) uintptr {
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if placement != anyPlacement && placement != uintptr(p.placement) || p.Size < size {
			continue
		}
		if best == hugeCacheSlots || p.freeSince() < c.slot[best&(hugeCacheSlots-1)].freeSince() {
			best = i
		}
	}
	return best
}

// hugeCached takes the smallest cached mapping of the placement that fits and begins at a multiple
// of align (0 or a power of two), or returns nil. A much larger one is cut to size, and the rest is
// cached: from the next multiple of a huge page on if the bytes between, which then stay with the
// block, are few and the tier has no limit.
func hugeCached(token uintptr, hint uint32, size, align, placement uintptr) *Page {
	c := &pool.cache
	if c.n == 0 || !poolLock.Take(token) {
		return nil
	}
	best := c.smallest(placement, size, max(align, SliceSize))
	if best == hugeCacheSlots {
		poolLock.Release()
		return nil
	}
	p := c.remove(best)
	pool.count.hugeHits++
	rest := p.Size - size
	if rest <= size/4 {
		rest = 0
	}
	if between := raw.RoundUp(p.Start+size, huge2M) - p.Start - size; between <= size/8 &&
		rest >= between+hugeCacheLeast && tiers.Room(tierOf(p.placement), maxRequest) {
		rest -= between
	}
	if rest >= hugeCacheLeast && cacheRest(p, rest) {
		p.Size -= rest
		rest = 0
	}
	p.Size -= rest
	hugeLink(p, hint, uint32(homeOf(uintptr(hint))))
	end, in := p.Start+p.Size, p.placement
	dropExtents(p.extentsFrom(end))
	pool.leaving += rest
	poolLock.Release() // from now on p may be moved
	if rest != 0 {
		hugeGone(token, end, rest, in)
	}
	return p
}

// cacheRest keeps the last n bytes of the block of p, whose Size is the caller's to change, as a
// block of their own, or reports false; always over the soft cap, under which they count.
// Precondition: poolLock is held.
func cacheRest(p *Page, n uintptr) bool {
	end := p.Start + p.Size - n
	if pool.cache.n >= hugeCacheSlots || tiers.Excess(tierOf(p.placement)) != 0 ||
		!mapReserve(end, SliceSize) {
		return false
	}
	q := p.extentsFrom(end)
	if q != nil && q.Start == end {
		pool.extents--
		q.role = 0
	} else {
		parts := q
		if q = newDescriptor(); q == nil {
			p.lastExtent().setNextExtent(parts)
			return false
		}
		q.setNextExtent(parts)
		q.role = roleCut
	}
	q.Owner, q.Magic, q.state = ownerNone, 0, spanHugeCached
	q.Start, q.Size, q.placement = end, n, p.placement
	q.setFreeSince(p.freeSince())
	q.unmigrated, q.pages, q.moving, q.done, q.segment = 0, p.pages, 0, 0, nil
	q.setParts(nil)
	mapSet(end, q)
	pool.cache.put(q)
	return true
}

// growthHuge makes a cached block of p's placement a block of at least size bytes with the hint of
// p: the first bytes of the largest one if there are as many behind them, which stay cached;
// otherwise, with fit set, the smallest one that fits. It returns nil if there is no such block.
func growthHuge(token uintptr, p *Page, size uintptr, fit bool) *Page {
	c := &pool.cache
	if !poolLock.Take(token) {
		return nil
	}
	i := c.largest(uintptr(p.placement), 1, SliceSize)
	if i >= hugeCacheSlots || c.slot[i].Size < 2*size {
		i = hugeCacheSlots
		if fit {
			i = c.smallest(uintptr(p.placement), size, SliceSize)
		}
	}
	q := (*Page)(nil)
	if i < hugeCacheSlots {
		q = c.remove(i)
		rest := q.Size - size
		if rest >= min(size, hugeCacheLeast) && cacheRest(q, rest) {
			q.Size = size
		}
		if q.Size > 2*size {
			c.put(q)
			q = nil
		}
	}
	if q != nil {
		pool.count.hugeHits++
		hugeLink(q, p.Hint, p.home)
	}
	poolLock.Release()
	return q
}

// absorb lengthens the block of p, which is held, by cached memory behind it, to at most size
// bytes. It reports whether there was any.
func (p *Page) absorb(token, size uintptr) bool {
	if p.nextExtent() != nil || p.done != 0 || p.parts() != nil || p.reserved() ||
		!poolLock.Take(token) {
		return false
	}
	q, c, n := Lookup(p.Start+p.Size), &pool.cache, uintptr(0)
	i := c.index(q)
	if i != hugeCacheSlots && q.placement == p.placement && q.nextExtent() == nil &&
		(q.pages == transparent) == (p.pages == transparent) {
		n = min(size-p.Size, q.Size)
	}
	switch {
	case n == 0:
	case n == q.Size:
		c.remove(i)
		mapSet(q.Start, nil)
		freeDescriptor(q)
	case mapReserve(q.Start+n, SliceSize):
		mapSet(q.Start, nil)
		q.Start += n
		q.Size -= n
		c.bytes -= n
		mapSet(q.Start, q)
	default:
		n = 0
	}
	if n != 0 {
		if p.pages == sampledPages {
			p.pages = systemPages // what is new was not looked at
		}
		p.Size += n
		pool.count.huge[tierOf(p.placement)].alloc(0, uint64(n))
	}
	poolLock.Release()
	return n != 0
}

// hugeFreed caches the block of p, for which those that were cached for longest make room, or
// unmaps it. poolLock is held, and let go for that.
func hugeFreed(token uintptr, p *Page) {
	hugeUnlink(p)
	p.joinParts()
	c := &pool.cache
	if secure {
		park(token, p)
		return
	}
	if purgeDelay() == 0 || p.unmigrated != 0 || p.reserved() || p.Start&(SliceSize-1) != 0 {
		countPressed(p.Size)
		hugeUnmap(token, p)
		return
	}
	for i := c.neighbour(p); i != hugeCacheSlots; i = c.neighbour(p) {
		p = joinHuge(p, c.remove(i))
	}
	most := min(max(hugeCacheMax, pool.feedback.wanted), limitMost())
	for c.n >= hugeCacheSlots || c.n != 0 && c.bytes+p.Size > most {
		c.purgeOldest(token, p.freeSince())
	}
	if c.bytes+p.Size > most {
		pool.feedback.purgedEarly(p.freeSince(), p.Size)
		hugeUnmap(token, p)
		return
	}
	c.put(p)
	// nearly twice: both sizes are rounded
	if newest := pool.huge.head; newest != nil && newest.Size/2 > p.Size/8*7 {
		c.purgeAmount(token, p.freeSince())
	}
}

// purgeAmount unmaps the blocks that were cached for longest while more is cached at now than the
// second rule of purging allows for the huge blocks in use. poolLock is held, and let go for that.
func (c *hugeCache) purgeAmount(token uintptr, now uint64) {
	for c.n != 0 && c.bytes > amountReserve(uintptr(hugeLive()))+pool.feedback.wanted {
		c.purgeOldest(token, now)
	}
}

// purgeOldest unmaps the block that was cached for longest, before its delay. poolLock is held, and
// let go for that.
func (c *hugeCache) purgeOldest(token uintptr, now uint64) {
	p := c.remove(c.oldest(anyPlacement, 0))
	pool.feedback.purgedEarly(now, p.Size)
	hugeUnmap(token, p)
}

// joinsHuge reports whether the freed huge block of b was cut off that of a, and can be one with it
// again. Mappings that were made apart stay so for the kernel, even side by side: they do not move
// together.
func joinsHuge(a, b *Page) bool {
	return a.Start+a.Size == b.Start && b.role == roleCut && a.placement == b.placement &&
		a.nextExtent() == nil && b.nextExtent() == nil &&
		(a.pages == transparent) == (b.pages == transparent) &&
		a.Size+b.Size <= hugeCacheMax
}

// joinHuge makes one block of p and q, neighbours that are in no list. It is as old as the older.
func joinHuge(p, q *Page) *Page {
	since := min(p.freeSince(), q.freeSince())
	if q.Start < p.Start {
		p, q = q, p
	}
	p.Size += q.Size
	p.setFreeSince(since)
	mapSet(q.Start, nil)
	freeDescriptor(q)
	return p
}

// hugeExpire unmaps the cached blocks of a placement that are past their delay, or all of
// them.
func hugeExpire(token uintptr, now uint64, placement uintptr, all bool) (done uintptr) {
	if pool.cache.n == 0 || !poolLock.Take(token) {
		return 0
	}
	for i := uintptr(0); i < hugeCacheSlots && i < pool.cache.n; {
		p := pool.cache.slot[i&(hugeCacheSlots-1)]
		if !all && now < p.freeSince()+purgeDelay() ||
			placement != anyPlacement && placement != uintptr(p.placement) {
			i++
			continue
		}
		pool.cache.remove(i)
		done += p.Size
		if !all {
			pool.feedback.purgedLate(p.Size)
		}
		hugeUnmap(token, p)
	}
	poolLock.Release()
	countPressed(done)
	return done
}
