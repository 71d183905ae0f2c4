package alloc

import "tieralloc/internal/raw"

// A block that a program lengthens by realloc, as a buffer is filled, grows into the memory that
// freed huge blocks have left in the cache. Otherwise a program that fills one buffer after another
// would fault in each of them while the last ones are still resident.
//
// It is copied to the front of a cached block in which it has room to double, and the rest of that
// stays cached. From then on it absorbs what it needs of the rest, without a call of the kernel.

// growCached makes the mapping of the block of p n bytes long with memory of the cache alone. It
// returns its address, or 0: it may be longer than before, but not n bytes. p.lead does not change.
func (h *Heap) growCached(p *Page, n uintptr) uintptr {
	size := raw.RoundUp(n, SliceSize)
	if pool.cache.n == 0 || n <= p.Size || p.unmigrated != 0 || p.Hint >= hintMoved ||
		!canCoalesce(uintptr(p.placement), size) {
		return 0
	}
	token := h.Thread.token
	if p.state == spanHuge && pinMigration(token, p) {
		absorbed := p.absorb(token, size)
		unpinMigration(token, p)
		switch {
		case p.Size >= size:
			return p.Start
		case absorbed:
			return 0 // the kernel may lengthen it further
		}
	}
	q := roomyHuge(token, p, size)
	if q == nil {
		return 0
	}
	h.Calls[CallReallocAllocs]++
	h.Calls[CallReallocFrees]++
	lead, from := p.lead(), p.block()
	q.Gap = uint16(lead)
	to := q.Start // from now on q may be moved
	raw.Copy(to+lead, from, min(p.usable(from), size-lead))
	Free(h, from, HowAny, NoSize, 0)
	return to
}
