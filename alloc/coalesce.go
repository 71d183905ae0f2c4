package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// coalescible takes cached blocks of a placement, none of which has size bytes, off the cache,
// where it is worth it to make one block of that size of them: see coalesce. Else it returns nil.
func coalescible(token, size, align, placement uintptr) (p *Page, have uintptr) {
	c := &pool.cache
	if align > huge2M || c.n == 0 || !canCoalesce(placement, size) {
		return nil, 0
	}
	most := extentsMost()
	if !poolLock.Take(token) {
		return nil, 0
	}
	if pool.extents+hugeExtents > extentsAll {
		most = 1
	}
	p, have = c.coalesce(placement, size, most)
	poolLock.Release()
	return p, have
}

// linkCoalesced makes the parts from p on, in no block and of have bytes together, a block of size
// bytes, which is charged already. When the kernel refuses, it reports false, releases the charge
// for the growth, and returns the parts to the cache where it can.
func linkCoalesced(token uintptr, p *Page, have, size uintptr, hint uint32) bool {
	to := joinExtents(token, p, have, size)
	if to == 0 {
		return false
	}
	poolLock.Take(token)
	mapped(size - have)
	commit(size - have)
	p.Size = size
	pool.count.hugeHits++
	hugeLink(p, hint, uint32(homeOf(uintptr(hint))))
	poolLock.Release()
	return true
}

// canCoalesce reports whether a placement is one to move mappings in. Near a soft cap the
// policy is to be asked for the block as a whole.
func canCoalesce(placement, size uintptr) bool {
	return hugePageSlices(placement) == 1 && (placement != placementPin || !bound) &&
		tiers.Room(tierOf(uint32(placement)), size)
}

// coalesce takes cached blocks of a placement, each smaller than size bytes, off the cache, the
// largest first and of the last, if it can be, no more than is needed. It returns their parts, most
// at most and each with its own Size, and the bytes; or nil where these are less than a quarter of
// size. Where they are several, each begins at a multiple of a huge page and all but the last are
// multiples of one, for the kernel moves such as a whole; what is cut off for that, or of the last
// where the tier has a limit, and is too little to be cached goes when its part has moved: the tail
// behind it. Precondition: poolLock is held.
func (c *hugeCache) coalesce(placement, size, most uintptr) (first *Page, have uintptr) {
	var taken [hugeExtents]*Page
	var tails [hugeExtents]uint32 // slices
	n := uintptr(0)
	for have < size && n < hugeExtents {
		ragged := uintptr(0) // bytes that the one before has too many, if another follows
		if n > 0 {
			ragged = taken[(n-1)&(hugeExtents-1)].Size & (huge2M - 1)
		}
		need := size - have + ragged
		i := c.smallest(placement, need, huge2M)
		if i == hugeCacheSlots {
			i = c.largest(placement, most, huge2M)
		}
		if i == hugeCacheSlots && n == 0 {
			i = c.largest(placement, most, SliceSize)
		}
		if i == hugeCacheSlots || c.slot[i&(hugeCacheSlots-1)].extents() > most {
			break
		}
		p := c.remove(i)
		if rest := p.Size - min(p.Size, need); rest >= hugeCacheLeast {
			if !cacheRest(p, rest) {
				c.put(p)
				break
			}
			p.Size -= rest
		} else if rest != 0 && !tiers.Room(tierOf(uint32(placement)), maxRequest) {
			tails[n&(hugeExtents-1)] = p.cutTail(rest)
		}
		if ragged != 0 {
			q := taken[(n-1)&(hugeExtents-1)]
			if ragged >= hugeCacheLeast && cacheRest(q, ragged) {
				q.Size -= ragged
			} else {
				tails[(n-1)&(hugeExtents-1)] = q.cutTail(ragged)
			}
			have -= ragged
		}
		taken[n&(hugeExtents-1)] = p
		n++
		most -= min(most, p.extents())
		have += p.Size
		if p.Start&(huge2M-1) != 0 {
			break
		}
	}
	if n == 1 && have < size/4 {
		c.put(taken[0])
		return nil, 0
	}
	for ; n > 0; n-- {
		p := taken[(n-1)&(hugeExtents-1)]
		mapSet(p.Start, nil) // another thread may get the address from the kernel
		end := p.Start + p.Size
		last := p
		for q := p; q != nil; q = q.nextExtent() {
			q.Size = extentEnd(q, end) - q.Start
			q.placement = p.placement
			q.setTail(0)
			last = q
		}
		last.setTail(tails[(n-1)&(hugeExtents-1)])
		if first != nil {
			pool.extents++
		}
		last.setNextExtent(first)
		first = p
	}
	return first, have
}

// cutTail takes n bytes, which are to go, off the end of a block that is in no list, and returns
// them in slices. Precondition: poolLock is held.
func (p *Page) cutTail(n uintptr) uint32 {
	p.Size -= n
	dropExtents(p.extentsFrom(p.Start + p.Size))
	pool.leaving += n
	return uint32(n >> SliceShift)
}

