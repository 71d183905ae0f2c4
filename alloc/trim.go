package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

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

// Before the heap becomes larger than it ever was (highwater.go), a thread returns the memory of
// its current pages that they do not need.

// trimHighWater is called before n bytes of fresh memory are put to use. If the heap would become
// larger than ever, it returns unused memory. It reports whether there are now dirty spans of one
// slice, if such a span is wanted.
func (t *Thread) trimHighWater(n uintptr) (some bool) {
	if beyondHighWater(n) <= 0 {
		return false
	}
	trimDirty(t.token, t.Now, n)
	if pool.cache.n != 0 && n >= trimLeast {
		trimCached(t.token, t.Now, n)
	}
	return t.trimCurrent(n == SliceSize)
}

// trimCurrent returns memory that the thread's current pages do not need. If a slice is wanted,
// empty pages of one slice of which a quarter was ever in use go to the pool, and it reports
// whether there were any. Of the other pages, memory that was used before and is not carved yet
// goes to the kernel, if nothing was carved since the call before.
func (t *Thread) trimCurrent(slice bool) (some bool) {
	given := uintptr(0)
	for h := t.heaps; h != nil; h = h.sibling {
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			p := h.cur[c]
			if slice && p.slices == 1 && (p.zero == 0 || p.carved >= SliceSize/4) && p.allFree() {
				some = trimAllowed(t.token, t.Now, SliceSize) && h.release(p, t.Now) || some
			} else if p.rests != 0 {
				given += t.trimTail(p)
			} else if p != pageNone {
				p.rests = 1
			}
		}
	}
	countSubreleased(t.token, given)
	return some
}

// trimTail returns the memory of p that is not yet carved to the kernel, if it is enough, and
// returns the bytes. That memory then reads as zero, as fresh memory does.
func (t *Thread) trimTail(p *Page) uintptr {
	at := p.Start + uintptr(p.carved)
	from, end := raw.RoundUp(at, raw.Page), p.spanStart()+p.bytes()
	if p.zero != 0 || end < from+trimTailLeast || secure || t.Now < pool.quiet ||
		!p.mayGiveMemory() ||
		!trimAllowed(t.token, t.Now, end-from) {
		return 0
	}
	if !p.discard(from, end-from) {
		pool.quiet = t.Now + PurgeDelay // without the lock: a hint
		return 0
	}
	for ; at < from; at += 8 {
		raw.Store(at, 0)
	}
	p.zero = 1
	return end - from
}
