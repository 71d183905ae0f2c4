package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// A huge block that was coalesced from several cached ones (coalesce.go) is several mappings to the
// kernel, its parts, one behind the other; it resizes and moves none of them together with another.
// The descriptors of all but the first hang on that of the block by next, and are in no map.
//
//	Start < next.Start < next.next.Start < … < Start + Size; at most hugeExtents in all
//	pool.extents = Σ parts of live and cached blocks beyond their first
//
// A process may have 65,530 mappings; most of them are the program's.
const (
	hugeExtents = 8
	extentsAll  = 2048 // of pool.extents, at most
)

// extentEnd is where the part of q ends, in a block that ends at end.
func extentEnd(q *Page, end uintptr) uintptr {
	if q.next != nil {
		return q.next.Start
	}
	return end
}

// extents is how many mappings the block of p is.
func (p *Page) extents() (n uintptr) {
	for ; p != nil && n < hugeExtents; p = p.next {
		n++
	}
	return n
}

// lastExtent is the part of p that ends where the block does.
func (p *Page) lastExtent() *Page {
	for p.next != nil {
		p = p.next
	}
	return p
}

// extentsFrom takes the parts of p that begin at end or behind it off the block, and returns them.
func (p *Page) extentsFrom(end uintptr) (rest *Page) {
	for p.next != nil && p.next.Start < end {
		p = p.next
	}
	rest, p.next = p.next, nil
	return rest
}

// dropExtents forgets parts, of which no block begins with the first, that are no block's any more.
// Precondition: poolLock is held.
func dropExtents(q *Page) {
	for q != nil {
		next := q.next
		freeDescriptor(q)
		pool.extents--
		q = next
	}
}

// moveExtents moves what the block of p has to the size bytes reserved at to, where the last part
// becomes as much longer as those are more. It reports false, with the block as it was and nothing
// reserved at to, when the kernel refuses. (What the program has made read-only of it is writable
// then.) Precondition: the block is of several parts, and held.
func moveExtents(token uintptr, p *Page, to, size uintptr) bool {
	end := p.Start + p.Size
	more := size - p.Size
	// so it would not lengthen the last part when the others have moved
	if more != 0 && !mappable(more) {
		unmapFresh(to, size)
		return false
	}
	for q := p; q != nil; q = q.next {
		n := extentEnd(q, end) - q.Start
		at := to + q.Start - p.Start
		errno := uintptr(0)
		if q.next != nil { // empty, its addresses stay mapped until all have moved
			errno = raw.MoveContents(q.Start, n, at)
		} else {
			n += more
			errno = raw.Move(q.Start, n-more, n, at)
		}
		if errno == 0 {
			continue
		}
		for back := p; back != q; back = back.next {
			n := back.next.Start - back.Start
			raw.Allow(back.Start, n)
			copyBack(token, back.Start, to+back.Start-p.Start, n, p.placement)
		}
		if at+n < to+size {
			unmapFresh(at+n, to+size-at-n)
		}
		return false
	}
	from := p.Start
	giveBackBarred(token, from, p.lastExtent().Start-from, p.placement)
	for q := p; q != nil; q = q.next {
		q.Start += to - from
	}
	return true
}

// mappable reports whether the kernel has memory for n bytes.
func mappable(n uintptr) bool {
	at := raw.Map(n)
	if at != 0 {
		unmapFresh(at, n)
	}
	return at != 0
}

var extentsKnown uintptr // what extentsMost has found out, or 0

// extentsMost is how many parts a block may have: one before Linux 5.7, where several could not be
// moved together without the risk to lose some.
func extentsMost() uintptr {
	most := atomic.LoadUintptr(&extentsKnown)
	if most == 0 {
		most = 1
		page := raw.Map(raw.Page)
		if page == 0 {
			return most
		}
		if to := raw.Reserve(raw.Page); to != 0 && raw.MoveContents(page, raw.Page, to) == 0 {
			unmapFresh(to, raw.Page)
			most = hugeExtents
		}
		unmapFresh(page, raw.Page)
		atomic.StoreUintptr(&extentsKnown, most)
	}
	return most
}
