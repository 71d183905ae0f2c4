package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
)

// A huge block, above MaxClass or aligned to more than a page can give, is a
// mapping of its own, aligned to a slice. Any thread may free it. Freed ones are
// kept a while for the next request:
//
//	cache.bytes = Σ Size of cache.slot[0:n] <= hugeCacheMax
//
// They go back to the kernel by age, as spans do, and when the cache is full.
const (
	hugeCacheSlots = 16
	hugeCacheMax   = 64 << 20
	hugeCacheBlock = 64 << 20 // larger ones are not kept
)

type hugeCache struct {
	slot  [hugeCacheSlots]*Page
	n     uintptr
	bytes uintptr
}

// hugeAlloc maps n bytes at a multiple of align (0 or a power of two). It returns
// the block's address, with ZeroBit when it reads as zero, or 0.
func hugeAlloc(h *Heap, n, align uintptr) uintptr {
	if n > maxRequest {
		return 0
	}
	h.tick()
	size := raw.RoundUp(n, SliceSize)
	p, zero := hugeCached(h, size, align)
	if p == nil {
		if p = hugeMap(h, size, align); p == nil {
			return 0
		}
		zero = ZeroBit
	}
	return p.Start | zero
}

// hugeCached takes the smallest cached mapping that fits. A much larger one is
// cut to size.
func hugeCached(h *Heap, size, align uintptr) (*Page, uintptr) {
	if size > hugeCacheBlock || align > SliceSize || !poolLock.Take(h.token) {
		return nil, 0
	}
	c := &pool.cache
	best := uintptr(hugeCacheSlots)
	for i := uintptr(0); i < c.n && i < hugeCacheSlots; i++ {
		p := c.slot[i]
		if p.Size >= size && (best == hugeCacheSlots || p.Size < c.slot[best&15].Size) {
			best = i
		}
	}
	if best == hugeCacheSlots {
		pool.count.hugeMisses++
		poolLock.Release()
		return nil, 0
	}
	p := cacheRemove(best)
	pool.count.hugeHits++
	rest := p.Size - size
	if rest <= size/4 {
		rest = 0
	}
	p.Size -= rest
	hugeLink(p)
	uncommit(rest)
	poolLock.Release()
	if rest != 0 {
		if raw.Unmap(p.Start+p.Size, rest) {
			unmapped(rest)
		} else {
			raw.Discard(p.Start+p.Size, rest)
		}
	}
	return p, 0
}

// hugeMap makes a fresh mapping.
func hugeMap(h *Heap, size, align uintptr) *Page {
	start := mapAligned(size, max(align, SliceSize))
	if start == 0 && purgeAll(h) > 0 {
		start = mapAligned(size, max(align, SliceSize))
	}
	if start == 0 {
		return nil
	}
	p := h.hugeAdopt(start, size)
	if p == nil {
		raw.Unmap(start, size)
	}
	return p
}

// mapAligned maps size bytes at a multiple of align, both multiples of a slice.
func mapAligned(size, align uintptr) uintptr {
	addr := raw.Map(size)
	if addr == 0 || addr&(align-1) == 0 {
		return addr
	}
	raw.Unmap(addr, size)
	whole := size + align - raw.Page
	addr = raw.Map(whole)
	if addr == 0 {
		return 0
	}
	start := raw.RoundUp(addr, align)
	if start > addr {
		raw.Unmap(addr, start-addr)
	}
	if end := addr + whole; end > start+size {
		raw.Unmap(start+size, end-start-size)
	}
	return start
}

// hugeLink makes p a live huge block. Precondition: poolLock is held, and p has
// Start and Size.
func hugeLink(p *Page) {
	p.Owner = OwnerHuge
	p.state = spanHuge
	p.Magic = 0
	p.prev, p.next = nil, pool.huge
	if p.next != nil {
		p.next.prev = p
	}
	pool.huge = p
	pool.count.hugeAllocs++
	pool.count.hugeAllocBytes += uint64(p.Size)
	mapSet(p.Start, p)
}

// hugeUnlink ends p's life as a block. Precondition: poolLock is held.
func hugeUnlink(p *Page) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		pool.huge = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	pool.count.hugeFrees++
	pool.count.hugeFreeBytes += uint64(p.Size)
	p.Owner = ownerNone
	p.state = spanHugeCached
}

func cacheRemove(i uintptr) *Page {
	c := &pool.cache
	p := c.slot[i&(hugeCacheSlots-1)]
	c.n--
	c.slot[i&(hugeCacheSlots-1)] = c.slot[c.n&(hugeCacheSlots-1)]
	c.bytes -= p.Size
	return p
}

