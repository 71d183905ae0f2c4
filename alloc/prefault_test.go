package alloc

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// residentIn is how many memory pages of the span are.
func residentIn(t *testing.T, p *Page) (n int) {
	t.Helper()
	state := make([]byte, p.bytes()/raw.Page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, p.spanStart(), p.bytes(),
		uintptr(unsafe.Pointer(&state[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, s := range state {
		n += int(s & 1)
	}
	return n
}

// freshPages is how many memory pages are resident in each of the next n pages of the class for
// size bytes when one block of it was handed out and touched.
func freshPages(t *testing.T, h *Heap, size uintptr, n int) (list []int) {
	t.Helper()
	for seen := (*Page)(nil); len(list) < n; {
		b := mustServe(t, h, size)
		if p := Lookup(b); p != seen {
			seen = p
			raw.Store(b, 1)
			list = append(list, residentIn(t, p))
		}
	}
	mustBeSound(t)
	return list
}

// TestPrefault: a class of small blocks that grows has four memory pages faulted in at once; one
// that does not grow, or has blocks that may stay untouched, has not.
func TestPrefault(t *testing.T) {
	for _, c := range []struct {
		size uintptr
		want int
	}{{16, 4}, {100, 4}, {2048, 4}, {3840, 4}, {4096, 1}, {20000, 1}} {
		newWorld(t)
		h := mustAcquire(t, 8)
		list := freshPages(t, h, c.size, prefaultAfter+3)
		for i, n := range list {
			if want := c.want; i < prefaultAfter && n > 2 || i >= prefaultAfter && n != want {
				t.Errorf("%d bytes: page %d has %d memory pages resident at first", c.size, i, n)
			}
		}
	}
}

// TestPrefaultAgain: a class that gave its pages back begins anew.
func TestPrefaultAgain(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	blocks := []uintptr{}
	for h.fresh[sizeclass.Of(100)] < prefaultAfter || len(blocks) < 5000 {
		blocks = append(blocks, mustServe(t, h, 100))
	}
	freeAll(t, h, blocks)
	h.collectPages(true)
	purgeAll(h.Thread)
	for i, n := range freshPages(t, h, 100, 2) {
		if n > 2 {
			t.Errorf("page %d has %d memory pages resident at first", i, n)
		}
	}
}

// TestPrefaultWhole: all of a page is resident when all of it was handed out, and what was faulted
// in reads as zero.
func TestPrefaultWhole(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	freshPages(t, h, 96, prefaultAfter+1)
	p := h.cur[sizeclass.Of(96)]
	for uintptr(p.carved) < p.Size*uintptr(p.blocks) {
		mustServe(t, h, 96)
		if n := uintptr(residentIn(t, p)); n*raw.Page > raw.RoundUp(uintptr(p.carved),
			prefaultBytes) || n*raw.Page < uintptr(p.carved) {
			t.Fatalf("%d bytes carved, %d memory pages resident", p.carved, n)
		}
	}
}

// TestPrefaultRefused: a kernel that does not know the call is not asked again.
func TestPrefaultRefused(t *testing.T) {
	newWorld(t)
	defer func() { prefaultRefused = false }()
	h := mustAcquire(t, 8)
	p := Lookup(mustServe(t, h, 100))
	protect := func(how int) {
		if _, errno := raw.Sys(unix.SYS_MPROTECT, p.spanStart(), p.bytes(), uintptr(how), 0, 0,
			0); errno != 0 {
			t.Fatal(errno)
		}
	}
	protect(unix.PROT_READ)
	p.prefault(0, raw.Page) // EINVAL, as from such a kernel
	protect(unix.PROT_READ | unix.PROT_WRITE)
	for i, n := range freshPages(t, h, 200, prefaultAfter+3) {
		if n > 2 {
			t.Errorf("page %d has %d memory pages resident at first", i, n)
		}
	}
}
