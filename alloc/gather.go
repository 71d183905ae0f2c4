package alloc

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// hugeGathered makes a block of size bytes of cached ones of a place, none of which is that large: what they have moves by
// its page tables, one behind the other, and only what is more is faulted in. It returns nil where there is none that is
// worth it.
func (h *Heap) hugeGathered(size, align, place uintptr) *Page {
	c := &pool.cache
	if align > SliceSize || c.n == 0 || !canGather(place, size) {
		return nil
	}
	most := partsMost()
	if !poolLock.Take(h.Thread.token) {
		return nil
	}
	p, have := c.gather(place, size, most)
	poolLock.Release()
	if p == nil {
		return nil
	}
	size = max(size, have)
	to := h.sew(p, have, size)
	poolLock.Take(h.Thread.token)
	if to == 0 {
		dropParts(p)
		poolLock.Release()
		return nil
	}
	mapped(size - have)
	commit(size - have)
	c.missed(size-have, h.Thread.Now)
	p.Size = size
	pool.count.hugeHits++
	hugeLink(p, h.Hint, uint32(homeOf(uintptr(h.Hint))))
	poolLock.Release()
	return p
}

// canGather reports whether a place is one to move mappings in. Near a soft cap the
// policy is to be asked for the block as a whole. Under a limit of the address space the kernel may
// refuse the move, and then nobody can tell whose the addresses of its target are.
func canGather(place, size uintptr) bool {
	return unitOf(place) == 1 && (place != placePin || !bound) && tiers.Room(tierOf(uint32(place)), size) && !addressesLimited()
}

// gather takes cached blocks of a place, each smaller than size bytes, off the cache, the largest first and of the last, if it
// can be, no more than is needed. It returns their parts, most at most and each with its own Size, and the bytes; or nil where
// these are less than a quarter of size. Precondition: poolLock is held.
func (c *hugeCache) gather(place, size, most uintptr) (first *Page, have uintptr) {
	var taken [hugeParts]*Page
	n := uintptr(0)
	for have < size && n < hugeParts {
		i := c.smallest(place, size-have)
		if i == hugeCacheSlots {
			i = c.largest(place, most)
		}
		if i == hugeCacheSlots || c.slot[i&(hugeCacheSlots-1)].parts() > most {
			break
		}
		p := c.remove(i)
		if rest := p.Size - min(p.Size, size-have); rest >= hugeCacheLeast {
			if !cacheRest(p, rest) {
				c.put(p)
				break
			}
			p.Size -= rest
		}
		taken[n&(hugeParts-1)] = p
		n++
		most -= min(most, p.parts())
		have += p.Size
	}
	if have < size/4 {
		for ; n > 0; n-- {
			c.put(taken[(n-1)&(hugeParts-1)])
		}
		return nil, 0
	}
	for ; n > 0; n-- {
		p := taken[(n-1)&(hugeParts-1)]
		mapSet(p.Start, nil) // another thread may get the address from the kernel
		end := p.Start + p.Size
		last := p
		for q := p; q != nil; q = q.next {
			q.Size = partEnd(q, end) - q.Start
			q.place = p.place
			last = q
		}
		last.next = first
		first = p
	}
	return first, have
}

// sew moves the parts from p on, in no block and of have bytes together, to one range of size bytes, which is charged for, the
// last with what is more. It returns where that is; or 0, with all of them given back to the kernel.
func (h *Heap) sew(p *Page, have, size uintptr) uintptr {
	tier, more := tierOf(p.place), size-have
	if !h.Thread.admit(tier, more) {
		h.partsGone(p, have)
		return 0
	}
	to := mapAligned(size, huge2M)
	if to != 0 && !mapReserve(to, SliceSize) {
		raw.Unmap(to, size)
		to = 0
	}
	if to == 0 {
		tiers.Release(tier, more)
		h.partsGone(p, have)
		return 0
	}
	at := to
	for q := p; q != nil; q = q.next {
		n := q.Size
		if q.next == nil {
			n += more
		}
		if _, errno := raw.Remap(q.Start, q.Size, n, raw.MremapMayMove|raw.MremapFixed, at); errno != 0 {
			raw.Reclaim(at, n)
			if at+n < to+size {
				raw.Unmap(at+n, to+size-at-n)
			}
			tiers.Release(tier, more)
			h.partsGone(p, have)
			return 0
		}
		q.Start = at
		at += n
	}
	return to
}

// partsGone gives the parts from p on, of so many bytes together, back to the kernel.
func (h *Heap) partsGone(p *Page, bytes uintptr) {
	poolLock.Take(h.Thread.token)
	pool.leaving += bytes
	poolLock.Release()
	for q := p; q != nil; q = q.next {
		hugeGone(h.Thread.token, q.Start, q.Size, q.place)
	}
}

// addressesLimited reports whether the process has a limit of its address space.
func addressesLimited() bool {
	const rlimitAS = 9
	limit := [2]uint64{} // now, at most
	_, errno := raw.Sys(syscall.SYS_PRLIMIT64, 0, rlimitAS, 0, uintptr(unsafe.Pointer(&limit)), 0, 0)
	return errno != 0 || limit[0] != ^uint64(0)
}
