package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// WalkBegin begins a walk over the stack of t's thread, for a sample or for rules that depend on
// the caller's callers. It returns nil without memory for it, and in a signal handler that has
// interrupted such a walk. WalkEnd follows.
func (t *Thread) WalkBegin() *unwind.Stack {
	if t.walking {
		return nil
	}
	t.walking = true
	if t.stack == nil {
		t.stack = (*unwind.Stack)(raw.Ptr(raw.Map(raw.RoundUp(unsafe.Sizeof(unwind.Stack{}),
			raw.Page))))
	}
	if t.stack == nil {
		t.walking = false
		return nil
	}
	t.stack.Begin()
	return t.stack
}

// WalkEnd ends the walk of WalkBegin.
func (t *Thread) WalkEnd() { t.walking = false }
