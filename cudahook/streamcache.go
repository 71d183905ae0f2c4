package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A stream cache holds the free blocks that only one stream may reuse at once: its work submitted
// before their free runs before its later work. The global cache of a pool holds those that every
// stream may use.
//
// A freed block first goes, unmerged, to the exact-size bin for its size. The exact-size bins are
// merged into the bins when they hold too many blocks, or when no block fits a request.
//
//	free = Σ bytes of its blocks in exact-size bins and bins
//	exacts = blocks in exact-size bins <= device.exactLimit
//	live = blocks in use that were handed to the stream cache
type streamCache struct {
	raw.OffHeap
	stream uint64
	pool   *pool
	chain  *streamCache // the next in its bucket of streamTable.caches
	all    *streamCache // the next in heap.allCaches

	counted uintptr // address of the figure in counts.side that includes free

	free   uint64
	live   uint64
	exacts uint64
	dead   uint64 // 1: the stream was destroyed

	// fence is an event that was recorded on the stream when the heap's clock was fenced.
	fence   *streamEvent
	fenced  uint64
	fencing uint64 // 1: a request is about to record or query it
	visited uint64 // the last request that visited it

	exactMap uint64 // bit i: exact[i] is not empty
	exact    [64]*block
	bins     [4]bins // by kind
}

// A streamTable has what a heap knows of streams, by their hash.
type streamTable struct {
	raw.OffHeap
	naming [streamPlaces]uint64       // requests that are about to pass such a stream to the driver
	caches [streamPlaces]*streamCache // a chain of them
}

// Special streams (CUstream, cuda.h), and values that are not a stream.
const (
	streamLegacy    = 1          // 0 means the same
	streamPerThread = 2          // a different stream in each thread
	streamEvery     = ^uint64(0) // of a global cache
	streamNone      = streamEvery - 1
	streamPlaces    = 256
)

// ordered returns the stream that a cache is kept under: streamLegacy for 0.
func ordered(stream uint64) uint64 {
	if stream == 0 {
		return streamLegacy
	}
	return stream
}

func streamPlace(stream uint64) uint64 { return stream * 0x9e3779b97f4a7c15 >> 56 }

// findCache returns the stream cache of a stream in a pool, or nil.
func (h *heap) findCache(stream uint64, p *pool) *streamCache {
	t := h.streams.caches[streamPlace(stream)&(streamPlaces-1)]
	for t != nil && (t.stream != stream || t.pool != p || t.dead != 0) {
		t = t.chain
	}
	return t
}

// cacheOf returns the stream cache of a stream in a pool, a new one if there is none. It returns
// nil for the per-thread stream, whose handle does not say which stream it is, and when there is no
// memory.
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
		place := &h.streams.caches[streamPlace(stream)&(streamPlaces-1)]
		t.chain = *place
		*place = t
	}
	h.lastCache = t
	return t
}

// newCache makes a stream cache that is on heap.allCaches only.
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

// endCache ends a stream cache. No request finds it by its stream any more.
func (h *heap) endCache(t *streamCache) {
	at := &h.streams.caches[streamPlace(t.stream)&(streamPlaces-1)]
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

// recycleCache keeps the descriptor of a dead stream cache for reuse once nothing refers to it; its
// lists are empty then. The cache of a private pool stays until the pool is dissolved, because
// blocks of the pool, held or pending ones too, return to their stream cache.
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
		return // recycled before
	}
	*at = t.all
	if t.fence != nil {
		h.keepEvent(t.fence)
		t.fence = nil
	}
	t.chain = h.spareCaches
	h.spareCaches = t
}
