package alloc

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A hugeCache has freed huge blocks:
//
//	bytes = Σ Size of slot[0:n]
//
// They go back to the kernel by age, as spans do, and at once when there are more than
// hugeCacheMax bytes, or as many more as were missed (lesson).
const (
	hugeCacheSlots = 64
	hugeCacheMax   = 64 << 20
	hugeCacheLeast = 1 << 20 // what is cut off a block and less is not kept
)

type hugeCache struct {
	slot  [hugeCacheSlots]*Page
	n     uintptr
	bytes uintptr
	lesson
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

// smallest is the slot of the smallest block of a place with at least so many bytes, or
// hugeCacheSlots.
func (c *hugeCache) smallest(place, size uintptr) uintptr {
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if p.Size >= size && uintptr(p.place) == place && (best == hugeCacheSlots || p.Size < c.slot[best&(hugeCacheSlots-1)].Size) {
			best = i
		}
	}
	return best
}

// largest is the slot of the largest block of a place, or hugeCacheSlots.
func (c *hugeCache) largest(place uintptr) uintptr {
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if uintptr(p.place) == place && (best == hugeCacheSlots || p.Size > c.slot[best&(hugeCacheSlots-1)].Size) {
			best = i
		}
	}
	return best
}

// shrink takes n bytes off the end of a block.
func (c *hugeCache) shrink(p *Page, n uintptr) {
	p.Size -= n
	c.bytes -= n
}

// oldest is the slot of the block of a place, or of anyPlace, with at least so many bytes
// that was freed first, or hugeCacheSlots.
func (c *hugeCache) oldest(place, size uintptr) uintptr {
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if place != anyPlace && place != uintptr(p.place) || p.Size < size {
			continue
		}
		if best == hugeCacheSlots || p.stamp < c.slot[best&(hugeCacheSlots-1)].stamp {
			best = i
		}
	}
	return best
}

// hugeCached takes the smallest cached mapping of the place that fits, or returns nil. A
// much larger one is cut to size.
func (h *Heap) hugeCached(size, align, place uintptr) *Page {
	c := &pool.cache
	if align > SliceSize || c.n == 0 || !poolLock.Take(h.Thread.token) {
		return nil
	}
	best := c.smallest(place, size)
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
	p.Size -= rest
	hugeLink(p, h.Hint, uint32(homeOf(uintptr(h.Hint))))
	end, in := p.Start+p.Size, p.place
	if rest >= hugeCacheLeast && cacheRest(p, rest) {
		rest = 0
	}
	pool.leaving += rest
	poolLock.Release() // from now on p may be moved
	if rest != 0 {
		hugeGone(h.Thread.token, end, rest, in)
	}
	return p
}

// cacheRest keeps n bytes behind the block of p, which were part of it, as a block of their
// own, or reports false; always over the soft cap, under which they count. Precondition: poolLock is held.
func cacheRest(p *Page, n uintptr) bool {
	end := p.Start + p.Size
	if pool.cache.n >= hugeCacheSlots || tiers.Excess(tierOf(p.place)) != 0 || !mapReserve(end, SliceSize) {
		return false
	}
	q := newDescriptor()
	if q == nil {
		return false
	}
	q.Owner, q.Magic, q.state = ownerNone, 0, spanHugeCached
	q.Start, q.Size, q.place, q.stamp = end, n, p.place, p.stamp
	q.stray, q.hugetlb, q.moving, q.done, q.segment = 0, 0, 0, 0, nil
	mapSet(end, q)
	pool.cache.put(q)
	return true
}

// hugeStretched takes the largest cached mapping of a place, which is smaller than size,
// and makes it that large: what it has moves by its page tables, and only what is more is
// faulted in. It returns nil where there is none that is worth it.
func (h *Heap) hugeStretched(size, align, place uintptr) *Page {
	c := &pool.cache
	if align > SliceSize || c.n == 0 || !canStretch(place, size) || !poolLock.Take(h.Thread.token) {
		return nil
	}
	best := c.largest(place)
	if best == hugeCacheSlots || c.slot[best&(hugeCacheSlots-1)].Size < size/4 || c.slot[best&(hugeCacheSlots-1)].Size >= size {
		poolLock.Release()
		return nil
	}
	p := c.remove(best)
	mapSet(p.Start, nil) // another thread may get the address from the kernel
	poolLock.Release()
	to := h.stretch(p, size)
	poolLock.Take(h.Thread.token)
	if to == 0 {
		mapSet(p.Start, p)
		hugeUnmap(h.Thread.token, p)
		poolLock.Release()
		return nil
	}
	mapped(size - p.Size)
	commit(size - p.Size)
	c.missed(size-p.Size, h.Thread.Now)
	p.Start, p.Size = to, size
	pool.count.hugeHits++
	hugeLink(p, h.Hint, uint32(homeOf(uintptr(h.Hint))))
	poolLock.Release()
	return p
}

