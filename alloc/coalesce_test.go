package alloc

import (
	"bytes"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// coalesced is a block of 33 MiB of what two blocks of 20 and 15 MiB had; a mebibyte more stays
// cached.
func coalesced(t *testing.T, h *Heap) uintptr {
	t.Helper()
	a := get(t, h, 20*mib)
	get(t, h, 6*mib)
	b := get(t, h, 15*mib)
	get(t, h, 6*mib)
	drop(h, a)
	drop(h, b)
	misses, committed := pool.count.hugeMisses, pool.count.committed
	g := get(t, h, 33*mib)
	if pool.count.hugeMisses != misses || pool.cache.bytes != 2*mib ||
		pool.count.committed != committed {
		t.Fatalf("%d misses more, %d MiB cached, %d committed", pool.count.hugeMisses-misses,
			pool.cache.bytes/mib, pool.count.committed/mib)
	}
	for _, old := range []uintptr{a, b} {
		if p := Lookup(old); p != nil && p.Start != g {
			t.Errorf("the map still has %#x", old)
		}
	}
	if n := Lookup(g).extents(); n != 2 || g&(huge2M-1) != 0 ||
		Lookup(g).next.Start&(huge2M-1) != 0 {
		t.Fatalf("%d parts, from %#x and %#x on", n, g, Lookup(g).next.Start)
	}
	for at := uintptr(0); at < 33*mib; at += raw.Page {
		raw.Store(g+at, g+at)
	}
	sound(t)
	return g
}

// holds checks the first n bytes of a coalesced block that was at g.
func holds(t *testing.T, b, g, n uintptr) {
	t.Helper()
	for at := uintptr(0); at < n; at += raw.Page {
		if raw.Load(b+at) != g+at {
			t.Fatalf("%#x at %#x of the block, %#x was there", raw.Load(b+at), at, g+at)
		}
	}
}

// isMapped reports whether there is memory, or may be, at each memory page of a range.
func isMapped(addr, n uintptr) bool {
	_, errno := raw.Sys(syscall.SYS_MSYNC, addr, n, 1, 0, 0, 0) // MS_ASYNC
	return errno == 0
}

// TestCoalesce: a block of several parts grows, in place and by moving, shrinks, and goes back as
// any other.
func TestCoalesce(t *testing.T) {
	h := hugeWorld(t)
	g := coalesced(t, h)
	b := g
	for _, n := range []uintptr{34, 60, 61, 150, 33, 20, 18, 40} {
		was, had := b, Lookup(b).Size
		if b = Resize(h, b, n*mib); b == 0 {
			t.Fatalf("not resized to %d MiB", n)
		}
		if b != was && isMapped(was, had) {
			t.Errorf("the block moved from %#x, which is still mapped", was)
		}
		holds(t, b, g, min(n, 18)*mib)
		if n >= 33 && n != 40 {
			holds(t, b, g, 33*mib)
		}
		sound(t)
	}
	if b == g {
		t.Error("the block never moved")
	}
	drop(h, b)
	sound(t)
	purgeAll(h.Thread)
	if pool.cache.n != 0 || pool.count.committed != 12*mib || pool.extents != 0 {
		t.Errorf("%d blocks are cached, %d MiB committed, %d parts", pool.cache.n,
			pool.count.committed/mib, pool.extents)
	}
}

// TestCoalesceCut: a cached block of several parts is cut at their boundary and elsewhere, is
// coalesced again with what it was cut into, and gives its end to pages.
func TestCoalesceCut(t *testing.T) {
	for _, n := range []uintptr{20, 12, 24} {
		h := hugeWorld(t)
		drop(h, coalesced(t, h))
		b := get(t, h, n*mib)
		sound(t)
		if want := 35*mib - n*mib; pool.cache.bytes != want {
			t.Errorf("%d bytes cached, not %d", pool.cache.bytes, want)
		}
		drop(h, b)
		sound(t)
		g := get(t, h, 33*mib)
		if pool.count.hugeMisses != 4 {
			t.Errorf("%d misses", pool.count.hugeMisses)
		}
		sound(t)
		drop(h, g)
		for range 30 {
			get(t, h, mib/2)
			sound(t)
		}
		if pool.count.committed > 47*mib {
			t.Errorf("%d MiB are committed", pool.count.committed/mib)
		}
	}
}

// TestCoalesceDescriptors: gathering, cutting and giving back use up no descriptors.
func TestCoalesceDescriptors(t *testing.T) {
	h := hugeWorld(t)
	var used []uintptr
	for range 4 {
		g := coalesced(t, h)
		drop(h, g)
		drop(h, get(t, h, 12*mib))
		drop(h, get(t, h, 20*mib+5*SliceSize)) // which leaves less than can be cached
		purgeAll(h.Thread)
		for i := range pool.aged {
			for p := pool.aged[i].head; p != nil; {
				next := p.ageNext
				if p.state == spanHuge {
					drop(h, p.Start)
				}
				p = next
			}
		}
		purgeAll(h.Thread)
		sound(t)
		if pool.extents != 0 || pool.count.committed != 0 {
			t.Errorf("%d parts, %d bytes committed", pool.extents, pool.count.committed)
		}
		used = append(used, pool.meta.next)
	}
	if used[3] != used[1] {
		t.Errorf("descriptors were made: %#x", used)
	}
}

// TestCoalesceMost: a block has hugeExtents parts at most, all of them together extentsAll, and
// what is not coalesced stays cached.
func TestCoalesceMost(t *testing.T) {
	h := hugeWorld(t)
	var blocks [hugeExtents + 2]uintptr
	for i := range blocks {
		blocks[i] = get(t, h, 6*mib)
		get(t, h, 6*mib)
	}
	for _, b := range blocks {
		drop(h, b)
	}
	pool.count.peak = 1 << 40 // else what is cached makes room
	pool.extents = extentsAll - hugeExtents + 1
	g := get(t, h, 15*mib)
	if n := Lookup(g).extents(); n != 1 {
		t.Errorf("%d parts where there are too many already", n)
	}
	drop(h, g)
	pool.extents = 0
	g = get(t, h, uintptr(len(blocks))*7*mib)
	if n := Lookup(g).extents(); n != hugeExtents || pool.cache.n != 2 {
		t.Errorf("%d parts, %d cached", n, pool.cache.n)
	}
	drop(h, g)
	sound(t)
	if b := h.serve(90*mib, 3); b&ZeroBit == 0 { // stats.CallCalloc
		t.Error("a block for calloc was coalesced")
	}
}

// TestCoalesceRefused: where the host has split a mapping that was cached, which the kernel then
// does not resize, the others stay cached.
func TestCoalesceRefused(t *testing.T) {
	for _, split := range []int{0, 1, 2} {
		h := hugeWorld(t)
		var blocks [3]uintptr
		for i := range blocks {
			blocks[i] = get(t, h, uintptr(9-i)*mib)
			get(t, h, 6*mib)
		}
		const dontDump = 16
		raw.Sys(syscall.SYS_MADVISE, blocks[split]+mib, mib, dontDump, 0, 0, 0)
		for _, b := range blocks {
			drop(h, b)
		}
		committed, cached := pool.count.committed, pool.cache.bytes
		pool.count.peak = 1 << 40 // else what is cached makes room
		b := get(t, h, 40*mib)    // larger than all together, so the last part is to grow
		sound(t)
		lost := uintptr(committed) + 40*mib - uintptr(pool.count.committed)
		// since Linux 6.17 the kernel moves several mappings together where none is to grow
		if Lookup(b).extents() == 1 {
			if lost > 9*mib || pool.cache.bytes+lost != cached {
				t.Errorf("split %d: %d MiB lost, %d of %d cached", split, lost/mib,
					pool.cache.bytes/mib, cached/mib)
			}
		} else if split == 2 {
			t.Error("a part that is two mappings grew")
		}
		drop(h, b)
		sound(t)
		purgeAll(h.Thread)
		if pool.count.committed != 18*mib {
			t.Errorf("split %d: %d MiB committed", split, pool.count.committed/mib)
		}
	}
}

// TestCoalesceRefusedFar: a part that begins where the page map has no leaf goes back to the kernel
// when that would not move it.
func TestCoalesceRefusedFar(t *testing.T) {
	const leafSpan, first, second = 1 << RootShift, 20 * mib, 13 * mib
	h := hugeWorld(t)
	room := raw.MapBarred(4 * leafSpan)
	if room == 0 {
		t.Skip("no addresses")
	}
	seam := raw.RoundUp(room, leafSpan) + leafSpan // tests before this one have had nothing there
	raw.Unmap(room, 4*leafSpan)
	start := mapFixed(t, seam-first, first+second)
	if !h.Thread.admit(1, first+second, false) {
		t.Fatal("no room")
	}
	p := hugeAdopt(h.Thread.token, start, first+second, 1, h.Hint, 1, firstPart{}, false)
	q := newDescriptor()
	*q = *p
	q.Start, q.next = seam, nil
	p.next = q
	pool.extents++
	if Lookup(seam) != nil || raw.Load(mapRoot+seam>>RootShift*8) != 0 {
		t.Fatal("there is a leaf")
	}
	const dontDump = 16
	raw.Sys(syscall.SYS_MADVISE, seam+mib, mib, dontDump, 0, 0, 0) // so that the part does not grow
	drop(h, start)
	sound(t)
	b := get(t, h, 40*mib)
	sound(t)
	if n := Lookup(b).extents(); n != 1 || isMapped(seam, second) {
		t.Errorf("the block has %d parts; the one that was refused is mapped: %v", n,
			isMapped(seam, second))
	}
	drop(h, b)
	purgeAll(h.Thread)
	sound(t)
	if pool.count.committed != 0 || pool.extents != 0 {
		t.Errorf("%d bytes committed, %d parts", pool.count.committed, pool.extents)
	}
}

// TestMoveExtentsSparse: when the last part cannot be moved what nobody has written has no memory
// afterwards either.
func TestMoveExtentsSparse(t *testing.T) {
	h := hugeWorld(t)
	var b [2]uintptr
	for i, n := range []uintptr{20 * mib, 14 * mib} {
		b[i] = mustServe(t, h, n)
		mustServe(t, h, 6*mib)
	}
	drop(h, b[0])
	drop(h, b[1])
	p := Lookup(mustServe(t, h, 34*mib))
	if p.extents() != 2 || !pinMigration(8, p) {
		t.Fatalf("%d parts", p.extents())
	}
	raw.Store(p.Start+mib, 42)
	const dontDump = 16
	// so that it does not grow
	raw.Sys(syscall.SYS_MADVISE, p.next.Start+mib, mib, dontDump, 0, 0, 0)
	to := reserveAligned(40*mib, huge2M)
	if moveExtents(h.Thread.token, p, to, 40*mib) || isMapped(to, raw.Page) {
		t.Error("moved, or the target is mapped")
	}
	unpinMigration(8, p)
	sound(t)
	if raw.Load(p.Start+mib) != 42 {
		t.Error("the contents are gone")
	}
	var resident [34 * mib / raw.Page]byte
	raw.Sys(syscall.SYS_MINCORE, p.Start, 34*mib, uintptr(unsafe.Pointer(&resident)), 0, 0, 0)
	if n := bytes.Count(resident[:], []byte{1}); n == 0 || n > 2*huge2M/raw.Page {
		t.Errorf("%d memory pages are resident", n)
	}
}

// mapFixed maps n bytes at addr, where there is nothing.
func mapFixed(t *testing.T, addr, n uintptr) uintptr {
	t.Helper()
	const fixedNoReplace = 0x100000
	got, errno := raw.Sys(syscall.SYS_MMAP, addr, n, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|fixedNoReplace, ^uintptr(0), 0)
	if errno != 0 || got != addr {
		t.Fatalf("not mapped at %#x: %d", addr, errno)
	}
	return got
}
