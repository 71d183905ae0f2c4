package cudahook

import "sync/atomic"

// fastPath is 1 while stream-ordered calls may be served without a Request. Tracing, recording,
// sampling and throttling need one.
var fastPath uint32

// observed is 1 while requests that were served are traced, recorded or sampled.
var observed uint32

// setFastPath sets fastPath and observed from the settings.
func setFastPath() {
	watched := trace.on || sampling || atomic.LoadUint32(&recording) != 0
	ok := settings.enabled && !settings.throttle && !watched && atomic.LoadUint32(&off) == 0
	atomic.StoreUint32(&observed, uint32(flag(watched)))
	atomic.StoreUint32(&fastPath, uint32(flag(ok)))
}

// primaryHeap returns the heap of a device's primary context, locked, and the stream's cache in it.
// It returns nil unless there are both.
func primaryHeap(token, device, stream uintptr) (h *heap, t *streamCache) {
	if atomic.LoadUint32(&fastPath) == 0 || device >= deviceMax {
		return nil, nil
	}
	d := &devices[device&(deviceMax-1)]
	h = &heaps[atomic.LoadUint64(&d.slot)&(heapMax-1)]
	if !h.lock.Take(token) {
		return nil, nil
	}
	if h.context != 0 && h.context == atomic.LoadUint64(&d.primary) && h.active == nil {
		t = h.lastCache
		if t != nil && t.stream == ordered(uint64(stream)) && t.pool == h.mainPool {
			return h, t
		}
		if t = h.findCache(ordered(uint64(stream)), h.mainPool); t != nil {
			h.lastCache = t
			return h, t
		}
	}
	h.lock.Release()
	return nil, nil
}

// Take serves OpStreamAlloc on a device's primary context from free blocks, and returns the
// address. It returns 0 if a Request is needed. Most allocations end here.
func Take(token, device, stream, bytes uintptr) uintptr {
	asked := uint64(bytes)
	if asked-1 >= maxRequest {
		return 0
	}
	h, t := primaryHeap(token, device, stream)
	if h == nil {
		return 0
	}
	if atomic.LoadUint64(&h.device.managed) != 0 { // the request's hint chooses the pool
		h.lock.Release()
		return 0
	}
	kind := kindLarge
	if asked < smallMax {
		kind = kindSmall
	}
	b := (*block)(nil)
	if h.warmed >= settings.warmups {
		h.blind = true
		b = h.obtain(t, h.mainPool, kind, rounded(asked), asked, false)
		h.blind = false
	}
	at := uintptr(0)
	if b != nil {
		at = uintptr(b.address)
	}
	h.lock.Release()
	return at
}

// Give serves OpStreamFree on a device's primary context for a block that goes to its stream's
// exact-size bin. For any other block it does nothing and reports false.
func Give(token, device, stream, address uintptr) bool {
	h, t := primaryHeap(token, device, stream)
	if h == nil {
		return false
	}
	b := h.table.find(uint64(address))
	d := h.device
	ok := b != nil && b.state == stateInUse && b.events == nil && b.segment.kind != kindWhole &&
		b.segment.nonReusable == 0 &&
		b.segment.pool == h.mainPool && b.cache.dead == 0 && t.exacts < d.exactLimit &&
		d.eager == 0 && h.cached()+b.bytes <= h.cacheLimit() && !capturing()
	if ok {
		h.endUse(b)
		h.pushExact(t, b)
	}
	h.lock.Release()
	return ok
}