// canStretch reports whether a place is one to stretch mappings in. Near a soft cap the
// policy is to be asked for the block as a whole. Under a limit of the address space the kernel may
// refuse the move, and then nobody can tell whose the addresses of its target are.
func canStretch(place, size uintptr) bool {
	return unitOf(place) == 1 && (place != placePin || !bound) && tiers.Room(tierOf(uint32(place)), size) && !addressesLimited()
}

// stretch moves what the mapping of p, in no list, has to one of size bytes, charged for.
// It returns the new address, or 0 with p as it was.
func (h *Heap) stretch(p *Page, size uintptr) uintptr {
	tier, more := tierOf(p.place), size-p.Size
	if !h.Thread.admit(tier, more) {
		return 0
	}
	to := mapAligned(size, huge2M)
	if to != 0 && !mapReserve(to, SliceSize) {
		raw.Unmap(to, size)
		to = 0
	}
	if to != 0 {
		if _, errno := raw.Remap(p.Start, p.Size, size, raw.MremapMayMove|raw.MremapFixed, to); errno == 0 {
			return to
		}
		raw.Reclaim(to, size)
	}
	tiers.Release(tier, more)
	return 0
}

// addressesLimited reports whether the process has a limit of its address space.
func addressesLimited() bool {
	const rlimitAS = 9
	limit := [2]uint64{} // now, at most
	_, errno := raw.Sys(syscall.SYS_PRLIMIT64, 0, rlimitAS, 0, uintptr(unsafe.Pointer(&limit)), 0, 0)
	return errno != 0 || limit[0] != ^uint64(0)
}

// hugeFreed caches the block of p, for which those that were cached for longest make room, or
// unmaps it. poolLock is held, and let go for that.
func hugeFreed(token uintptr, p *Page) {
	pool.most = max(pool.most, inUse())
	hugeUnlink(p)
	c := &pool.cache
	if secure {
		park(token, p)
		return
	}
	if PurgeDelay == 0 || p.stray != 0 || p.hugetlb != 0 {
		hugeUnmap(token, p)
		return
	}
	now, most := p.stamp, hugeCacheMax+c.kept(inUse()-p.Size)
	for c.n >= hugeCacheSlots || c.n != 0 && c.bytes+p.Size > most {
		q := c.remove(c.oldest(anyPlace, 0))
		c.gone(q.Size, true, now)
		hugeUnmap(token, q)
	}
	if c.bytes+p.Size > most {
		c.gone(p.Size, true, now)
		hugeUnmap(token, p)
		return
	}
	c.put(p)
}

// hugeMissed notes a fresh mapping of n bytes.
func hugeMissed(t *Thread, n uintptr) {
	if pool.cache.early != 0 && poolLock.Take(t.token) {
		pool.cache.missed(n, t.Now)
		poolLock.Release()
	}
}

// hugeExpire unmaps the cached blocks of a place that are past their delay, or all of
// them.
func hugeExpire(token uintptr, now uint64, place uintptr, all bool) (done uintptr) {
	if pool.cache.n == 0 || !poolLock.Take(token) {
		return 0
	}
	for i := uintptr(0); i < hugeCacheSlots && i < pool.cache.n; {
		p := pool.cache.slot[i&(hugeCacheSlots-1)]
		if !all && now < p.stamp+PurgeDelay || place != anyPlace && place != uintptr(p.place) {
			i++
			continue
		}
		pool.cache.remove(i)
		done += p.Size
		if !all {
			pool.cache.gone(p.Size, false, now)
		}
		hugeUnmap(token, p)
	}
	poolLock.Release()
	return done
}
