package alloc

import (
	"math/bits"
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// If a page has few blocks in use, and none was allocated or freed for a while, its memory pages
// that no block in use touches return to the kernel. Otherwise the few blocks that survive a phase
// of a program would keep all memory of the phase. Page.subreleased has a bit for each returned
// part: a memory page, or a 32nd of the span if that is more.
//
//	a block that starts in a subreleased part is free, and on no list
//	Carved == carved where there is no subreleased part, else 0
//
// So the fast path of free finds no block in a page with subreleased parts, and Free checks the
// parts, because the free marks are gone with the memory. When the page becomes current and blocks
// are allocated or freed, the parts are put to use again. The bytes stay charged.
//
// There are two occasions to find pages that rest. When the memory in use exceeds its last peak by
// an eighth, a page rests if its counts are those of the occasion before; less memory is returned
// then than the growth has taken. The other occasion is collectPages, where a page rests if its
// counts are those of the last call.
const (
	subreleaseParts = 32 // in a span, at most

	restGrowth = 8       // memory in use has grown by 1/8
	restLeast  = 1 << 20 // and by at least these bytes

	// walkMost is how many blocks are examined in one call, which takes a few milliseconds. The
	// remaining pages are examined at the next occasion.
	walkMost = 128 << 10
)

// subreleaseShift is log2 of the bytes of a part.
func (p *Page) subreleaseShift() uint {
	return raw.PageShift +
		uint(max(bits.Len32(p.slices-1), 1)-1)
}

// isSubreleased reports whether the block at b starts in a subreleased part.
func (p *Page) isSubreleased(b uintptr) bool {
	return p.subreleased != 0 &&
		p.subreleased>>((b-p.spanStart())>>(p.subreleaseShift()&63)&31)&1 != 0
}

// grown subreleases the thread's pages that rested since the last occasion, if more memory is in
// use than ever.
func (t *Thread) grown() {
	used := pool.usedBytes // read without the lock
	if used >= t.used+t.used/restGrowth+restLeast {
		t.used = used
		t.rest(false)
	}
}

// rest subreleases the thread's pages that are not current and have rested. With all set it
// includes pages that have not rested or are not sparse.
func (t *Thread) rest(all bool) {
	done := uintptr(0)
	t.walk = walkMost
	for h := t.heaps; h != nil; h = h.sibling {
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			for p := h.cur[c].next; p != nil; {
				next := p.next
				done += t.restPage(p, all)
				p = next
			}
		}
	}
	countSubreleased(t.token, done)
}

// restPage subreleases p if it has rested, and returns the bytes. Precondition: the thread owns the
// page, which is on its list and not current.
func (t *Thread) restPage(p *Page, all bool) uintptr {
	if p.isRetired() || p.Free == 0 || secure || t.Now < pool.quiet {
		return 0
	}
	now, last := p.counts(), p.lastRest()
	if !all && last != now {
		if last != now|restDone {
			p.setLastRest(now)
		}
		return 0
	}
	give := all || p.sparse()
	if give && !all {
		if t.walk < uintptr(p.blocks) {
			return 0
		}
		t.walk -= uintptr(p.blocks)
	}
	p.setLastRest(now | restDone)
	if !give || !p.mayGiveMemory() {
		return 0
	}
	return t.subrelease(p)
}

// mayGiveMemory reports whether single memory pages of p may be returned to the kernel.
func (p *Page) mayGiveMemory() bool {
	return p.segment != nil && !p.segment.reserved() && p.placement != placementPin &&
		hugePageSlices(uintptr(p.placement)) == 1
}

// sparse reports whether the page is likely to have free parts: it is half free and has no more
// blocks in use than parts. If the blocks are placed at random, a part is then free with a
// probability of at least a third. Finding out takes a walk over all free blocks.
func (p *Page) sparse() bool {
	live := p.Allocs - p.Frees
	return 2*live*uint64(p.stride()) <= uint64(p.carved) &&
		live <= uint64(p.bytes()>>(p.subreleaseShift()&63))
}

// subrelease returns the parts of p that only free blocks touch to the kernel, and returns the
// bytes. If the free list is damaged it does nothing; the slow path reports the damage later. If
// the kernel refuses, because the memory is locked for example, it puts the parts to use again, and
// subrelease pauses for a while.
func (t *Thread) subrelease(p *Page) (bytes uintptr) {
	shift := p.subreleaseShift() & 63
	start := p.spanStart()
	var free [subreleaseParts]uint32 // bytes in each part
	spread(&free, 0, p.Start-start, shift)
	p.subreleasedTails(&free)
	left := p.blocks
	for b := p.Free; b != 0; b = raw.Load(b) {
		if left == 0 || !p.isBlock(b) || raw.Load(b+8) != FreeKey {
			return 0
		}
		left--
		spread(&free, b-start, b-start+p.stride(), shift)
	}
	holes := uint32(0)
	for i, n := range free {
		if n == 1<<shift {
			holes |= 1 << i
		}
	}
	holes &^= p.subreleased
	if holes == 0 {
		return 0
	}
	p.Carved = 0
	p.unlist(holes)
	p.subreleased |= holes
	for at := uint32(0); holes>>at != 0; {
		at += uint32(bits.TrailingZeros32(holes >> at))
		n := uint32(bits.TrailingZeros32(^(holes >> at)))
		if !p.discard(start+uintptr(at)<<shift, uintptr(n)<<shift) {
			p.relist()
			pool.quiet = t.Now + PurgeDelay // without the lock: a hint
			return bytes
		}
		bytes += uintptr(n) << shift
		at += n
	}
	return bytes
}

