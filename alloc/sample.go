package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// samplePages is how many pages of a tier stand for all of them. A node's share of the tier is off
// by a hundredth at most in two reports of three, whatever the size of the tier, and asking for
// them takes less than a millisecond.
const samplePages = 2048

// asking is the memory that the kernel is asked in.
type asking struct {
	_       raw.OffHeap
	found   numa.Residency
	scratch [numa.ScratchBytes]byte
	pages   [samplePages]uintptr
}

const askBytes = (unsafe.Sizeof(asking{}) + raw.Page - 1) &^ (raw.Page - 1)

func (a *asking) scratchAddr() uintptr { return uintptr(unsafe.Pointer(&a.scratch)) }

// sample asks where some pages of a tier are and returns how many. The tier's pages, in the order
// of its extents, are cut into samplePages parts that differ by a page at most; one page of each
// part is asked for, at random: pages may be interleaved over nodes, and at equal distances all
// would be on the same. Precondition: the tier has more than samplePages pages.
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

// pick is the number of the page that stands for part i of all pages.
func pick(i, all uintptr) uintptr {
	// 2^64 over the golden ratio: multiples of it are spread evenly
	const golden = 0x9e3779b97f4a7c15
	first, end := i*all/samplePages, (i+1)*all/samplePages
	return first + (i*golden>>32)*(end-first)>>32
}
