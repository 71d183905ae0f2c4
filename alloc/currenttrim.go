package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// What a thread gives away where the heap is about to become larger than it ever was
// (highwater.go): of its current pages what they do not need.

// trimHighWater is called before n bytes of fresh memory are put to use. Where that would make the
// heap larger than ever, what nobody uses goes. It reports whether some has become dirty spans of
// one slice, where one is wanted.
func (t *Thread) trimHighWater(n uintptr) (some bool) {
	if beyondHighWater(n) <= 0 {
		return false
	}
	trimDirty(t.token, t.Now, n)
	return t.trimCurrent(n == SliceSize)
}

// trimCurrent has the thread's current pages give what they do not need. Where a slice is wanted,
// those of one slice that are empty and of which a quarter was ever in use go to the pool. It
// reports whether there were any. Of the others what is not yet carved goes to the kernel, where it
// has been in use before, once nothing was carved from one such call to the next.
func (t *Thread) trimCurrent(slice bool) (some bool) {
	given := uintptr(0)
	for _, h := range t.Heaps {
		if h == nil {
			continue
		}
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

// trimTail gives the memory of p that is not yet carved back to the kernel, where that is worth it,
// and returns the bytes. What is left reads as zero then, as fresh memory does.
func (t *Thread) trimTail(p *Page) uintptr {
	at := p.Start + uintptr(p.carved)
	from, end := raw.RoundUp(at, raw.Page), p.Start+p.bytes()
	if p.zero != 0 || end < from+trimTailLeast || secure || t.Now < pool.quiet ||
		!p.mayGiveMemory() ||
		!trimAllowed(t.token, t.Now, end-from) {
		return 0
	}
	if !raw.Discard(from, end-from) {
		pool.quiet = t.Now + PurgeDelay // without the lock: a hint
		return 0
	}
	for ; at < from; at += 8 {
		raw.Store(at, 0)
	}
	p.zero = 1
	return end - from
}
