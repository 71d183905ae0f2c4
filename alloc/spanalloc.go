package alloc

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
