package alloc

// spanAlloc takes a span of n slices for the heap from the pool, charged to a tier: one that has
// memory, or else one that is charged for first. It returns nil when no tier has room or the kernel
// no memory. What the caller has to set is as for spanCached.
func (h *Heap) spanAlloc(n uintptr) *Page {
	token := h.Thread.token
	home := placementOf(uintptr(h.Hint), homeOf(uintptr(h.Hint)))
	if poolLock.Refuses(token) {
		return h.emergencySpan(n)
	}
	p := spanCached(token, home, n, h.Hint)
	if p == nil && h.Thread.trimHighWater(n<<SliceShift) {
		p = spanCached(token, home, n, h.Hint)
	}
	if p == nil {
		s := shape{n: n << SliceShift, span: true}
		placement, bytes, ok := h.reserveShape(home, &s)
		if !ok {
			return nil
		}
		p = spanReserved(token, placement, n, bytes, h.Hint)
	}
	if p != nil && p.placement == placementPin && bound && !pin(p.Start, p.bytes()) {
		spanReturn(token, p)
		return nil
	}
	return p
}
