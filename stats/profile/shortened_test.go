package profile

import (
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// TestShortened: a program with more stacks than the table has room for keeps the bytes of all, by
// the innermost frames of the later ones; a known stack stays whole; and memory of devices still
// has whole stacks after that.
func TestShortened(tt *testing.T) {
	newTable(tt)
	lost, shortened := Lost, Shortened
	const depth, stacks = 40, 4 * siteCount
	number := uintptr(0)
	walk := (*unwind.Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(unwind.Stack{}))))
	sample := func(stack uintptr, kind uint32) {
		for i := range uintptr(depth) {
			pc := 1000 + i
			if i >= depth-4 { // the outermost frames tell the stacks apart
				pc = 2000 + i*100 + stack>>(4*(depth-1-i))&15
			}
			walk.Frame[i] = unwind.Frame{PC: pc}
		}
		walk.N = depth
		number++
		b := Block{Addr: number << 12, Size: 1 << 30, Kind: kind}
		if kind != Host {
			b.Addr = deviceBit | number
		}
		Note(8, true, &b, walk, 0)
	}
	for stack := range uintptr(stacks) {
		sample(stack, Host)
	}
	sites := t.siteN
	sample(1, Host)
	if Lost != lost || Shortened-shortened < stacks/2 || t.siteN != sites || sites > siteCount {
		tt.Errorf("%d lost, %d shortened, %d sites and then %d", Lost-lost, Shortened-shortened,
			sites, t.siteN)
	}
	allocs := 0.0
	for i := range t.siteN {
		allocs += t.spreads[i].size.sum
	}
	if allocs != stacks+1 || t.spreads[1].size.sum != 2 || t.sites[1].Depth != depth {
		tt.Errorf("%.0f blocks, %.0f of them at the second site with %d frames", allocs,
			t.spreads[1].size.sum, t.sites[1].Depth)
	}
	sample(stacks+1, Device)
	if s := &t.sites[t.siteN-1]; s.Kind != Device || s.Depth != depth {
		tt.Errorf("a device's block is at a site of kind %d with %d frames", s.Kind, s.Depth)
	}
}

// TestDepth: the more sites there are, the fewer frames a new one has. Memory of devices has room
// when that of the host has none.
func TestDepth(tt *testing.T) {
	newTable(tt)
	last := uintptr(unwind.Frames)
	for t.siteN = range uintptr(siteCount) {
		n := t.depth(Host)
		if n > last || t.depth(Device) != unwind.Frames {
			tt.Fatalf("%d frames at %d sites, %d before", n, t.siteN, last)
		}
		last = n
	}
	if last != 0 {
		tt.Errorf("%d frames at the last site", last)
	}
	t.siteN = 0
	for _, full := range []uintptr{stackWords / 2, stackWords * 7 / 8} {
		before := t.depth(Host)
		if t.frameN = full; t.depth(Host) >= before {
			tt.Errorf("%d frames where the table has %d", t.depth(Host), full)
		}
	}
	t.frameN = 0
}