// joinExtents moves the parts from p on to one range for linkCoalesced, and returns its address, or
// 0. The last part gets the bytes by which size exceeds have.
func joinExtents(token uintptr, p *Page, have, size uintptr) uintptr {
	tier, more := tierOf(p.placement), size-have
	to := reserveAligned(size, huge2M)
	if to != 0 && !mapReserve(to, SliceSize) {
		unmapFresh(to, size)
		to = 0
	}
	if to == 0 {
		tiers.Release(tier, more)
		uncoalesce(token, p, nil, 0)
		return 0
	}
	at := to
	for q := p; q != nil; q = q.nextExtent() {
		n := q.Size
		if q.nextExtent() == nil {
			n += more
		}
		from, tail := q.Start+q.Size, q.tail()
		if errno, kept := raw.Move(q.Start, q.Size, n, at); errno != 0 {
			unmapTarget(at, n, kept)
			if at+n < to+size {
				unmapFresh(at+n, to+size-at-n)
			}
			tiers.Release(tier, more)
			uncoalesce(token, p, q, at-to)
			return 0
		}
		q.Start, q.role = at, 0
		at += n
		if tail != 0 {
			q.setTail(0)
			hugeGone(token, from, tail, q.placement)
		}
	}
	return to
}

// uncoalesce puts the parts from p on back into the cache where the kernel would not move the part
// failed, which it unmaps: one mapping to the library, it may be several to the host. Before it are
// moved bytes. Without failed none has moved.
func uncoalesce(token uintptr, p, failed *Page, moved uintptr) {
	poolLock.Take(token)
	if failed != nil && failed != p { // what has moved is a block of its own
		last := p
		for last.nextExtent() != failed {
			last = last.nextExtent()
		}
		last.setNextExtent(nil)
		pool.extents--
		p.Size = moved
		cacheAgain(token, p)
		p = failed
	}
	for q := p; q != nil; {
		next, tail := q.nextExtent(), q.tail()
		if next != nil {
			pool.extents--
		}
		q.setNextExtent(nil)
		q.setTail(0)
		q.Size += tail
		pool.leaving -= tail
		if q == failed {
			extentsUnmap(token, q)
		} else {
			cacheAgain(token, q)
		}
		q = next
	}
	poolLock.Release()
}

// cacheAgain puts p, in no list and no map, into the cache, or unmaps it. poolLock is held, and let
// go for that.
func cacheAgain(token uintptr, p *Page) {
	if pool.cache.n >= hugeCacheSlots || !mapReserve(p.Start, SliceSize) {
		extentsUnmap(token, p)
		return
	}
	mapSet(p.Start, p)
	pool.cache.put(p)
}

// A huge block that was coalesced from several cached ones (coalesce.go) is several mappings to the
// kernel, its parts, one behind the other; it resizes and moves none of them together with another.
// The descriptors of all but the first hang on that of the block by nextExtent, and are in no map.
//
//	Start < Start of the second part < Start of the third < … < Start + Size;
//	at most hugeExtents in all
//	pool.extents = Σ parts of live and cached blocks beyond their first
//
// A process may have 65,530 mappings; most of them are the program's.
const (
	hugeExtents = 8
	extentsAll  = 2048 // of pool.extents, at most
)

// moveExtents moves the parts of p's block to the size bytes reserved at to. The last part grows by
// the difference. When the kernel refuses, it reports false, the block is as it was, and nothing is
// reserved at to. (Parts that the program had made read-only are writable then.) Precondition: the
// block is of several parts, and held.
func moveExtents(token uintptr, p *Page, to, size uintptr) bool {
	end := p.Start + p.Size
	more := size - p.Size
	// so it would not lengthen the last part when the others have moved
	if more != 0 && !mappable(more) {
		unmapFresh(to, size)
		return false
	}
	for q := p; q != nil; q = q.nextExtent() {
		n := extentEnd(q, end) - q.Start
		at := to + q.Start - p.Start
		errno, kept := uintptr(0), uintptr(0)
		if q.nextExtent() != nil { // empty, its addresses stay mapped until all have moved
			errno, kept = raw.MoveContents(q.Start, n, at)
		} else {
			n += more
			errno, kept = raw.Move(q.Start, n-more, n, at)
		}
		if errno == 0 {
			continue
		}
		unmapTarget(at, n, kept)
		for back := p; back != q; back = back.nextExtent() {
			n := back.nextExtent().Start - back.Start
			raw.Allow(back.Start, n)
			copyBack(token, back.Start, to+back.Start-p.Start, n, p.placement)
		}
		if at+n < to+size {
			unmapFresh(at+n, to+size-at-n)
		}
		return false
	}
	from := p.Start
	giveBackBarred(token, from, p.lastExtent().Start-from, p.placement)
	for q := p; q != nil; q = q.nextExtent() {
		q.Start += to - from
	}
	return true
}

// mappable reports whether the kernel has memory for n bytes.
func mappable(n uintptr) bool {
	at := raw.Map(n)
	if at != 0 {
		unmapFresh(at, n)
	}
	return at != 0
}

var extentsKnown uintptr // what extentsMost has found out, or 0

// extentsMost is how many parts a block may have: one before Linux 5.7, where several could not be
// moved together without the risk to lose some.
func extentsMost() uintptr {
	most := atomic.LoadUintptr(&extentsKnown)
	if most == 0 {
		most = 1
		page := raw.Map(raw.Page)
		if page == 0 {
			return most
		}
		if to := raw.MapBarred(raw.Page); to != 0 {
			errno, kept := raw.MoveContents(page, raw.Page, to)
			if errno == 0 {
				kept, most = raw.Page, hugeExtents
			}
			unmapTarget(to, raw.Page, kept)
		}
		unmapFresh(page, raw.Page)
		atomic.StoreUintptr(&extentsKnown, most)
	}
	return most
}
