package cudahook

// trim gives cached memory back until r.Bytes are left, after all pending frees. In Value
// it says how much that is.
func (h *heap) trim(r *Request) uint64 {
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
	if s := h.idleFirst; s != nil && r.Value > r.Bytes {
		return h.unmap(r, s)
	}
	return r.done(Success)
}

// warmKind is the kind of segments that blocks of a size come from.
func warmKind(bytes, kind uint64) uint64 {
	if bytes < smallMax {
		return kindSmall
	}
	if kind == kindWhole {
		return kindWhole
	}
	return kindLarge
}

// blocksIn is how many blocks of n bytes an idle segment has for a warm-up that would map segments
// of size bytes: besides those that the same warm-up counts on already.
func (h *heap) blocksIn(s *segment, n, size, kind uint64) (blocks uint64) {
	if s.kind != kind || s.pool != h.mainPool {
		return 0
	}
	left := s.bytes
	if s.claim == h.round {
		left -= s.claimed
	}
	switch {
	case kind != kindWhole:
		return left / max(n, granule)
	case kind == kindWhole && left == s.bytes && s.bytes >= n && s.bytes-s.bytes/8 <= size:
		return 1
	}
	return 0
}

// claim counts on count blocks of a size in the idle segments, or reports false and changes
// nothing when they have not so many.
func (h *heap) claim(bytes, count, kind uint64) bool {
	n := max(rounded(bytes), granule)
	size := h.device.segmentBytes(kind, n, false)
	found := uint64(0)
	for s := h.idleFirst; s != nil && found < count; s = s.next {
		found += h.blocksIn(s, n, size, kind)
	}
	if found < count {
		return false
	}
	for s := h.idleFirst; s != nil && count > 0; s = s.next {
		k := min(h.blocksIn(s, n, size, kind), count)
		if k == 0 {
			continue
		}
		if s.claim != h.round {
			s.claim, s.claimed = h.round, 0
		}
		s.claimed += k * n
		if kind == kindWhole {
			s.claimed = s.bytes
		}
		count -= k
	}
	return true
}

// warm maps one segment more for count blocks of a size. goOn: they are there, and counted
// on, or there is no room.
func (h *heap) warm(r *Request, bytes, count, kind uint64) uint64 {
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

// chargeWarm charges the device with a segment, or reports false where it would be over a cap.
func (d *device) chargeWarm(size uint64) bool { return !d.over(size) && d.chargeSegment(size) }

// warmFailed has the warm-up try segments that are no larger than need be, or gives it up: it is
// not worth what others have in use.
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

// warmNext maps the next segment that TA_CUDA_WARMUP asks for. goOn: all are done. kind
// is that of the request at hand: a program's calls tell what its next ones will be.
func (h *heap) warmNext(r *Request, kind uint64) uint64 {
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

// warmup serves OpWarmup: blocks for stream-ordered requests. A hint tells that it is the
// first size of a list.
func (h *heap) warmup(r *Request) uint64 {
	if r.Bytes == 0 || r.Bytes > maxRequest {
		return r.done(ErrorInvalidValue)
	}
	if r.Hint != 0 {
		h.round++
		h.flushAll() // what is in exact-size bins is idle memory, too
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
