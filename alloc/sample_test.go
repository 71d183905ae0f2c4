package alloc

import (
	"syscall"
	"testing"

	"tieralloc/internal/raw"
)

// TestPick: of each part of all pages one is picked, and over pages that are interleaved over nodes
// the picked ones are spread as the pages are.
func TestPick(t *testing.T) {
	for _, all := range []uintptr{samplePages + 1, 3*samplePages - 1, 4 * samplePages, 1000003,
		1 << 32} {
		for _, nodes := range []uintptr{2, 3, 4, 8} {
			count := map[uintptr]int{}
			for i := uintptr(0); i < samplePages; i++ {
				n := pick(i, all)
				if n < i*all/samplePages || n >= (i+1)*all/samplePages {
					t.Fatalf("page %d of %d for part %d", n, all, i)
				}
				count[n%nodes]++
			}
			for node := range nodes {
				if got, want := count[node], samplePages/int(nodes); got < want*9/10 ||
					got > want*11/10 {
					t.Errorf("%d of %d pages are on node %d of %d, not %d", got, all, node, nodes,
						want)
				}
			}
		}
	}
}

// TestRangesBeyondRoom: what does not fit is counted, and nothing beyond the memory is read or
// written.
func TestRangesBeyondRoom(t *testing.T) {
	const room = 512 // in whole memory pages
	var e ranges
	e.reserve(room)
	size := e.size()
	raw.Unmap(e.mapped, size)
	addr := raw.Map(size + raw.Page)
	if _, errno := raw.Sys(syscall.SYS_MPROTECT, addr+size, raw.Page, syscall.PROT_NONE, 0, 0,
		0); errno != 0 || size%raw.Page != 0 {
		t.Fatal(errno, size)
	}
	e.mapped = addr
	for i := uintptr(1); i <= 2*room; i++ {
		e.add(i<<20, 1<<16, 0)
	}
	if e.n != 2*room || e.bytes[0] != 2*room<<16 || e.at(room-1).addr != room<<20 {
		t.Errorf("%d extents of %d bytes", e.n, e.bytes[0])
	}
	raw.Unmap(addr, size+raw.Page)
}
