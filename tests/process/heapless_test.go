package process

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestHeapless: a thread that only frees NULL many times gets a heap of its own, and a thread keeps
// its heap until the destructors of the program's keys have run. Borrowing a heap for each call
// takes a lock that all threads share: GNU sort, which frees NULL at each comparison, took eight
// times as long.
func TestHeapless(t *testing.T) {
	t.Parallel()
	cases(t, testlib.CC(t, "heapless.c"), nil, "nulls", "destructors")
}
