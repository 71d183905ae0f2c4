package alloc

import "testing"

// TestTakeHeaps: who holds poolLock, in the code that a signal handler has interrupted, does not
// wait for heapsLock, which a thread that forks may hold while it waits for poolLock.
func TestTakeHeaps(t *testing.T) {
	const handler, forker = 8, 16
	if !poolLock.Take(handler) {
		t.Fatal("poolLock is held")
	}
	defer poolLock.Release()
	if !takeHeaps(handler) {
		t.Error("heapsLock is free, and not taken")
	}
	heapsLock.Release()
	if !heapsLock.Take(forker) {
		t.Fatal("heapsLock is held")
	}
	defer heapsLock.Release()
	if takeHeaps(handler) || adopt(handler) != nil {
		t.Error("heapsLock is held by another, and taken")
	}
}
