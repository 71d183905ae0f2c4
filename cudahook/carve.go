package cudahook

// Free pieces of expandable segments are returned to the driver one run at a time, cut out of the
// free block that they lie in. All work on that block has to be done: cuMemUnmap, unlike cuMemFree,
// does not wait.

// pieces returns the pieces that lie in the free block b as a whole.
func (h *heap) pieces(b *block) (from, to uint64) {
	s := b.segment
	v := s.addresses
	end := b.address + b.bytes
	from = v.first(b.address, end)
	if to = end; end != s.address+s.bytes {
		to = v.last(from, end)
	}
	return from, to
}

// globalPiece returns a block of the global cache with whole pieces, one of the largest, or nil.
func (h *heap) globalPiece() *block {
	k := &h.mainPool.global.bins[kindLarge]
	for i := uint(len(k.head)); i > binOf(mapUnit); i-- {
		for b := k.head[(i-1)&1023]; b != nil; b = b.next {
			if h.hasPiece(b) {
				return b
			}
		}
	}
	return nil
}

// hasPiece reports whether a free block has whole pieces.
func (h *heap) hasPiece(b *block) bool {
	if b.segment.addresses == nil {
		return false
	}
	from, to := h.pieces(b)
	return from < to
}

// anyPiece returns a free block with whole pieces, or nil.
func (h *heap) anyPiece() *block { return h.pieceUnused(0) }

// carve makes whole pieces of a block of the global cache a segment of their own: about so many
// bytes, if there are more. It returns nil if b is nil or there is no memory for the descriptors.
// Precondition: the block has whole pieces.
func (h *heap) carve(b *block, most uint64) *segment {
	if b == nil {
		return nil
	}
	from, to := h.pieces(b)
	if to-from > most {
		if at := b.segment.addresses.last(from, to-max(most, 1)); at > from {
			from = at
		}
	}
	s := b.segment
	if from > s.address {
		if s = h.cut(b, from); s == nil {
			return nil
		}
	}
	if to < s.address+s.bytes && h.cut(s.first, to) == nil {
		return nil
	}
	return s
}

// cut ends the segment of the free block b at an address in it, where a piece begins. The rest
// becomes a segment of its own. cut returns it, or nil if there is no memory to describe it.
func (h *heap) cut(b *block, at uint64) *segment {
	s, t := b.segment, b.cache
	n := h.newSegment()
	c := (*block)(nil)
	if n != nil && at != b.address && at != b.address+b.bytes {
		if c = h.newBlock(); c == nil {
			h.dropSegment(n)
			return nil
		}
	}
	if n == nil {
		return nil
	}
	n.address, n.bytes = at, s.address+s.bytes-at
	n.kind, n.pool, n.addresses, n.nonReusable = s.kind, s.pool, s.addresses, s.nonReusable
	if !h.index.add(n) {
		h.dropSegment(n)
		if c != nil {
			h.dropBlock(c)
		}
		return nil
	}
	h.unbin(b)
	first := b
	switch {
	case c != nil:
		c.address, c.bytes, c.number, c.since = at, b.address+b.bytes-at, b.number, b.since
		if !h.table.add(c) {
			h.index.remove(n)
			h.dropSegment(n)
			h.dropBlock(c)
			h.bin(b, t)
			return nil
		}
		b.bytes = at - b.address
		c.before, c.after = b, b.after
		if c.after != nil {
			c.after.before = c
		}
		b.after = c
		if s.last == b {
			s.last = c
		}
		first = c
	case at == b.address+b.bytes:
		first = b.after
	}
	n.first, n.last = first, s.last
	s.last = first.before
	s.last.after, first.before = nil, nil
	s.bytes -= n.bytes
	for x := first; x != nil; x = x.after {
		x.segment = n
	}
	h.count.segments++
	h.bin(b, t)
	if c != nil {
		h.bin(c, t)
	}
	return n
}

// pieceUnused returns a free block with whole pieces that was not used for so many nanoseconds, or
// nil.
func (h *heap) pieceUnused(age uint64) *block {
	for t := h.allCaches; t != nil; t = t.all {
		if t.pool != h.mainPool || t.free < mapUnit {
			continue
		}
		k := &t.bins[kindLarge]
		for i := binOf(mapUnit); i < uint(len(k.head)); i++ {
			if k.parts[i>>partBits&31] == 0 {
				continue
			}
			for b := k.head[i&1023]; b != nil; b = b.next {
				if b.since == 0 {
					b.since = h.now
				}
				if h.now-min(b.since, h.now) >= age && h.hasPiece(b) {
					return b
				}
			}
		}
	}
	return nil
}
