package alloc

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"tieralloc/internal/raw"
)

// TestMetaRefused: where the kernel has less memory than is asked for, but some, nothing is cut.
func TestMetaRefused(t *testing.T) {
	newWorld(t)
	firstMetaTaken = true
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &usual); err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	pages := uint64(0)
	if _, scan := fmt.Sscan(string(statm), &pages); err != nil || scan != nil {
		t.Fatal(err, scan)
	}
	var m metaArea
	few := syscall.Rlimit{Cur: (pages + 1) * raw.Page, Max: usual.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &few); err != nil {
		t.Fatal(err)
	}
	at := m.cut(heapBytes)
	err = syscall.Setrlimit(syscall.RLIMIT_AS, &usual)
	if err != nil || at != 0 {
		t.Errorf("%d bytes at %#x, of which %d are left; %v", heapBytes, at, m.left, err)
	}
	if at = m.cut(heapBytes); at == 0 || m.left > metaChunk {
		t.Errorf("%d bytes at %#x, and %d are left", heapBytes, at, m.left)
	}
}
