package alloc

import (
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// TestSpanOfHuge: pages take what a cached huge block has before they take fresh memory, from
// its end, and in the end all of it; the rest stays of use, and it all goes back when it is old.
func TestSpanOfHuge(t *testing.T) {
	h := hugeWorld(t)
	const size = 6 * mib
	a := get(t, h, size)
	drop(h, a)
	committed, mapped := pool.count.committed, pool.count.mapped

	first := get(t, h, mib/2)
	if first < a+size-mib || first >= a+size {
		t.Errorf("the first block is at %#x, not in the last MiB of the one at %#x", first, a)
	}
	if pool.cache.bytes != size-mib || pool.count.committed != committed {
		t.Errorf("%d bytes are cached, %d committed that were %d", pool.cache.bytes,
			pool.count.committed, committed)
	}
	sound(t)
	if b := get(t, h, 5*mib); b != a || raw.LoadByte(b) != 7 {
		t.Errorf("the rest does not serve: %#x", b)
	} else {
		drop(h, b)
	}

	blocks := []uintptr{first}
	for pool.count.committed == committed && len(blocks) < 100 {
		blocks = append(blocks, get(t, h, mib/2))
		sound(t)
	}
	if pool.cache.n != 0 || len(blocks) != size/(mib/2)+1 {
		t.Errorf("fresh memory is taken for block %d, with %d still cached", len(blocks),
			pool.cache.n)
	}
	if pool.count.mapped == mapped {
		t.Error("no segment was mapped")
	}
	freeAll(t, h, blocks)
	h.Thread.Now += 2 * PurgeDelay
	Trim(h)
	sound(t)
	if pool.usedBytes != 0 || pool.dirtyBytes != 0 {
		t.Errorf("%d bytes are in use, %d dirty", pool.usedBytes, pool.dirtyBytes)
	}
}

// TestHugeInSpan: huge blocks of up to hugeSpanMost bytes and large pages share memory.
func TestHugeInSpan(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	a := get(t, h, 9*mib)
	pool.feedback.wanted = uintptr(pool.count.peak) // nothing is purged
	p := Lookup(a)
	if p.state != spanInUse || p.usable(a) < 9*mib || pool.count.huge[1].allocs != 1 {
		t.Fatalf("state %d, %d bytes", p.state, p.usable(a))
	}
	if why := Free(h, a+SliceSize, HowAny, NoSize, 0); why != FreeInside {
		t.Errorf("an address inside: %d", why)
	}
	drop(h, a)
	if why := Free(h, a, HowAny, NoSize, 0); why != FreeStale {
		t.Errorf("freed twice: %d", why)
	}
	committed := pool.count.committed
	for i := range uintptr(40) {
		b := get(t, h, mib+i%9*mib)
		if b>>21 != a>>21 {
			t.Errorf("block %d is at %#x, the first was at %#x", i, b, a)
		}
		drop(h, b)
		sound(t)
	}
	if pool.count.committed != committed {
		t.Errorf("%d bytes are committed, not %d", pool.count.committed, committed)
	}
}

// TestHugeInDirtySpan: where many huge blocks are in use another is in a span that has memory, and
// only there; calloc, which would clear it, has a fresh mapping.
func TestHugeInDirtySpan(t *testing.T) {
	newWorld(t)
	PurgeDelay = 16e9
	h := mustAcquire(t, 8)
	a := get(t, h, 6*mib)
	for range 2 {
		get(t, h, hugeSpanMost+mib)
	}
	if Lookup(a).state != spanInUse || hugeLive() <= hugeSpansMost {
		t.Fatalf("state %d, %d bytes in huge blocks", Lookup(a).state, hugeLive())
	}
	pool.feedback.wanted = uintptr(pool.count.peak) // nothing is purged
	drop(h, a)
	committed := pool.count.committed
	b := get(t, h, 6*mib)
	if Lookup(b) != Lookup(a) || raw.LoadByte(b) != 7 || pool.count.committed != committed {
		t.Errorf("%#x is used, %#x was free; %d bytes committed, not %d", b, a,
			pool.count.committed, committed)
	}
	if c := get(t, h, 6*mib); Lookup(c).state != spanHuge {
		t.Errorf("another one has state %d", Lookup(c).state)
	}
	drop(h, b)
	zero := Malloc(h, 6*mib, 0, uintptr(stats.CallCalloc))
	if zero&ZeroBit == 0 || Lookup(zero).state != spanHuge {
		t.Errorf("calloc: %#x, state %d", zero, Lookup(zero).state)
	}
	sound(t)
}

// TestHugeInSpanResized: a huge block in a span becomes shorter in place, longer by page tables.
func TestHugeInSpanResized(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	b := get(t, h, 12*mib)
	numbered(b, 12*mib)
	used := pool.usedBytes
	if to := Resize(h, b, 5*mib); to != b || pool.usedBytes > used-6*mib ||
		pool.dirtyBytes < 6*mib {
		t.Errorf("shorter: %#x for %#x, %d bytes in use, %d dirty", to, b, pool.usedBytes,
			pool.dirtyBytes)
	}
	sound(t)
	to := Resize(h, b, 40*mib)
	if to == 0 {
		t.Fatal("no growth")
	}
	sound(t)
	isNumbered(t, to, 5*mib)
	drop(h, to)
	sound(t)
}

// TestHugeNotInSpan: where memory moves by parts or a cap is near a huge block is a mapping.
func TestHugeNotInSpan(t *testing.T) {
	for _, c := range []struct {
		why string
		set []string
		n   uintptr
	}{
		{"too large", nil, hugeSpanMost + 1},
		{"a cap", []string{"TA_NORMAL_HARD=48M"}, 9 * mib},
		{"demotion", []string{"TA_NORMAL_SOFT=1G", "TA_ON_SOFTCAP=demote"}, 9 * mib},
	} {
		newWorld(t)
		environment(t, c.set...)
		h := mustAcquire(t, 8)
		if p := Lookup(get(t, h, c.n)); p.state != spanHuge {
			t.Errorf("%s: state %d", c.why, p.state)
		}
	}
	newWorld(t)
	watches(t)
	if p := Lookup(get(t, mustAcquire(t, 8), 9*mib)); p.state != spanHuge {
		t.Errorf("watched: state %d", p.state)
	}
}

// TestHugePinned: memory that is pinned must all be on its node, and has a mapping.
func TestHugePinned(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	b := Alloc(h, 9*mib, uintptr(config.HintPinFast)) &^ ZeroBit
	if p := Lookup(b); p == nil || p.state != spanHuge {
		t.Errorf("%#x is in %+v", b, p)
	}
}
