package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A cached huge block that serves calloc must be cleared. Where a program has touched few of its
// pages, clearing it would make all of them resident, and take longer than the faults for those
// that the program touches. Such a block gives its pages back instead.

// sparseShare is the part of a sparse block's pages that is resident, at most: discarding a page
// and faulting it in again costs several times as much as clearing it.
const sparseShare = 4

// zeroSparse makes the huge block of p, which the caller has taken from the cache, read as zero by
// discarding its pages, if few of them are resident. It reports whether it did.
func (p *Page) zeroSparse(token uintptr) bool {
	if !roomy(autoHeap) || filtered() || !pinMigration(token, p) {
		return false
	}
	ok := p.hardlyResident() && raw.Discard(p.Start, p.Size)
	unpinMigration(token, p)
	return ok
}

// hardlyResident reports whether few pages of a huge block are resident. It stops looking where too
// many are. mincore does not see pages that were swapped out.
func (p *Page) hardlyResident() bool {
	const n = 512 // memory pages looked at by one call
	var resident [n]byte
	most := p.Size / raw.Page / sparseShare
	for at, end := p.Start, p.Start+p.Size; at < end; at += n * raw.Page {
		looked := min((end-at)/raw.Page, n)
		_, errno := raw.Sys(sysMincore, at, looked*raw.Page, uintptr(unsafe.Pointer(&resident)), 0,
			0, 0)
		if errno != 0 {
			return false
		}
		for i := range looked {
			most -= uintptr(resident[i&(n-1)] & 1)
		}
		if int(most) < 0 {
			return false
		}
	}
	return true
}
