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

// TestGrowsInPlace: the first segment takes up the room that is reserved behind it, for spans of
// its placement alone, and keeps a margin; what does not fit there has a segment of its own.
func TestGrowsInPlace(t *testing.T) {
	newWorld(t)
	poolLock.Take(8)
	defer poolLock.Release()
	const placement, other = 1, 2
	first := grow(placement, 1)
	if first == nil || first.segment.room != firstRoom<<SliceShift {
		t.Fatalf("the first segment is %+v", first)
	}
	insertFree(first, spanClean)
	seg, size := first.segment, first.segment.mapSize
	if p := grow(other, 1); p == nil || p.segment == seg {
		t.Fatalf("a span of another placement is %+v", p)
	}
	for seg.room != 0 {
		end := seg.start + seg.slices<<SliceShift
		p := grow(placement, 1)
		if p == nil || p.segment != seg || p.Start != end || seg.mapSize != size {
			t.Fatalf("with %d bytes of room behind %#x there is %+v", seg.room, end, p)
		}
		insertFree(p, spanClean)
		end = seg.start + seg.slices<<SliceShift
		if !readable(t, end-1) || readable(t, end) || readable(t, end+margin-1) {
			t.Fatalf("%#x ends the segment: readable before %v, there %v, in the margin %v", end,
				readable(t, end-1), readable(t, end), readable(t, end+margin-1))
		}
	}
	if got := seg.slices; got != firstGrowth+firstRoom {
		t.Fatalf("the first segment has grown to %d slices", got)
	}
	if p := grow(placement, 1); p == nil || p.segment == seg {
		t.Fatalf("without room there is %+v", p)
	}
}

// TestDropsRoom: where addresses turn out to be limited nothing stays reserved around any segment,
// and its unmapping leaves alone what has come there since.
func TestDropsRoom(t *testing.T) {
	newWorld(t)
	poolLock.Take(8)
	first := grow(1, 1)
	if first == nil || first.segment != pool.growing {
		t.Fatalf("the first segment is %+v", first)
	}
	seg := first.segment
	end, after := seg.start+seg.slices<<SliceShift, seg.mapAddr+seg.mapSize
	if p := segmentMap(1, 4, false); p == nil || p.segment.mapSize < 4<<SliceShift+2*margin {
		t.Fatalf("the second segment is %+v", p)
	}
	before, around := pool.count.mapped, uintptr(0)
	for s := pool.segments; s != nil; s = s.next {
		around += s.mapSize - s.slices<<SliceShift
	}
	limitAddresses(1 << 30)
	if pool.growing != nil || seg.room != 0 || before-pool.count.mapped != uint64(around) {
		t.Errorf("%+v, %d bytes less are mapped, not %d", seg, before-pool.count.mapped, around)
	}
	for s := pool.segments; s != nil; s = s.next {
		if s.mapAddr != s.start || s.mapSize != s.slices<<SliceShift || readable(t, s.start-1) {
			t.Errorf("something is reserved around %+v", s)
		}
	}
	if addressLimit != uintptr(before)+1<<30 {
		t.Errorf("the limit is %#x, and %#x were mapped", addressLimit, before)
	}
	const fixedNoReplace = 0x100000
	other, errno := raw.Sys(syscall.SYS_MMAP, end, after-end, syscall.PROT_READ,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|fixedNoReplace, ^uintptr(0), 0)
	if errno != 0 || other != end {
		t.Fatalf("behind the segment: %#x, error %d", other, errno)
	}
	insertFree(first, spanClean)
	removeFree(first, spanClean)
	if !unmapSegment(8, first) || readable(t, seg.start) || !readable(t, end) ||
		!readable(t, after-1) {
		t.Error("the segment is there, or what came behind it is not")
	}
	poolLock.Release()
	raw.Unmap(end, after-end)
}
