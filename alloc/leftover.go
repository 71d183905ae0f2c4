package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// What nobody has used and the kernel does not unmap is left over: it counts as mapped, and is
// unmapped before addresses are taken next. No lock is needed for that. What there is no entry for
// stays mapped, and counted.
//
//	leftover[i] = first memory page << leftoverBits | memory pages, or 0
const (
	leftoverSlots = 16
	leftoverBits  = 28 // so up to a TiB
)

var leftover [leftoverSlots]uint64 // atomic

// unmapFresh unmaps n bytes at addr that are not counted as mapped, sooner or later.
func unmapFresh(addr, n uintptr) {
	if !raw.Unmap(addr, n) {
		mapped(n)
		leave(addr, n)
	}
}

// leave notes what is left over.
func leave(addr, n uintptr) {
	entry := uint64(addr>>raw.PageShift<<leftoverBits | n>>raw.PageShift)
	for i := 0; i < leftoverSlots && n>>raw.PageShift < 1<<leftoverBits; i++ {
		if atomic.CompareAndSwapUint64(&leftover[i], 0, entry) {
			return
		}
	}
}

// unmapLeftover unmaps what is left over, as far as the kernel does now.
func unmapLeftover() {
	for i := range leftover {
		entry := atomic.LoadUint64(&leftover[i])
		if entry == 0 || !atomic.CompareAndSwapUint64(&leftover[i], entry, 0) {
			continue
		}
		addr, n := uintptr(entry)>>leftoverBits<<raw.PageShift,
			uintptr(entry)&(1<<leftoverBits-1)<<raw.PageShift
		if !raw.Unmap(addr, n) {
			leave(addr, n)
			return
		}
		unmapped(n)
	}
}
