package unwind

import (
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// TestCacheRows: two frames whose program counters lead to the same row are both kept.
func TestCacheRows(t *testing.T) {
	u := (*Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(Stack{}))))
	u.Begin()
	first := uintptr(0x5000_0000_1000)
	second := first + 1
	for cacheSlot(second, 0) != cacheSlot(first, 0) {
		second++
	}
	for _, pc := range []uintptr{first, second} {
		u.usual = cachedRow{pc: pc, ends: true}
		u.store()
	}
	if !u.cached(first) || !u.cached(second) {
		t.Errorf("%#x is kept: %t; %#x is kept: %t", first, u.cached(first), second,
			u.cached(second))
	}
}
