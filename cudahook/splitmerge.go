package cudahook

// joins reports whether the free block a may be merged with a block that goes to stream cache t. A
// block of the global cache may become part of a stream's block, because every stream may use it.
func (a *block) joins(t *streamCache) bool {
	return a != nil && a.state == stateFree && (a.cache == t || a.cache == t.pool.global)
}

// give puts a block in the bins of a stream cache, merged with its neighbours. Precondition: it is
// on no list; its number is the clock of its free; t is of its segment's pool.
func (h *heap) give(b *block, t *streamCache) {
	// A global neighbour may be followed by one of the stream cache: the loops run at most three
	// times.
	for a := b.before; a.joins(t); a = b.before {
		h.unbin(a)
		h.merge(a, b)
		b = a
	}
	for c := b.after; c.joins(t); c = b.after {
		h.unbin(c)
		h.merge(b, c)
	}
	h.bin(b, t)
}

// merge makes b part of a, its neighbour before it.
func (h *heap) merge(a, b *block) {
	if b.bytes > a.bytes {
		a.since = b.since
	}
	a.bytes += b.bytes
	a.number = max(a.number, b.number)
	a.after = b.after
	if a.after != nil {
		a.after.before = a
	} else {
		a.segment.last = a
	}
	h.table.remove(b)
	h.dropBlock(b)
	h.count.merges++
}

// bin puts a block in the bins of a stream cache as it is.
func (h *heap) bin(b *block, t *streamCache) {
	b.state, b.cache = stateFree, t
	t.bins[b.segment.kind&3].add(b)
	t.free += b.bytes
	t.count(b.bytes)
	if t == t.pool.global {
		h.count.globals++
	}
	if b.bytes == b.segment.bytes && t.pool.global != nil && b.segment.addresses == nil {
		h.setIdle(b.segment)
	}
}

// unbin takes a block out of its bins.
func (h *heap) unbin(b *block) {
	t := b.cache
	t.bins[b.segment.kind&3].remove(b)
	t.free -= b.bytes
	t.count(-b.bytes)
	if t == t.pool.global {
		h.count.globals--
	}
	if b.bytes == b.segment.bytes {
		h.unsetIdle(b.segment)
	}
}

// fit returns a block of a stream cache for n bytes, or nil: the best fit, or the first with
// ConfigStrategy 1.
func (h *heap) fit(t *streamCache, kind, n uint64) *block {
	b := t.bins[kind&3].find(n, h.device.firstFit != 0)
	if b == nil || b.segment.nonReusable != 0 || kind == kindWhole && b.bytes-b.bytes/8 > n {
		return nil
	}
	return b
}

// fitting returns the smaller of the blocks of two stream caches that fit n bytes, and its cache.
// Either cache may be nil.
func (h *heap) fitting(own, global *streamCache, kind, n uint64) (b *block, from *streamCache) {
	if own != nil {
		b, from = h.fit(own, kind, n), own
	}
	if global != nil {
		if c := h.fit(global, kind, n); c != nil && (b == nil || c.bytes < b.bytes) {
			return c, global
		}
	}
	return b, from
}

// split cuts a block to n bytes and puts the rest in stream cache t. It reports false if it does
// not split: the kind forbids it, or the rest is too small.
func (h *heap) split(b *block, n uint64, t *streamCache) bool {
	rest := b.bytes - n
	kind := b.segment.kind
	if rest == 0 || kind == kindWhole || kind == kindLarge && rest <= splitRest {
		return false
	}
	c := h.newBlock()
	if c == nil {
		return false
	}
	c.address, c.bytes, c.number, c.segment = b.address+n, rest, b.number, b.segment
	c.since = b.since
	if !h.table.add(c) {
		h.dropBlock(c)
		return false
	}
	c.before, c.after = b, b.after
	if c.after != nil {
		c.after.before = c
	} else {
		c.segment.last = c
	}
	b.after = c
	b.bytes = n
	h.bin(c, t)
	h.count.splits++
	return true
}

// free puts a block that is on no list in the global cache, or, in a private pool, in the stream
// cache that it was handed out from. Precondition: all work submitted before its free is done.
func (h *heap) free(b *block) {
	t := b.segment.pool.global
	if t == nil {
		t = b.cache
	}
	h.give(b, t)
}

// promote moves the blocks of a stream cache that were freed when the heap's clock was at most
// until to the global cache. Precondition: the stream's work from before then is done, and the
// exact-size bins are empty.
func (h *heap) promote(t *streamCache, until uint64) {
	global := t.pool.global
	if global == nil || global == t {
		return
	}
	for kind := range t.bins {
		k := &t.bins[kind]
		for i := range k.head {
			if k.parts[i>>partBits&31] == 0 {
				continue
			}
			// give merges with global neighbours only, so next stays in this list.
			for b := k.head[i]; b != nil; {
				next := b.next
				if b.number <= until {
					h.unbin(b)
					h.give(b, global)
				}
				b = next
			}
		}
	}
}
