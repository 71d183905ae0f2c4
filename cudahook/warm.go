package cudahook

// trim waits for all pending frees and then unmaps cached memory until r.Bytes are left. Value is
// the bytes that stay cached.
func (h *heap) trim(r *Request) Action {
	r.Value = h.cached() + h.count.side[1].global
	if capturing() {
		return r.done(Success)
	}
	if !r.has(triedSync) && !r.has(triedFlush) {
		r.set(triedFlush)
		if action := h.syncAll(r); action != goOn {
			return action
		}
	}
	r.Value = h.cached() + h.count.side[1].global
	if s := h.spareHost(nil); s != nil {
		return h.freeHost(r, s)
	}
	if r.Value > r.Bytes {
		s := h.idleFirst
		if s == nil {
			s = h.idleOn(0, r.Value-r.Bytes)
		}
		if s != nil {
			return h.unmap(r, s)
		}
	}
	return r.done(Success)
}

// warmKind returns the kind of the segments for blocks of a size.
func warmKind(bytes, kind uint64) uint64 {
	if bytes < smallMax {
		return kindSmall
	}
	if kind == kindWhole {
		return kindWhole
	}
	return kindLarge
}

// blocksIn returns how many blocks of n bytes a free block can provide for a warm-up that would map
// segments of size bytes. Bytes that the same warm-up has claimed do not count.
func (h *heap) blocksIn(b *block, n, size, kind uint64) (blocks uint64) {
	if b.segment.kind != kind || b.segment.pool != h.mainPool {
		return 0
	}
	left := b.bytes
	if b.claim == h.round {
		left -= b.claimed
	}
	switch {
	case kind != kindWhole:
		return left / max(n, granule)
	case left == b.bytes && b.bytes >= n && b.bytes-b.bytes/8 <= size:
		return 1
	}
	return 0
}

// claim claims count blocks of a size in idle segments and free blocks of expandable ones. If they
// have too few it claims none and reports false.
func (h *heap) claim(bytes, count, kind uint64) bool {
	n := max(rounded(bytes), granule)
	size := h.device.segmentBytes(kind, n, false)
	if h.claimUpTo(n, size, count, kind, false) < count {
		return false
	}
	h.claimUpTo(n, size, count, kind, true)
	return true
}

// claimUpTo returns how many blocks of n bytes there are, up to count. With take it claims them.
func (h *heap) claimUpTo(n, size, count, kind uint64, take bool) (found uint64) {
	for s := h.idleFirst; s != nil && found < count; s = s.next {
		found += h.claimIn(s.first, n, size, count-found, kind, take)
	}
	if kind != kindLarge {
		return found
	}
	for t := h.allCaches; t != nil; t = t.all {
		if t.pool != h.mainPool {
			continue
		}
		k := &t.bins[kindLarge]
		for i := range k.head {
			for b := k.head[i]; b != nil && found < count; b = b.next {
				if b.segment.addresses != nil {
					found += h.claimIn(b, n, size, count-found, kind, take)
				}
			}
		}
	}
	return found
}

// claimIn is claimUpTo for one free block.
func (h *heap) claimIn(b *block, n, size, count, kind uint64, take bool) uint64 {
	k := min(h.blocksIn(b, n, size, kind), count)
	if k == 0 || !take {
		return k
	}
	if b.claim != h.round {
		b.claim, b.claimed = h.round, 0
	}
	b.claimed += k * n
	if kind == kindWhole {
		b.claimed = b.bytes
	}
	return k
}

// warm maps one more segment for count blocks of a size. goOn: the blocks are claimed (readied), or
// there is no room.
func (h *heap) warm(r *Request, bytes, count, kind uint64) Action {
	kind = warmKind(bytes, kind)
	if bytes == 0 || bytes > maxRequest || r.has(short) {
		r.unset(warming | short)
		return goOn
	}
	if h.claim(bytes, count, kind) {
		r.unset(warming)
		r.set(readied)
		return goOn
	}
	n := max(rounded(bytes), granule)
	size := h.device.segmentBytes(kind, n, r.Op == OpWarmup && r.has(tight))
	if !h.device.chargeWarm(size) {
		if size = h.device.segmentBytes(kind, n, true); !h.device.chargeWarm(size) {
			r.unset(warming)
			return goOn
		}
	}
	r.set(warming)
	r.warmBlocks = max(size/n, 1)
	return h.mapSegment(r, h.mainPool, kind, size)
}

// chargeWarm charges a segment to the device. It reports false if the segment would exceed a cap.
func (d *device) chargeWarm(size uint64) bool { return !d.over(size) && d.chargeSegment(size) }

// warmFailed makes OpWarmup try the smallest segments next, and ends any other warm-up. A warm-up
// does not evict or wait for memory.
func (h *heap) warmFailed(r *Request) {
	r.unset(warming)
	r.warmBlocks = 0
	if r.Op == OpWarmup {
		n := max(rounded(r.Bytes), granule)
		if kind := warmKind(r.Bytes, kindLarge); !r.has(tight) &&
			h.device.segmentBytes(kind, n, false) != h.device.segmentBytes(kind, n, true) {
			r.set(tight)
			return
		}
		r.set(short)
		return
	}
	h.warmed = settings.warmups
}

// warmNext maps the next segment that TA_CUDA_WARMUP asks for. goOn: all are mapped. kind is that
// of the current request, because a program's next calls are likely to be like it.
func (h *heap) warmNext(r *Request, kind uint64) Action {
	if kind == kindSmall && r.Op == OpAlloc && !settings.all {
		kind = kindWhole
	}
	for h.warmed < settings.warmups {
		w := &settings.warm[h.warmed&15]
		if action := h.warm(r, w.Bytes, w.Count, kind); action != goOn {
			return action
		}
		h.warmed++
	}
	return goOn
}

// warmup serves OpWarmup: blocks for stream-ordered requests. Hint 1 marks the first size of a
// list.
func (h *heap) warmup(r *Request) Action {
	if r.Bytes == 0 || r.Bytes > maxRequest {
		return r.done(ErrorInvalidValue)
	}
	if r.Hint != 0 {
		h.round++
		h.flushAll() // blocks in exact-size bins are free memory, too
		r.Hint = 0
	}
	if action := h.warm(r, r.Bytes, r.Count, kindLarge); action != goOn {
		return action
	}
	if !r.has(readied) {
		return r.done(ErrorOutOfMemory)
	}
	return r.done(Success)
}
