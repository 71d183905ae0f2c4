package alloc

import (
	"syscall"
	"testing"

	"tieralloc/internal/raw"
)

// readable asks the kernel to read the byte at addr.
func readable(t *testing.T, addr uintptr) bool {
	t.Helper()
	var fd [2]int
	if err := syscall.Pipe(fd[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd[0])
	defer syscall.Close(fd[1])
	_, errno := raw.Sys(syscall.SYS_WRITE, uintptr(fd[1]), addr, 1, 0, 0, 0)
	return errno == 0
}

// TestMargins: an address that is off by a mebibyte, from any block of a segment, is no memory.
func TestMargins(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	p := h.spanAlloc(1, 1)
	if p == nil {
		t.Fatal("no span")
	}
	start, end := p.segment.start, p.segment.start+p.segment.slices<<SliceShift
	if size := end - start; size != firstGrowth<<SliceShift {
		t.Fatalf("the first segment has %d bytes", size)
	}
	for addr := start; addr < end; addr += raw.Page {
		if !readable(t, addr) || readable(t, addr-margin) || readable(t, addr+margin) {
			t.Fatalf("%#x in a segment from %#x to %#x: readable %v, before %v, after %v",
				addr, start, end, readable(t, addr), readable(t, addr-margin),
				readable(t, addr+margin))
		}
	}
}
