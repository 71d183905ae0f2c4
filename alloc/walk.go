package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// spareWalks are stacks that no walk uses. Threads are often more than the walks at a time.
var spareWalks [16]uintptr

// WalkBegin begins a walk over the stack of t's thread, for a sample or for rules that depend on
// the caller's callers. It returns nil without memory for it, and in a signal handler that has
// interrupted such a walk. WalkEnd follows.
func (t *Thread) WalkBegin() *unwind.Stack {
	if t.stack != nil {
		return nil
	}
	at := uintptr(0)
	for i := 0; i < len(spareWalks) && at == 0; i++ {
		at = atomic.SwapUintptr(&spareWalks[i], 0)
	}
	if at == 0 {
		at = raw.Map(walkBytes)
	}
	t.stack = (*unwind.Stack)(raw.Ptr(at))
	if at != 0 {
		t.stack.Begin()
	}
	return t.stack
}

// WalkEnd ends the walk of WalkBegin.
func (t *Thread) WalkEnd() {
	at := uintptr(unsafe.Pointer(t.stack))
	t.stack = nil
	for i := range spareWalks {
		if atomic.CompareAndSwapUintptr(&spareWalks[i], 0, at) {
			return
		}
	}
	raw.Unmap(at, walkBytes)
}

const walkBytes = (unsafe.Sizeof(unwind.Stack{}) + raw.Page - 1) &^ (raw.Page - 1)