// hugeFree frees the block of p, or reports false when it is not one (any more).
func hugeFree(h *Heap, p *Page) bool {
	h.tick()
	if p.state == spanHugeAlone {
		p.Owner = ownerNone
		mapSet(p.Start, nil)
		raw.Unmap(p.Start, p.Size)
		return true
	}
	if !poolLock.Take(h.token) {
		return true // in a handler that interrupted the pool itself: the block is lost, the process is not
	}
	if p.state != spanHuge {
		poolLock.Release()
		return false
	}
	hugeUnlink(p)
	c := &pool.cache
	keep := p.Size <= hugeCacheBlock && c.n < hugeCacheSlots && c.bytes+p.Size <= hugeCacheMax && PurgeDelay > 0
	if keep {
		p.stamp = h.Now
		c.slot[c.n&(hugeCacheSlots-1)] = p
		c.n++
		c.bytes += p.Size
	}
	poolLock.Release()
	if !keep {
		hugeUnmap(h.token, p)
	}
	return true
}

// hugeUnmap gives the memory of a block that is in no list back to the kernel.
func hugeUnmap(token uintptr, p *Page) {
	start, size := p.Start, p.Size
	if !poolLock.Take(token) {
		return
	}
	mapSet(start, nil)
	uncommit(size)
	freeDescriptor(p)
	poolLock.Release()
	if raw.Unmap(start, size) {
		unmapped(size)
	} else {
		raw.Discard(start, size)
	}
}

// hugeExpire unmaps cached blocks that are past their delay, or all of them.
func hugeExpire(token uintptr, now uint64, all bool) (done uintptr) {
	for i := uintptr(0); i < hugeCacheSlots; {
		if i >= pool.cache.n {
			return done
		}
		if !poolLock.Take(token) {
			return done
		}
		if i >= pool.cache.n {
			poolLock.Release()
			return done
		}
		p := pool.cache.slot[i&(hugeCacheSlots-1)]
		if !all && now < p.stamp+PurgeDelay {
			poolLock.Release()
			i++
			continue
		}
		cacheRemove(i)
		poolLock.Release()
		done += p.Size
		hugeUnmap(token, p)
	}
	return done
}

// hugeResize makes the block of p n bytes long, in place or by moving its page
// table entries. It returns the block's address, or 0 with everything as it was.
func hugeResize(h *Heap, p *Page, n uintptr) uintptr {
	if p.state == spanHugeAlone {
		return 0
	}
	size := raw.RoundUp(n, SliceSize)
	old := p.Size
	if size == old {
		return p.Start
	}
	_, errno := raw.Remap(p.Start, old, size, 0, 0)
	if errno == 0 {
		if poolLock.Take(h.token) {
			hugeSized(p, size)
			poolLock.Release()
		}
		return p.Start
	}
	if size < old || errno != uintptr(syscall.ENOMEM) { // not one mapping any more: the host has changed a part
		return 0
	}
	to := mapRoomy(size)
	if to == 0 {
		return 0
	}
	return hugeMove(h, p, size, to)
}

// mapRoomy maps size bytes with free addresses behind them: what has grown once will
// grow again, and then in place. The start suits huge pages, so that the kernel
// moves whole page tables.
func mapRoomy(size uintptr) uintptr {
	room := raw.RoundUp(size/2, SliceSize)
	to := mapAligned(size+room, 2<<20)
	if to == 0 {
		return mapAligned(size, SliceSize)
	}
	raw.Unmap(to+size, room)
	return to
}

// hugeMove moves the block of p into the fresh mapping at to. The map forgets
// the old address before the kernel can give it to another thread.
func hugeMove(h *Heap, p *Page, size, to uintptr) uintptr {
	if !poolLock.Take(h.token) {
		raw.Unmap(to, size)
		return 0
	}
	if !mapReserve(to, SliceSize) {
		poolLock.Release()
		raw.Unmap(to, size)
		return 0
	}
	from := p.Start
	mapSet(from, nil)
	poolLock.Release()

	_, errno := raw.Remap(from, p.Size, size, raw.MremapMayMove|raw.MremapFixed, to)

	poolLock.Take(h.token)
	if errno != 0 {
		mapSet(from, p)
		poolLock.Release()
		raw.Reclaim(to, size)
		return 0
	}
	p.Start = to
	mapSet(to, p)
	hugeSized(p, size)
	poolLock.Release()
	return to
}

// hugeSized accounts for a new size. Precondition: poolLock is held.
func hugeSized(p *Page, size uintptr) {
	if size > p.Size {
		pool.count.hugeAllocBytes += uint64(size - p.Size)
		mapped(size - p.Size)
		commit(size - p.Size)
	} else {
		pool.count.hugeFreeBytes += uint64(p.Size - size)
		unmapped(p.Size - size)
		uncommit(p.Size - size)
	}
	p.Size = size
}
