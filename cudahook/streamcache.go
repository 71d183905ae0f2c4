package cudahook

import (
	"math/bits"
	"unsafe"

	"tieralloc/internal/raw"
)

// A tag stands for a stream, and has the free blocks that only this stream may reuse at
// once: what it has been given before their free is done before what it is given later.
// The global tag of a pool has those that every stream may use.
//
// A block first goes to the quick list for its size, as it is; quick lists are merged into
// the bins when there are too many in them, or when nothing is found.
//
//	free = Σ bytes of the tag's blocks in quick lists and bins
//	quicks = blocks in quick lists <= device.quicks
//	live = blocks in use that were handed to the tag
type tag struct {
	raw.OffHeap
	stream uint64
	pool   *pool
	chain  *tag // the next in its place of heap.tags
	all    *tag // the next of all

	counted uintptr // address of the figure of its side that free is part of

	free   uint64
	live   uint64
	quicks uint64
	dead   uint64 // 1: the stream is gone

	// An event recorded on the stream when the heap's clock was fenced.
	fence   *mark
	fenced  uint64
	fencing uint64 // 1: a request is about to record or query it
	visited uint64 // the last request that has looked at it

	quicked uint64 // bit i: quick[i] is not empty
	quick   [64]*block
	bins    [4]bins // by kind
}

// Streams with a meaning of their own (CUstream, cuda.h), and numbers that are no stream.
const (
	streamLegacy    = 1          // 0, too
	streamPerThread = 2          // another one in each thread
	streamEvery     = ^uint64(0) // of a global tag
	streamNone      = streamEvery - 1
	tagPlaces       = 256
)

// ordered is the name under which a stream has its tag.
func ordered(stream uint64) uint64 {
	if stream == 0 {
		return streamLegacy
	}
	return stream
}

func tagPlace(stream uint64) uint64 { return stream * 0x9e3779b97f4a7c15 >> 56 }

// findTag returns the tag of a stream in a pool, or nil.
func (h *heap) findTag(stream uint64, p *pool) *tag {
	t := h.tags[tagPlace(stream)&(tagPlaces-1)]
	for t != nil && (t.stream != stream || t.pool != p || t.dead != 0) {
		t = t.chain
	}
	return t
}

// tagOf returns the tag of a stream in a pool, a new one if need be; nil for the
// per-thread stream, whose name says not which it is, and when there is no memory.
func (h *heap) tagOf(stream uint64, p *pool) *tag {
	if t := h.last; t != nil && t.stream == stream && t.pool == p {
		return t
	}
	if stream == streamPerThread {
		return nil
	}
	t := h.findTag(stream, p)
	if t == nil {
		if t = h.newTag(stream, p); t == nil {
			return nil
		}
		place := &h.tags[tagPlace(stream)&(tagPlaces-1)]
		t.chain = *place
		*place = t
	}
	h.last = t
	return t
}

// newTag makes a tag that is in heap.all only.
func (h *heap) newTag(stream uint64, p *pool) *tag {
	t := h.spareTags
	if t != nil {
		h.spareTags = t.chain
	} else if t = (*tag)(raw.Ptr(h.arena.cut(tagBytes))); t == nil {
		return nil
	}
	t.stream, t.pool = stream, p
	t.chain, t.dead, t.fence, t.fenced, t.fencing, t.visited = nil, 0, nil, 0, 0, 0
	s := &h.count.side[p.spilled&1]
	t.counted = uintptr(unsafe.Pointer(&s.local))
	if p.global == nil {
		t.counted = uintptr(unsafe.Pointer(&s.private))
	}
	t.all = h.all
	h.all = t
	return t
}

// count adds n bytes to the figure of the tag's free blocks.
func (t *tag) count(n uint64) { raw.Store(t.counted, raw.Load(t.counted)+uintptr(n)) }

// kill ends a tag: no request finds it by its stream any more.
func (h *heap) kill(t *tag) {
	at := &h.tags[tagPlace(t.stream)&(tagPlaces-1)]
	for *at != nil && *at != t {
		at = &(*at).chain
	}
	if *at == t {
		*at = t.chain
	}
	t.dead = 1
	if h.last == t {
		h.last = nil
	}
	h.bury(t)
}

// bury keeps the descriptor of a dead tag for reuse once nothing refers to it. (Its lists
// are empty then.) Blocks of a private pool, held or pending ones too, go back to their tag.
func (h *heap) bury(t *tag) {
	if t.dead == 0 || t.live != 0 || t.free != 0 || t.fencing != 0 ||
		t.pool.global == nil && t.pool.dissolved == 0 {
		return
	}
	at := &h.all
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
	t.chain = h.spareTags
	h.spareTags = t
}

func quickPlace(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 >> 58 }

// pushQuick puts a block in its quick list. Precondition: the block is on no list.
func (h *heap) pushQuick(t *tag, b *block) {
	i := quickPlace(rounded(b.asked)) & 63
	head := &t.quick[i]
	t.quicked |= 1 << i
	b.state, b.tag = stateQuick, t
	b.next = *head
	*head = b
	t.quicks++
	t.free += b.bytes
	t.count(b.bytes)
}

const quickLook = 4 // sizes may share a list

// popQuick takes a block that was used for n bytes, a rounded size, or returns nil.
func (h *heap) popQuick(t *tag, n uint64) *block {
	place := quickPlace(n) & 63
	at := &t.quick[place]
	for i := 0; i < quickLook; i++ {
		b := *at
		if b == nil {
			return nil
		}
		if rounded(b.asked) == n {
			*at = b.next
			if t.quick[place] == nil {
				t.quicked &^= 1 << place
			}
			t.quicks--
			t.free -= b.bytes
			t.count(-b.bytes)
			return b
		}
		at = &b.next
	}
	return nil
}

// flush merges the quick lists of a tag into its bins.
func (h *heap) flush(t *tag) {
	if t.quicks == 0 {
		return
	}
	for ; t.quicked != 0; t.quicked &= t.quicked - 1 {
		head := &t.quick[bits.TrailingZeros64(t.quicked)&63]
		for *head != nil {
			b := *head
			*head = b.next
			t.free -= b.bytes
			t.count(-b.bytes)
			h.give(b, t)
		}
	}
	t.quicks = 0
}

// flushAll flushes all tags, and reports whether there was anything to merge.
func (h *heap) flushAll() (some bool) {
	h.flushed = h.now
	for t := h.all; t != nil; t = t.all {
		if t.quicks != 0 {
			h.flush(t)
			some = true
		}
	}
	return some
}
