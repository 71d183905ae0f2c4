package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
)

// When a class of small blocks takes one fresh page after another, several memory pages are faulted
// in by one system call: a call for four takes three quarters of the time of four faults. Blocks of
// a memory page or more are not prefaulted, because the program may leave them untouched.
const (
	prefaultBytes = 16 << 10 // at once
	// fresh pages without prefault, so that the prefaulted unused memory of a class is a small part
	// of it
	prefaultAfter = 4

	zeroPrefault = 2 // Page.zero: the part not yet carved reads as zero and is prefaulted
)

var prefaultRefused bool // an old kernel (EINVAL) or a filter of system calls has refused

// prefaults notes that class c takes a fresh page of blocks of size bytes, and reports whether the
// page is to be prefaulted.
func (h *Heap) prefaults(c, size uintptr) bool {
	n := h.freshPages(c)
	if *n < prefaultAfter {
		*n++
		return false
	}
	return size < raw.Page && !prefaultRefused && !pressed()
}

// fewAddresses is the limit of the address space, in bytes, up to which waste at the ends of pages
// matters.
const fewAddresses = 512 << 20

// wantsDense reports whether the next page of class c is to be a dense one, which wastes little at
// its end and may be larger: if addresses are few and the class already has several pages.
func (h *Heap) wantsDense(c uintptr) bool {
	few := addressLimit != 0 && addressLimit < fewAddresses
	return few && !secure && !watchedAlone(c) && *h.freshPages(c) == prefaultAfter
}

// prefault is called when the page is carved between the offsets at and end. If the kernel refuses,
// the memory is faulted in when it is touched, and so are huge pages.
func (p *Page) prefault(at, end uintptr) {
	start := p.spanStart()
	from := start
	if at != 0 {
		from = raw.RoundUp(p.Start+at, prefaultBytes)
	}
	if from >= p.Start+end || p.segment.pages == transparent {
		return
	}
	_, errno := raw.Sys(syscall.SYS_MADVISE, from, min(prefaultBytes, start+p.bytes()-from),
		madvPopulateWrite, 0, 0, 0)
	if errno != 0 && errno != uintptr(syscall.ENOMEM) && errno != uintptr(syscall.EAGAIN) {
		prefaultRefused = true
	}
}
