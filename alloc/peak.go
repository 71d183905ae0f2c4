package alloc

// Before the heap becomes larger than it ever was, it has what nobody uses go: what goes for that in
// the life of a process is never more than its largest size, so it costs little, and a program's peak is
// made of what it has in use.

// spareLeast is how much is much.
const spareLeast = 1 << 20

// sparePeak is called before n bytes of fresh memory are put to use. Where they would make the heap larger than
// ever, empty pages of one slice that the thread keeps become dirty spans, if one slice is wanted. Where much
// is wanted, as much as is too much goes back to the kernel of the dirty spans, none of which fits; for less
// it does not pay, as what does not fit now will soon fit something. Nothing is learned from that (lesson).
func (t *Thread) sparePeak(n uintptr) {
	over := int(uintptr(pool.count.committed) + n - uintptr(pool.count.peak)) // peeks without the lock
	if over <= 0 || n == SliceSize && t.giveSlices() {
		return
	}
	dirty := int(pool.dirtyBytes)
	if n < spareLeast || dirty == 0 || t.Now < pool.quiet {
		return
	}
	floor := uintptr(max(dirty-over, 0))
	for range placeSlots {
		place := oldestPlace()
		if place == placeSlots || pool.dirtyBytes <= floor ||
			purgePlace(t.token, t.Now, place, floor, false) == 0 {
			return
		}
	}
}

// giveSlices gives back to the pool the current pages of one slice that are empty and of which
// a quarter was ever in use, and reports whether there were any.
func (t *Thread) giveSlices() (some bool) {
	for _, h := range t.Heaps {
		if h == nil {
			continue
		}
		for c := range h.cur {
			if p := h.cur[c]; p.slices == 1 && (p.zero == 0 || p.carved >= SliceSize/4) && p.allFree() && h.release(p, t.Now) {
				some = true
			}
		}
	}
	return some
}
