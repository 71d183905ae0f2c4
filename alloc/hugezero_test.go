package alloc

import (
	"testing"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// TestSparseCalloc: a cached block of which few pages were touched serves calloc without becoming
// resident. One that is resident is left for the caller to clear.
func TestSparseCalloc(t *testing.T) {
	const n, calloc = 64 * mib, uintptr(stats.CallCalloc)
	for _, step := range []uintptr{mib, raw.Page} {
		h := hugeWorld(t)
		b := Malloc(h, n, 0, 0) &^ ZeroBit
		raw.Sys(sysMadvise, b, n, madvNoHugePage, 0, 0, 0) // the system may give huge pages to all
		for at := b; at < b+n; at += step {
			raw.StoreByte(at, 7)
		}
		drop(h, b)
		r := Malloc(h, n, 0, calloc)
		if r&^ZeroBit != b {
			t.Fatalf("the block was at %#x, and is at %#x", b, r)
		}
		sparse := step != raw.Page
		if zero := r&ZeroBit != 0; zero != sparse {
			t.Errorf("pages touched each %d bytes: reads as zero: %v", step, zero)
		}
		if zero := raw.LoadByte(b) == 0 && raw.LoadByte(b+n-step) == 0; zero != sparse {
			t.Errorf("pages touched each %d bytes: is zero: %v", step, zero)
		}
		sound(t)
	}
}
