package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// gathered is a block of 34 MiB gathered from parts of 20 and 14 MiB and what is cached besides: 1 MiB.
func gathered(t *testing.T, h *Heap) uintptr {
	t.Helper()
	a := get(t, h, 20*mib)
	get(t, h, 5*mib)
	b := get(t, h, 15*mib)
	get(t, h, 5*mib)
	drop(h, a)
	drop(h, b)
	g := get(t, h, 34*mib)
	if pool.count.hugeMisses != 4 || pool.cache.bytes != mib || pool.count.committed != 45*mib {
		t.Fatalf("%d misses, %d MiB cached, %d committed", pool.count.hugeMisses, pool.cache.bytes/mib, pool.count.committed/mib)
	}
	for _, old := range []uintptr{a, b} {
		if p := Lookup(old); p != nil && p.Start != g {
			t.Errorf("the map still has %#x", old)
		}
	}
	if n := Lookup(g).parts(); n != 2 {
		t.Fatalf("%d parts", n)
	}
	for at := uintptr(0); at < 34*mib; at += raw.Page {
		raw.Store(g+at, g+at)
	}
	sound(t)
	return g
}

// holds checks the first n bytes of a gathered block that was at g.
func holds(t *testing.T, b, g, n uintptr) {
	t.Helper()
	for at := uintptr(0); at < n; at += raw.Page {
		if raw.Load(b+at) != g+at {
			t.Fatalf("%#x at %#x of the block, %#x was there", raw.Load(b+at), at, g+at)
		}
	}
}

// TestGather: a block of several parts grows, in place and by moving, shrinks, and goes back as any other.
func TestGather(t *testing.T) {
	h := hugeWorld(t)
	g := gathered(t, h)
	b := g
	for _, n := range []uintptr{35, 60, 61, 150, 33, 20, 18, 40} {
		now := Resize(h, b, n*mib)
		if now == 0 {
			t.Fatalf("not resized to %d MiB", n)
		}
		b = now
		holds(t, b, g, min(n, 18)*mib)
		if n > 34 && n != 40 {
			holds(t, b, g, 34*mib)
		}
		sound(t)
	}
	if b == g {
		t.Error("the block never moved")
	}
	drop(h, b)
	sound(t)
	purgeAll(h.Thread)
	if pool.cache.n != 0 || pool.count.committed != 10*mib {
		t.Errorf("%d blocks are cached, %d MiB committed", pool.cache.n, pool.count.committed/mib)
	}
}

// TestGatherCut: a cached block of several parts is cut at their seam and elsewhere, is gathered again with what it was cut into,
// and gives its end to pages.
func TestGatherCut(t *testing.T) {
	for _, n := range []uintptr{20, 12, 25} {
		h := hugeWorld(t)
		drop(h, gathered(t, h))
		b := get(t, h, n*mib)
		sound(t)
		if want := 35*mib - n*mib; pool.cache.bytes != want {
			t.Errorf("%d bytes cached, not %d", pool.cache.bytes, want)
		}
		drop(h, b)
		sound(t)
		g := get(t, h, 35*mib)
		if pool.count.hugeMisses != 4 || pool.cache.n != 0 {
			t.Errorf("%d misses, %d cached", pool.count.hugeMisses, pool.cache.n)
		}
		sound(t)
		drop(h, g)
		for range 35 {
			get(t, h, mib/2)
			sound(t)
		}
		if pool.count.committed != 45*mib {
			t.Errorf("%d MiB are committed", pool.count.committed/mib)
		}
	}
}

// TestGatherMost: a block has hugeParts parts at most, and what is not gathered stays cached.
func TestGatherMost(t *testing.T) {
	h := hugeWorld(t)
	var blocks [hugeParts + 2]uintptr
	for i := range blocks {
		blocks[i] = get(t, h, 5*mib)
		get(t, h, 5*mib)
	}
	for _, b := range blocks {
		drop(h, b)
	}
	g := get(t, h, uintptr(len(blocks))*5*mib)
	if n := Lookup(g).parts(); n != hugeParts || pool.cache.n != 2 {
		t.Errorf("%d parts, %d cached", n, pool.cache.n)
	}
	drop(h, g)
	b := get(t, h, (hugeParts+3)*5*mib) // of what is not in parts already, which is too little
	if n := Lookup(b).parts(); n > hugeParts {
		t.Errorf("%d parts", n)
	}
	sound(t)
}
