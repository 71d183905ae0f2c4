package raw

import (
	"syscall"
	"testing"
)

func mapped(addr, n uintptr) bool {
	_, errno := Sys(syscall.SYS_MSYNC, addr, n, 1, 0, 0, 0) // MS_ASYNC
	return errno == 0
}

// TestMove: what moves is as long as the target then; where the kernel refuses, all of the target
// is kept or nothing.
func TestMove(t *testing.T) {
	const size = 16 * Page
	from, to := Map(size), MapBarred(2*size)
	Store(from+Page, 42)
	if errno, kept := Move(from, size, 2*size, to); errno != 0 || kept != 0 ||
		Load(to+Page) != 42 || mapped(from, Page) {
		t.Fatalf("moved with errno %d, %d bytes kept", errno, kept)
	}
	StoreByte(to+2*size-1, 1)
	gone, target := Map(size), MapBarred(size)
	Unmap(gone, size)
	// since Linux 6.17 the kernel looks at the source first
	errno, kept := Move(gone, size, size, target)
	if errno == 0 || mapped(target, Page) != (kept == size) || kept != 0 && kept != size {
		t.Errorf("errno %d, %d bytes of the target kept: %v", errno, kept, mapped(target, Page))
	}
	if kept != 0 {
		Unmap(target, kept)
	}
	if Load(to+Page) != 42 {
		t.Error("the contents are gone")
	}
	Unmap(to, 2*size)
}

// TestMark: addresses that were mapped afresh after a target was unmapped are not taken for it.
func TestMark(t *testing.T) {
	at := Map(Page)
	Store(at, uintptr(markWord)<<32|7)
	if !reads(at, 7) || !reads(at+4, markWord) || reads(at, 8) {
		t.Error("a mark is not read")
	}
	Unmap(at, Page)
	if reads(at, 0) || reads(at, 7) {
		t.Error("there is something to read where nothing is mapped")
	}
	at = MapBarred(Page)
	if reads(at, 0) {
		t.Error("what may not be read is read")
	}
	Unmap(at, Page)
}
