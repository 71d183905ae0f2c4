package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A stream cache stands for a stream, and has the free blocks that only this stream may reuse at
// once: what it has been given before their free is done before what it is given later.
// The global cache of a pool has those that every stream may use.
//
// A block first goes to the exact-size bin for its size, as it is; exact-size bins are merged into
// the bins when there are too many in them, or when nothing is found.
//
//	free = Σ bytes of its blocks in exact-size bins and bins
//	exacts = blocks in exact-size bins <= device.exactLimit
//	live = blocks in use that were handed to the stream cache
type streamCache struct {
	raw.OffHeap
	stream uint64
	pool   *pool
	chain  *streamCache // the next in its place of heap.caches
	all    *streamCache // the next of all

	counted uintptr // address of the figure of its side that free is part of

	free   uint64
	live   uint64
	exacts uint64
	dead   uint64 // 1: the stream is gone

	// An event recorded on the stream when the heap's clock was fenced.
	fence   *streamEvent
	fenced  uint64
	fencing uint64 // 1: a request is about to record or query it
	visited uint64 // the last request that has looked at it

	exactMap uint64 // bit i: exact[i] is not empty
	exact    [64]*block
	bins     [4]bins // by kind
}

// Streams with a meaning of their own (CUstream, cuda.h), and numbers that are no stream.
const (
	streamLegacy    = 1          // 0, too
	streamPerThread = 2          // another one in each thread
	streamEvery     = ^uint64(0) // of a global cache
	streamNone      = streamEvery - 1
	streamPlaces    = 256
)

// ordered is the name under which a stream has its cache.
func ordered(stream uint64) uint64 {
	if stream == 0 {
		return streamLegacy
	}
	return stream
}

func streamPlace(stream uint64) uint64 { return stream * 0x9e3779b97f4a7c15 >> 56 }

// findCache returns the stream cache of a stream in a pool, or nil.
func (h *heap) findCache(stream uint64, p *pool) *streamCache {
	t := h.caches[streamPlace(stream)&(streamPlaces-1)]
	for t != nil && (t.stream != stream || t.pool != p || t.dead != 0) {
		t = t.chain
	}
	return t
}

// cacheOf returns the stream cache of a stream in a pool, a new one if need be; nil for the
// per-thread stream, whose name says not which it is, and when there is no memory.
func (h *heap) cacheOf(stream uint64, p *pool) *streamCache {
	if t := h.lastCache; t != nil && t.stream == stream && t.pool == p {
		return t
	}
	if stream == streamPerThread {
		return nil
	}
	t := h.findCache(stream, p)
	if t == nil {
		if t = h.newCache(stream, p); t == nil {
			return nil
		}
		place := &h.caches[streamPlace(stream)&(streamPlaces-1)]
		t.chain = *place
		*place = t
	}
	h.lastCache = t
	return t
}

// newCache makes a stream cache that is in heap.all only.
func (h *heap) newCache(stream uint64, p *pool) *streamCache {
	t := h.spareCaches
	if t != nil {
		h.spareCaches = t.chain
	} else if t = (*streamCache)(raw.Ptr(h.arena.take(streamCacheBytes))); t == nil {
		return nil
	}
	t.stream, t.pool = stream, p
	t.chain, t.dead, t.fence, t.fenced, t.fencing, t.visited = nil, 0, nil, 0, 0, 0
	s := &h.count.side[p.spilled&1]
	t.counted = uintptr(unsafe.Pointer(&s.local))
	if p.global == nil {
		t.counted = uintptr(unsafe.Pointer(&s.private))
	}
	t.all = h.allCaches
	h.allCaches = t
	return t
}

// count adds n bytes to the figure of the stream cache's free blocks.
func (t *streamCache) count(n uint64) { raw.Store(t.counted, raw.Load(t.counted)+uintptr(n)) }

// endCache ends a stream cache: no request finds it by its stream any more.
func (h *heap) endCache(t *streamCache) {
	at := &h.caches[streamPlace(t.stream)&(streamPlaces-1)]
	for *at != nil && *at != t {
		at = &(*at).chain
	}
	if *at == t {
		*at = t.chain
	}
	t.dead = 1
	if h.lastCache == t {
		h.lastCache = nil
	}
	h.recycleCache(t)
}

// recycleCache keeps the descriptor of a dead stream cache for reuse once nothing refers to it.
// (Its lists are empty then.) Blocks of a private pool, held or pending ones too, go back to their
// stream cache.
func (h *heap) recycleCache(t *streamCache) {
	if t.dead == 0 || t.live != 0 || t.free != 0 || t.fencing != 0 ||
		t.pool.global == nil && t.pool.dissolved == 0 {
		return
	}
	at := &h.allCaches
	for *at != nil && *at != t {
		at = &(*at).all
	}
	if *at != t {
		return // buried before
	}
	*at = t.all
	if t.fence != nil {
		h.keepEvent(t.fence)
		t.fence = nil
	}
	t.chain = h.spareCaches
	h.spareCaches = t
}
