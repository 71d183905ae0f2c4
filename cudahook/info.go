package cudahook

import "sync/atomic"

// rangeOf answers which block an address lies in.
func (h *heap) rangeOf(r *Request) Action {
	b := h.blockAt(r.Address)
	switch {
	case b == nil || b.state == stateForeign:
		return ActPass
	case b.state != stateInUse:
		return r.done(ErrorInvalidValue)
	case r.Address-b.address >= max(b.asked, 1):
		return r.done(ErrorInvalidValue)
	}
	r.Value, r.Extra, r.Number = b.address, b.asked, b.number
	return r.done(Success)
}

// informedOf takes the driver's answer to OpInfo.
func (h *heap) informedOf(r *Request) Action {
	if r.Result != Success {
		return r.done(r.Result)
	}
	return h.info(r)
}

// info turns the driver's figures into what the program may allocate. Cached memory counts as free.
// So do pending frees, because an allocation that needs them waits for them. A cap counts as the
// device's size.
//
//	cached = local + global + pending
//	used = reserved - cached
//	free = min(free + cached, hard - used), total = min(total, hard)
//	in a group hard is, for free, reserved + what the group leaves
//
// The driver counts managed memory only once it was touched:
//
//	managed: free = min(free, total - (used - foreign)), too
func (h *heap) info(r *Request) Action {
	cached := h.cached() + h.count.side[0].pending
	r.Value += cached
	if d := h.device; atomic.LoadUint64(&d.managed) != 0 {
		reserved := atomic.LoadUint64(&d.reserved)
		ours := reserved - min(cached+atomic.LoadUint64(&d.foreign), reserved)
		r.Value = min(r.Value, r.Extra-min(ours, r.Extra))
	}
	if hard := h.device.hard; hard < r.Extra {
		used := atomic.LoadUint64(&h.device.reserved) - cached
		now := h.device.hardNow()
		r.Extra = hard
		r.Value = min(r.Value, now-min(used, now))
	}
	r.Value = min(r.Value, r.Extra)
	return r.done(Success)
}

// largest returns the size of the largest free block on the device.
func (h *heap) largest() (n uint64) {
	for t := h.allCaches; t != nil; t = t.all {
		if t.pool.spilled != 0 || t.pool.global == nil || t.free <= n {
			continue
		}
		for kind := range t.bins {
			for b := t.bins[kind].last(); b != nil; b = b.next {
				n = max(n, b.bytes)
			}
		}
		for i := range t.exact {
			for b := t.exact[i]; b != nil; b = b.next {
				n = max(n, b.bytes)
			}
		}
	}
	return n
}

// poolFigures gives the heap's figures as those of the driver's default pool.
func (h *heap) poolFigures(r *Request) Action {
	c := &h.count
	r.Value, r.Extra = c.side[0].live+c.side[1].live, c.reserved
	r.OnBytes, r.OnUsed = c.livePeak, c.reservedPeak
	if r.Count&1 != 0 {
		c.livePeak = r.Value
	}
	if r.Count&2 != 0 {
		c.reservedPeak = r.Extra
	}
	return r.done(Success)
}
