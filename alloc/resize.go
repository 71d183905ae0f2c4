package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
)

// ResizeMin is the smallest block whose page table entries are worth moving.
const ResizeMin = 256 << 10

// Resize makes the block at addr n bytes long without copying it. It returns the
// block's address, which may be new, or 0 with the block as it was when it cannot:
// the caller copies then. h is owned by the calling thread, addr is a live block.
func Resize(h *Heap, addr, n uintptr) uintptr {
	p := Lookup(addr)
	if p == nil || n > maxRequest || poolLock.Refuses(h.token) {
		return 0
	}
	if p.Owner == OwnerHuge {
		return hugeResize(h, p, n)
	}
	if p.blocks != 1 || p.Size < ResizeMin || n <= p.Size || addr != p.Start {
		return 0
	}
	return h.toHuge(p, n)
}

// toHuge moves the only block of a page to a mapping of its own, where it can go
// on growing, and frees the page. The page's addresses stay mapped, empty.
func (h *Heap) toHuge(p *Page, n uintptr) uintptr {
	size := raw.RoundUp(n, SliceSize)
	have := p.bytes()
	if size < have {
		return 0
	}
	if !oneMapping(p.Start, have) {
		return 0
	}
	to := mapAligned(size, SliceSize)
	if to == 0 {
		return 0
	}
	const move = raw.MremapMayMove | raw.MremapFixed | raw.MremapDontUnmap
	if _, errno := raw.Remap(p.Start, have, have, move, to); errno != 0 {
		if errno == uintptr(syscall.EINVAL) { // a kernel before 5.7, which looks at the flags first
			raw.Unmap(to, size)
		} else {
			raw.Reclaim(to, size)
		}
		return 0
	}
	// The moved part and the rest are two mappings, which could not be resized as
	// one. So the rest goes, and the part grows over its place.
	if size > have {
		raw.Unmap(to+have, size-have)
	}
	q := h.hugeAdopt(to, have)
	if q == nil {
		copyBack(p.Start, to, have)
		return 0
	}
	h.Calls[CallReallocAllocs]++
	h.Calls[CallReallocFrees]++ // q or p, as it turns out
	was := p.Start
	if grown := hugeResize(h, q, n); grown == 0 {
		h.hugeReturn(q, was)
		return 0
	}
	Free(h, was)
	return q.Start
}

// oneMapping reports whether the n bytes at addr are one mapping to the kernel, as
// they are unless the host has changed a part of them. Growing a bit in place tells:
// what is split cannot, by another error than for want of room.
func oneMapping(addr, n uintptr) bool {
	_, errno := raw.Remap(addr, n, n+SliceSize, 0, 0)
	if errno == 0 {
		raw.Unmap(addr+n, SliceSize)
	}
	return errno == 0 || errno == uintptr(syscall.ENOMEM)
}

// hugeAdopt makes a huge block of a mapping.
func (h *Heap) hugeAdopt(start, size uintptr) *Page {
	if !poolLock.Take(h.token) {
		return emergencyHuge(start, size)
	}
	p := newDescriptor()
	if p != nil && !mapReserve(start, SliceSize) {
		freeDescriptor(p)
		p = nil
	}
	if p != nil {
		mapped(size)
		commit(size)
		p.Start, p.Size = start, size
		hugeLink(p)
	}
	poolLock.Release()
	return p
}

// hugeReturn undoes hugeAdopt: the contents go back to address to.
func (h *Heap) hugeReturn(q *Page, to uintptr) {
	start, size := q.Start, q.Size
	poolLock.Take(h.token)
	hugeUnlink(q)
	mapSet(start, nil)
	uncommit(size)
	unmapped(size)
	freeDescriptor(q)
	poolLock.Release()
	copyBack(to, start, size)
}

// copyBack brings n bytes back to where they were moved from, and unmaps them where
// they are. It is no matter of speed: the kernel has just run out of memory.
func copyBack(to, from, n uintptr) {
	if _, errno := raw.Remap(from, n, n, raw.MremapMayMove|raw.MremapFixed, to); errno == 0 {
		return
	}
	for i := uintptr(0); i < n; i += 8 {
		raw.Store(to+i, raw.Load(from+i))
	}
	raw.Unmap(from, n)
}
