package profile

import (
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// sampled returns how many samples there are.
func sampled() (n int) {
	for i := range t.samples.part {
		n += int(t.samples.part[i].n)
	}
	return n
}

// TestGrowth: what the table has is found again after each of its hash tables has grown several
// times: no site and no location is entered twice, and every sample ends with its block.
func TestGrowth(tt *testing.T) {
	const rounds, stacks, leaves = 3, siteCount / 4, locationCount / 8
	newTable(tt)
	walk := (*unwind.Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(unwind.Stack{}))))
	walk.N = leaves / stacks
	addr := func(n uintptr) uintptr { return (n + 1) << 12 }
	for n := range uintptr(rounds * stacks) {
		for i := range walk.N {
			walk.Frame[i&(unwind.Frames-1)].PC = 1000 + n%stacks*walk.N + i
		}
		Note(8, true, &Block{Addr: addr(n), Size: 1 << 30, Hint: uint32(n) % stacks % 2}, walk, 0)
	}
	if t.siteN != stacks || t.locationN != leaves || sampled() != rounds*stacks {
		tt.Fatalf("%d sites, %d locations, %d samples", t.siteN, t.locationN, sampled())
	}
	for e, at := t.samples.next(place{}); e != nil; e, at = t.samples.next(at) {
		if want := uint64(e.addr>>12-1) % stacks; e.site() != want {
			tt.Fatalf("the block at %#x is of site %d, not %d", e.addr, e.site(), want)
		}
	}
	for n := range uintptr(rounds * stacks) {
		Freed(8, addr(n)+64, true) // no sample
		Freed(8, addr(n), true)
		if left := rounds*stacks - int(n) - 1; sampled() != left {
			tt.Fatalf("%d samples, not %d", sampled(), left)
		}
	}
	if t.samples.near != [len(t.samples.near)]uint32{} {
		tt.Error("samples are counted, and there are none")
	}
	for i := range t.siteN {
		if d := &t.spreads[i]; d.size.sum != rounds || d.live() != 0 {
			tt.Fatalf("site %d has %.0f blocks, %.0f in use", i, d.size.sum, d.live())
		}
	}
}

// TestSmall: a process with few samples touches little of the hash tables.
func TestSmall(tt *testing.T) {
	newTable(tt)
	walk := (*unwind.Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(unwind.Stack{}))))
	walk.N = 40
	for n := range uintptr(4 * partCount) {
		for i := range walk.N {
			walk.Frame[i&(unwind.Frames-1)].PC = 1000 + 50*i + n%5
		}
		Note(8, true, &Block{Addr: (n + 1) << 20, Size: 1 << 30}, walk, 0)
	}
	for i := range t.samples.part {
		if p := &t.samples.part[i]; p.n != 0 && p.at != uintptr(unsafe.Pointer(&p.first)) {
			tt.Errorf("part %d of the samples has a mapping of its own", i)
		}
	}
	for i, x := range []*index{&t.siteOf, &t.locationOf} {
		for k, n := range x.number[indexLeast:] {
			if n != 0 {
				tt.Errorf("index %d has a number in slot %d", i, indexLeast+k)
			}
		}
	}
}
