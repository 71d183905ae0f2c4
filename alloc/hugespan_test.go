package alloc

import (
	"testing"

	"tieralloc/internal/raw"
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