// subreleasedTails adds the tails of blocks that start in subreleased parts to the free bytes of
// the parts that they reach into.
func (p *Page) subreleasedTails(free *[subreleaseParts]uint32) {
	shift, size, lead := p.subreleaseShift()&63, p.stride(), p.Start-p.spanStart()
	if size == 0 { // it never is; the compiler wants to see it
		return
	}
	for left := p.subreleased; left != 0; left &= left - 1 {
		end := (uintptr(bits.TrailingZeros32(left))+1)<<shift - lead
		if last := (end - 1) / size * size; end-last <= 1<<shift &&
			last+size <= uintptr(p.carved) && last+size > end {
			spread(free, lead+end, lead+last+size, shift)
		}
	}
}

// spread adds the bytes from at to end, offsets in a span, to those of their parts.
func spread(free *[subreleaseParts]uint32, at, end uintptr, shift uint) {
	for at < end {
		i := at >> (shift & 63)
		n := min(end, (i+1)<<(shift&63)) - at
		free[i&(subreleaseParts-1)] += uint32(n)
		at += n
	}
}

// unlist removes the blocks that start in the given subreleased parts from the free list.
func (p *Page) unlist(holes uint32) {
	shift, start, last := p.subreleaseShift()&63, p.spanStart(), uintptr(0)
	for b := p.Free; b != 0; b = raw.Load(b) {
		if holes>>((b-start)>>shift&31)&1 == 0 {
			if last == 0 {
				p.Free = b
			} else {
				raw.Store(last, b)
			}
			last = b
		}
	}
	if last == 0 {
		p.Free = 0
	} else {
		raw.Store(last, 0)
	}
}

// relist puts the blocks that start in subreleased parts on the free list, in front.
func (p *Page) relist() {
	shift, size, lead := p.subreleaseShift()&63, p.stride(), p.Start-p.spanStart()
	if p.subreleased == 0 || size == 0 {
		return
	}
	for p.subreleased != 0 { // from the end, so that the first blocks come first
		i := uintptr(bits.Len32(p.subreleased)) - 1
		p.subreleased &^= 1 << (i & 31)
		from, end := max(i<<shift, lead)-lead, min((i+1)<<shift-lead, uintptr(p.carved))
		first := (from + size - 1) / size * size
		if first >= end {
			continue
		}
		for at := (end - 1) / size * size; ; at -= size {
			b := p.Start + at
			raw.Store(b, p.Free)
			raw.Store(b+8, FreeKey)
			p.Free = b
			if at == first {
				break
			}
		}
	}
	if !p.hidden() {
		atomic.StoreUint64(&p.Carved, uint64(p.carved))
	}
}

// Trim returns all unused memory to the kernel: quarantined blocks and empty pages of this thread,
// of abandoned heaps, and of other threads if they can be taken, cached huge blocks and free spans.
// It returns the number of bytes.
func Trim(h *Heap) uintptr {
	h.Thread.running = running{number: uintptr(stats.CallMallocTrim) + 1}
	done := purgeAll(h.Thread)
	h.Thread.rest(true)
	unmapLeftover()
	return done
}

func purgeAll(t *Thread) uintptr {
	t.release()
	t.collectPages(true)
	t.lookRound()
	return returnFree(t.token, t.Now)
}

// trimHighWater is called before n bytes of fresh memory are put to use. If the heap would become
// larger than ever, it returns unused memory (purge.go). It reports whether there are now dirty
// spans of one slice, if such a span is wanted.
func (t *Thread) trimHighWater(n uintptr) (some bool) {
	if beyondHighWater(n) <= 0 {
		return false
	}
	trimDirty(t.token, t.Now, n)
	if pool.cache.n != 0 && n >= trimLeast {
		trimCached(t.token, t.Now, n)
	}
	return n == SliceSize && t.trimCurrent()
}

// trimCurrent gives the pool the thread's empty current pages of one slice of which a quarter was
// ever in use, and reports whether there were any.
func (t *Thread) trimCurrent() (some bool) {
	for h := t.heaps; h != nil; h = h.sibling {
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			p := h.cur[c]
			if p.slices == 1 && (p.zero == 0 || p.carved >= SliceSize/4) && p.allFree() {
				some = trimAllowed(t.token, t.Now, SliceSize) && h.release(p, t.Now) || some
			}
		}
	}
	return some
}
