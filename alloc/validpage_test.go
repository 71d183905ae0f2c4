package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// granules: the table of a nursery. remote has the granules on the remote list.
func (v *inspection) granules(p *Page, remote map[uintptr]bool) {
	t, left := p.table(), uint32(0)
	for u := uintptr(0); u < granuleCount; u++ {
		b := p.Start + u*sizeclass.Granule
		free, cont := t.free.has(u), t.cont.has(u)
		v.want(!free || !cont, "page %p: granule %d is free and continues", p, u)
		v.want(!cont || u > 0 && !t.free.has(u-1), "page %p: granule %d continues nothing", p, u)
		v.want(!free || !remote[b], "page %p: granule %d is free twice", p, u)
		switch {
		case free:
			left++
		case !cont && !remote[b]:
			v.live[sizeclass.Of(t.granulesOf(u)*sizeclass.Granule)]++
		}
	}
	v.want(left == t.left, "page %p: %d granules free, counted %d", p, left, t.left)
}

// blocks follows a list of free blocks of p, and returns its length.
func (v *inspection) blocks(p *Page, head uintptr, seen map[uintptr]bool) (n uint64) {
	for b := head; b != 0; b = encodeLink(b, raw.Load(b)) {
		if !v.want(p.isBlock(b) || secure && p.isSlot(b), "%#x on a list of page %p is no block", b,
			p) ||
			!v.want(!seen[b], "block %#x is twice on lists of page %p", b, p) {
			return n
		}
		v.want(raw.Load(b+8) == FreeKey, "free block %#x is not marked", b)
		seen[b] = true
		n++
	}
	return n
}

// subreleased parts: no block on a list starts in one. It returns how many others do.
func (v *inspection) subreleased(p *Page, listed map[uintptr]bool) (n uint64) {
	if secure {
		v.want(p.subreleased == 0, "page %p of slots has subreleased parts", p)
		return 0
	}
	fast := uint64(p.carved)
	if p.subreleased != 0 || p.isNursery() {
		fast = 0
	}
	v.want(
		p.Carved == fast,
		"page %p with subreleased parts %#x: carved %d, for the fast path %d",
		p,
		p.subreleased,
		p.carved,
		p.Carved,
	)
	for at := uintptr(0); at < uintptr(p.carved); at += p.stride() {
		if p.isSubreleased(p.Start + at) {
			v.want(
				!listed[p.Start+at],
				"%#x, in a subreleased part of page %p, is on a list",
				p.Start+at,
				p,
			)
			n++
		}
	}
	return n
}

// page: the equations of Page, and its place in its heap.
func (v *inspection) page(p *Page) {
	seen := map[uintptr]bool{}
	free := v.blocks(p, p.Free, seen)
	remote := v.blocks(p, p.Remote&RemoteAddr, seen)
	size, fence := sizeclass.Size(uintptr(p.Class)), uint64(0)
	magic := sizeclass.DivMagic(p.stride())
	if secure {
		magic, fence = 0, 1
	}
	v.want(p.Size == size && p.Magic == magic, "page %p of class %d: size %d", p, p.Class, p.Size)
	v.want(uintptr(p.slices) >= sizeclass.PageSlices(uintptr(p.Class)) ||
		Watching && sizeclass.Alone(uintptr(p.Class)), "page %p has %d slices", p,
		p.slices)
	v.want(p.Size <= ResizeMin || p.blocks == 1 || addressLimit != 0 || secure,
		"page %p has %d blocks of %d bytes: each is to be alone", p, p.blocks, p.Size)
	spread := p.Gap == sizeclass.Line && sizeclass.Spread(uintptr(p.Class)) && !secure &&
		!heapOf(p.Owner).unspread
	v.want(spread || p.Gap == 0 && p.Start == p.spanStart(),
		"page %p of class %d begins at %#x, with gaps of %d bytes", p, p.Class, p.Start, p.Gap)
	stride := uint64(p.stride())
	room := uint64(p.blocks) * stride
	carved, holed := uint64(p.carved), v.subreleased(p, seen)
	if p.isNursery() {
		v.want(free == 0, "page %p, a nursery, has a list", p)
		free = uint64(p.table().left)
	}
	if secure {
		carved = p.Carved
	}
	v.want(carved <= room && room+uint64(p.Start-p.spanStart()) <= uint64(p.bytes()),
		"page %p: %d blocks, %d bytes carved", p, p.blocks, carved)
	v.want(remote == p.remoteCount(), "page %p: %d blocks on the remote list, counted %d", p,
		remote, p.remoteCount())
	v.want(carved == stride*(fence+p.Allocs-p.Frees+free+holed),
		"page %p: carved %d bytes, allocs %d, frees %d, free %d, in subreleased parts %d",
		p, carved, p.Allocs, p.Frees, free, holed)
	live := p.Allocs - p.Frees - remote
	v.want(live <= uint64(p.blocks) && v.cached[p] <= live, "page %p: %d live, %d cached", p,
		live, v.cached[p])
	if p.isNursery() {
		v.granules(p, seen)
	} else {
		v.live[p.Class] += live - v.cached[p]
	}

	h := heapOf(p.Owner)
	v.pages[h.Thread]++
	v.want(v.threads[h.Thread] && h.known(), "page %p has owner %#x", p, p.Owner)
	v.want(p.Hint == h.Hint, "page %p is for hint %d, its heap for %d", p, p.Hint, h.Hint)
	inFlight := p.Remote&RemoteInFlight != 0
	v.want(inFlight == (v.pending[p] == h), "page %p: in flight %v, pending for %p", p, inFlight,
		v.pending[p])
	if p.Owner&OwnerFull != 0 {
		v.want(v.onList[p] == nil && p.Free == 0, "full page %p is on a list, or has a free block",
			p)
		v.want(inFlight || p.Remote == RemoteNotify, "full page %p does not ask for news", p)
	} else {
		v.want(v.onList[p] == h, "page %p is on no list of its heap", p)
		v.want(p.Remote&RemoteNotify == 0, "page %p on a list asks for news", p)
	}
}

// known reports whether the thread finds its heap.
func (h *Heap) known() bool {
	switch base := h.Thread.Heaps[h.Hint]; {
	case base == h:
		return true
	case h.sampled:
		return h.Thread.Heaps[sampledSlot|h.Hint] == h
	default:
		return h.unspread && base.AlignedHeap == h
	}
}
