package cudahook

// trim gives cached memory back until r.Bytes are left, after all pending frees.
func (h *heap) trim(r *Request) uint64 {
	if capturing() {
		return r.done(Success)
	}
	if !r.has(triedSync) && !r.has(triedFlush) {
		r.set(triedFlush)
		if action := h.syncAll(r); action != goOn {
			return action
		}
	}
	if s := h.idleFirst; s != nil && h.cached()+h.count.side[1].global > r.Bytes {
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

// ready is how many blocks of a size the idle segments hold, besides those of other sizes
// that they were mapped for in the same warm-up.
func (h *heap) ready(bytes, kind uint64) (blocks uint64) {
	n := rounded(bytes)
	for s := h.idleFirst; s != nil; s = s.next {
		if s.kind != kind || s.pool != h.mainPool {
			continue
		}
		if kind != kindWhole {
			blocks += s.bytes / max(n, granule)
		} else if s.bytes >= n && s.bytes-s.bytes/8 <= mapRounded(n) {
			blocks++
		}
	}
	n = max(n, granule)
	promised := (h.promised[kind&3] + n - 1) / n
	return blocks - min(blocks, promised)
}

// promise notes that count blocks of a size are there for the warm-up.
func (h *heap) promise(bytes, count, kind uint64) {
	if kind = warmKind(bytes, kind); kind != kindWhole {
		h.promised[kind&3] += rounded(bytes) * count
	}
}

// warm maps one segment more for count blocks of a size. goOn: they are there, or there is
// no room.
func (h *heap) warm(r *Request, bytes, count, kind uint64) uint64 {
	kind = warmKind(bytes, kind)
	if bytes == 0 || bytes > maxRequest || r.has(short) || h.ready(bytes, kind) >= count {
		r.unset(warming | short)
		return goOn
	}
	n := max(rounded(bytes), granule)
	size := h.device.segmentBytes(kind, n, false)
	if h.device.over(size) || !h.device.charge(size) {
		r.unset(warming)
		return goOn
	}
	r.set(warming)
	r.keep2 = max(size/n, 1)
	return h.mapSegment(r, h.mainPool, kind, size)
}

// warmFailed gives the warm-up up: it is not worth what others have in use.
func (h *heap) warmFailed(r *Request) {
	r.unset(warming)
	r.keep2 = 0
	if r.Op == OpWarmup {
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
		h.promise(w.Bytes, w.Count, kind)
		h.warmed++
	}
	return goOn
}

// warmup serves OpWarmup: blocks for stream-ordered requests. A hint tells that it is the
// first size of a list.
func (h *heap) warmup(r *Request) uint64 {
	if r.Hint != 0 {
		h.promised = [4]uint64{}
		r.Hint = 0
	}
	if r.Bytes == 0 || r.Bytes > maxRequest {
		return r.done(ErrorInvalidValue)
	}
	failed := r.has(short)
	if action := h.warm(r, r.Bytes, r.Count, kindLarge); action != goOn {
		return action
	}
	if failed || h.ready(r.Bytes, warmKind(r.Bytes, kindLarge)) < r.Count {
		return r.done(ErrorOutOfMemory)
	}
	h.promise(r.Bytes, r.Count, kindLarge)
	return r.done(Success)
}
