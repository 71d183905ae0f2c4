package alloc

import "testing"

// table allocates a block of n bytes for what the block of b had, and frees that, as a table does
// that moves when it is full. Zero is no block.
func table(tb testing.TB, h *Heap, b, n uintptr) uintptr {
	tb.Helper()
	to := get(tb, h, n)
	if b != 0 {
		drop(h, b)
	}
	return to
}

// TestTableDoubles: what a table leaves that doubles its size each time goes back at once, because
// it never suffices for the next size.
func TestTableDoubles(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	b := uintptr(0)
	for n := uintptr(64 << 10); n <= 256*mib; n *= 2 {
		b = table(t, h, b, n)
		most := amountReserve(pool.usedBytes) + amountReserve(uintptr(hugeLive()))
		if unused := pool.dirtyBytes + pool.cache.bytes; unused > most {
			t.Errorf("%d KiB stay beside the table of %d KiB", unused>>10, n>>10)
		}
	}
	sound(t)
}

// TestTableGrows: what a table leaves that grows by half stays, because it suffices for a later
// size.
func TestTableGrows(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	b, size := uintptr(0), uintptr(64<<10)
	for ; size < 100*mib; size += size / 2 {
		b = table(t, h, b, size)
	}
	if pool.count.hugeHits < 2 || pool.cache.bytes == 0 {
		t.Errorf("%d blocks were made of cached ones, %d MiB are cached", pool.count.hugeHits,
			pool.cache.bytes/mib)
	}
	sound(t)
}

// TestHugeInTurn: a block that is freed and allocated again in turn beside a larger one is faulted
// in twice, and goes back when that ends.
func TestHugeInTurn(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	const n = 40 * mib
	get(t, h, 2*n)
	for range 5 {
		drop(h, get(t, h, n))
	}
	if pool.count.hugeMisses != 3 || pool.cache.bytes < n {
		t.Errorf("%d mappings, %d MiB are cached", pool.count.hugeMisses, pool.cache.bytes/mib)
	}
	h.Thread.Now += PurgeDelay
	hugeExpire(h.Thread.token, h.Thread.Now, anyPlacement, false)
	if pool.cache.n != 0 || pool.feedback.wanted != 0 {
		t.Errorf("%d blocks are cached after the delay, %d MiB are wanted", pool.cache.n,
			pool.feedback.wanted/mib)
	}
	sound(t)
}

// TestHugeCycle: blocks that are freed and allocated again in turn, more than hugeCacheMax bytes,
// are faulted in twice, and go back when that ends. The heap never has more than they take.
func TestHugeCycle(t *testing.T) {
	for _, c := range []struct{ blocks, bytes uintptr }{
		{40, 8 * mib}, {120, 5 * mib}, {3, 100 * mib},
	} {
		newWorld(t)
		h := mustAcquire(t, 8)
		h.Thread.Now = 1e9
		blocks, misses := make([]uintptr, c.blocks), uint64(0)
		for range 4 {
			misses = pool.count.hugeMisses
			for i := range blocks {
				blocks[i] = get(t, h, c.bytes)
			}
			for _, b := range blocks {
				drop(h, b)
			}
		}
		all := c.blocks * c.bytes
		kept := pool.cache.bytes + pool.dirtyBytes // the first blocks are spans
		if n := pool.count.hugeMisses - misses; n != 0 || kept < all {
			t.Errorf("%+v: %d are mapped each time, %d MiB are kept", c, n, kept/mib)
		}
		if most := uint64(all + all/16); pool.count.peak > most {
			t.Errorf("%+v: the heap had %d MiB", c, pool.count.peak/mib)
		}
		h.Thread.Now += PurgeDelay
		hugeExpire(h.Thread.token, h.Thread.Now, anyPlacement, false)
		if pool.cache.n != 0 || pool.feedback.wanted > all/16 {
			t.Errorf("%+v: %d blocks are cached after the delay, %d MiB are wanted", c,
				pool.cache.n, pool.feedback.wanted/mib)
		}
		sound(t)
	}
}
