package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// samplePages is the number of sampled pages of a tier. With it a node's share of the tier is off
// by at most a hundredth in two of three reports, whatever the size of the tier, and the query
// takes less than a millisecond.
const samplePages = 2048

// asking is the memory for queries of the kernel.
type asking struct {
	_       raw.OffHeap
	found   numa.Residency
	scratch [numa.ScratchBytes]byte
	pages   [samplePages]uintptr
}

const askBytes = (unsafe.Sizeof(asking{}) + raw.Page - 1) &^ (raw.Page - 1)

func (a *asking) scratchAddr() uintptr { return uintptr(unsafe.Pointer(&a.scratch)) }

// sample asks for the nodes of some pages of a tier and returns their number. It divides the tier's
// pages, in the order of its extents, into samplePages parts that differ by at most one page, and
// picks a random page of each part. Equal distances would be wrong, because pages may be
// interleaved over nodes. Precondition: the tier has more than samplePages pages.
func (e *ranges) sample(tier uintptr, a *asking) (n uintptr) {
	all := e.bytes[tier&3] / raw.Page
	passed := uintptr(0) // pages of the extents before
	next := pick(0, all)
	for i := uintptr(0); i < e.n && i < e.room; i++ {
		x := e.at(i)
		if tierOf(x.placement) != tier {
			continue
		}
		pages := x.bytes / raw.Page
		for n < samplePages && next < passed+pages {
			a.pages[n&(samplePages-1)] = x.addr + (next-passed)*raw.Page
			n++
			next = pick(n, all)
		}
		passed += pages
	}
	numa.CountPages(uintptr(unsafe.Pointer(&a.pages)), n, a.scratchAddr(), &a.found)
	return n
}

// pick returns the number of the page that represents part i of all pages.
func pick(i, all uintptr) uintptr {
	// 2^64 over the golden ratio: multiples of it are spread evenly
	const golden = 0x9e3779b97f4a7c15
	first, end := i*all/samplePages, (i+1)*all/samplePages
	return first + (i*golden>>32)*(end-first)>>32
}
