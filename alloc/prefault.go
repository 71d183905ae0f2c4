package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
)

// A class of small blocks that takes one fresh page after another has the kernel fault in several
// memory pages at once: one call for four takes three quarters of the time of four faults. Blocks
// of a memory page or more may be meant to stay untouched.
const (
	prefaultBytes = 16 << 10 // at once
	// fresh pages without: what a class may have resident in vain is a small part of what it has
	prefaultAfter = 4

	zeroPrefault = 2 // Page.zero: not yet carved, reads as zero and is faulted in like that
)

var prefaultRefused bool // by an old kernel (EINVAL), or by a filter of system calls

// prefaults notes that class c takes a fresh page of blocks of size bytes, and reports whether
// that is to be faulted in ahead.
func (h *Heap) prefaults(c, size uintptr) bool {
	n := h.freshPages(c)
	if *n < prefaultAfter {
		*n++
		return false
	}
	return size < raw.Page && !prefaultRefused
}

// fewAddresses is a limit of the address space in which what pages leave over at their ends counts:
// bytes. Of more than that the library itself takes less than a hundredth.
const fewAddresses = 512 << 20

// wantsDense reports whether the next page of class c is to leave over nothing, or hardly anything,
// at its end, however large it is for that: where addresses are few, and the class has several
// pages already.
func (h *Heap) wantsDense(c uintptr) bool {
	return pool.addresses < fewAddresses && !secure && *h.freshPages(c) == prefaultAfter
}

// prefault is called when the page is carved between the offsets at and end. What the kernel
// refuses is faulted in when it is touched.
func (p *Page) prefault(at, end uintptr) {
	from := raw.RoundUp(at, prefaultBytes)
	if from >= end {
		return
	}
	_, errno := raw.Sys(syscall.SYS_MADVISE, p.Start+from, min(prefaultBytes, p.bytes()-from),
		madvPopulateWrite, 0, 0, 0)
	if errno != 0 && errno != uintptr(syscall.ENOMEM) && errno != uintptr(syscall.EAGAIN) {
		prefaultRefused = true
	}
}
