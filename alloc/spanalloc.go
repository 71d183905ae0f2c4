package alloc

import "tieralloc/tiers"

// spanAlloc takes a span of n slices for the heap from the pool, charged to a tier: a cached one,
// or a new one that is charged first. It returns nil if no tier has room or the kernel has no
// memory. Where it is fresh it may be up to most spans, linked by next. The caller sets the same
// fields as for spanCached.
func (h *Heap) spanAlloc(n, most uintptr) *Page {
	token := h.Thread.token
	home := placementOf(uintptr(h.Hint), homeOf(uintptr(h.Hint)))
	if poolLock.Refuses(token) {
		return h.emergencySpan(n)
	}
	p := spanCached(token, home, n, h.Hint)
	if p == nil && h.flushLarge() {
		p = spanCached(token, home, n, h.Hint)
	}
	if p == nil && h.Thread.trimHighWater(n<<SliceShift) {
		p = spanCached(token, home, n, h.Hint)
	}
	for again := true; p == nil && again; most = 1 { // where several cannot be had one may be
		again = most > 1
		s := shape{n: n * most << SliceShift, span: true}
		if placement, bytes, ok := h.reserveShape(home, &s); ok {
			p = spanReserved(token, placement, n, most, bytes, h.Hint, h.Thread.Now)
		}
	}
	if p != nil && p.placement == placementPin && bound && !pin(p.Start, p.bytes()) {
		spanReturn(token, p)
		return nil
	}
	return p
}

// A thread that has many pages takes several fresh ones at a time, next to each other, once there
// are other threads. Else their pages lie in turn, and as they fault them in the kernel has the
// threads wait for each other: it has a lock for the page table of each 2 MiB. (16 threads on 16
// Intel cores that fault in 8 MiB each take twice as long.) And they wait for poolLock less often.
//
// The pages stay untouched on the thread's list as retired ones, which serve any class (retire.go).
//
//	pages taken at once <= min(batchMost, 1 + Thread.pages/batchShare)
const (
	batchMost  = 8
	batchShare = 8
)

// batch is how many fresh pages of n slices the heap takes at once. Where addresses are limited,
// and of a tier with a small cap or near its cap, it takes no more than it needs.
func (h *Heap) batch(n uintptr) uintptr {
	k := min(batchMost, 1+h.Thread.pages/batchShare)
	if n != 1 || k == 1 || pool.threadCount < 2 || secure || addressLimit != 0 ||
		tiers.Migrating() {
		return 1
	}
	home := homeOf(uintptr(h.Hint)) & (placementSlots - 1)
	w := &placements[home]
	if home == placementPin || w.retireMax != retireMax || hugePageSlices(home) != 1 ||
		!tiers.Room(tierOf(uint32(home)), retireMax) {
		return 1
	}
	return min(k, 1+h.retireRoom(w, true)>>SliceShift)
}

// addRetired makes p, a span of one slice or nil, and those linked to it retired pages of class c.
func (h *Heap) addRetired(p *Page, c uintptr) {
	for p != nil {
		next := p.next
		h.addPage(p, c, 1)
		h.retire(p)
		p = next
	}
}
