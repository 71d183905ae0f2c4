package alloc

import (
	"slices"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
)

// pagesOf fills n pages with blocks of a size and returns those, page by page.
func pagesOf(t *testing.T, h *Heap, n int, size uintptr) (blocks []uintptr, pages []*Page) {
	t.Helper()
	for {
		b := mustServe(t, h, size)
		if p := Lookup(b); !slices.Contains(pages, p) {
			if len(pages) == n {
				Free(h, b, HowAny, NoSize, 0)
				return blocks, pages
			}
			pages = append(pages, p)
		}
		blocks = append(blocks, b)
	}
}

func freeEach(h *Heap, blocks []uintptr) {
	for _, b := range blocks {
		Free(h, b, HowAny, NoSize, 0)
	}
}

// TestTakeRetired: what one class of a heap has left empty serves the next without the pool, up to
// half of what is in use.
func TestTakeRetired(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	blocks, pages := pagesOf(t, h, 8, 256)
	most := min(retireOne, pool.usedBytes/2)
	freeEach(h, blocks)
	mustBeSound(t)
	kept := h.Thread.retiredBytes
	if kept == 0 || kept > most {
		t.Fatalf("%d KiB are kept, of %d at most", kept>>10, most>>10)
	}
	dirty, committed := pool.dirtyBytes, pool.count.committed
	again, others := pagesOf(t, h, int(kept>>SliceShift), 384)
	for _, p := range others[:len(others)-1] { // beside them one is wanted, or two
		if !slices.Contains(pages, p) {
			t.Errorf("page %#x was none of those that were left empty", p.Start)
		}
		if p.Class != uint32(sizeclass.Of(384)) || p.zero != 0 || heapOf(p.Owner) != h {
			t.Errorf("page %#x has class %d, zero %d, owner %#x", p.Start, p.Class, p.zero, p.Owner)
		}
	}
	if h.Thread.retiredBytes > SliceSize || pool.count.committed > committed+2*SliceSize ||
		pool.dirtyBytes+2*SliceSize < dirty {
		t.Errorf(
			"%d KiB are kept, %d dirty (%d before), %d committed (%d)",
			h.Thread.retiredBytes>>10,
			pool.dirtyBytes>>10,
			dirty>>10,
			pool.count.committed>>10,
			committed>>10,
		)
	}
	mustBeSound(t)
	for _, b := range again {
		written(b, 384)
	}
	for _, b := range again {
		intact(t, b, 384)
	}
	mustBeSound(t)
}

// TestTakeRetiredStale: a page that the heap has left empty once, and that has gone to the pool and
// to another heap, is not taken from that one.
func TestTakeRetiredStale(t *testing.T) {
	newWorld(t)
	h, o := mustAcquire(t, 8), mustAcquire(t, 16)
	blocks, pages := pagesOf(t, h, 6, 256)
	freeEach(h, blocks)
	known := slices.ContainsFunc(h.retiredPages[:],
		func(p *Page) bool { return slices.Contains(pages, p) })
	h.Thread.collectPages(true)
	if h.Thread.retiredBytes != 0 || !known {
		t.Fatalf("%d bytes are kept, one was known: %v", h.Thread.retiredBytes, known)
	}
	theirs, _ := pagesOf(t, o, 6, 512)
	freeEach(o, theirs) // and some are empty on the list of the other now
	taken, _ := pagesOf(t, h, 4, 384)
	for _, b := range taken {
		if p := Lookup(b); heapOf(p.Owner) != h {
			t.Fatalf("page %#x belongs to %#x", p.Start, p.Owner)
		}
	}
	mustBeSound(t)
}

// TestTakeRetiredOnly: only an empty page of one slice, for the heap's own hint, serves, and none
// with TA_SECURE=1.
func TestTakeRetiredOnly(t *testing.T) {
	for _, c := range []struct {
		name   string
		serves bool
		change func(t *testing.T, h *Heap) (n uintptr)
	}{
		{"one slice", true, func(*testing.T, *Heap) uintptr { return 1 }},
		{"two wanted", false, func(*testing.T, *Heap) uintptr { return 2 }},
		{"in use again", false, func(t *testing.T, h *Heap) uintptr {
			for h.Thread.retiredBytes != 0 {
				mustServe(t, h, 256)
			}
			return 1
		}},
		{"descriptor of another span", false, func(t *testing.T, h *Heap) uintptr {
			pagesOf(t, h, 400, 1000) // of which a 64th is some pages
			long, pages := pagesOf(t, h, 3, 20<<10)
			freeEach(h, long)
			i := slices.IndexFunc(pages, func(p *Page) bool { return p.isRetired() })
			if i < 0 {
				t.Fatal("no page of several slices is kept")
			}
			for at := range h.retiredPages {
				h.retiredPages[at] = pages[i]
			}
			return 1
		}},
		{"full, which another thread may take", false, func(_ *testing.T, h *Heap) uintptr {
			for _, p := range h.retiredPages {
				if p != nil {
					p.Owner |= OwnerFull
				}
			}
			return 1
		}},
		{"away", false, func(_ *testing.T, h *Heap) uintptr {
			for _, p := range h.retiredPages {
				if p != nil {
					p.placement++
				}
			}
			return 1
		}},
		{"unmigrated", false, func(_ *testing.T, h *Heap) uintptr {
			for _, p := range h.retiredPages {
				if p != nil {
					p.unmigrated = 1
				}
			}
			return 1
		}},
		{"demotion", false, func(*testing.T, *Heap) uintptr {
			setTiers(func(s *config.Settings) {
				s.Tiers[config.TierNormal].Soft, s.OnSoftcap = 1<<30, config.SoftcapDemote
			})
			return 1
		}},
		{"hard", false, func(*testing.T, *Heap) uintptr { secure = true; return 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			newWorld(t)
			h := mustAcquire(t, 8)
			blocks, _ := pagesOf(t, h, 6, 256)
			freeEach(h, blocks)
			if p := h.takeRetired(c.change(t, h)); (p != nil) != c.serves {
				t.Errorf("%+v serves", p)
			}
		})
	}
}

// TestRetireLimit: a thread that falls silent keeps little, all threads together too; with
// TA_SECURE=1, or where memory goes back at once, no more than a share.
func TestRetireLimit(t *testing.T) {
	const each = 40 // pages
	t.Run("one", func(t *testing.T) {
		newWorld(t)
		h := mustAcquire(t, 8)
		blocks, _ := pagesOf(t, h, each, 256)
		freeEach(h, blocks)
		if h.Thread.retiredBytes != retireOne {
			t.Errorf("%d KiB are kept", h.Thread.retiredBytes>>10)
		}
		mustBeSound(t)
	})
	t.Run("many", func(t *testing.T) {
		newWorld(t)
		for i := range uintptr(20) {
			h := mustAcquire(t, 8+8*i)
			blocks, _ := pagesOf(t, h, each, 256)
			freeEach(h, blocks)
			if i == 2 && pool.retiredBytes != 3*retireOne {
				t.Errorf("%d KiB are kept by 3 threads", pool.retiredBytes>>10)
			}
		}
		if pool.retiredBytes > retireAll+20*SliceSize || pool.retiredBytes < retireAll {
			t.Errorf("%d KiB are kept by 20 threads", pool.retiredBytes>>10)
		}
		mustBeSound(t)
	})
	for name, world := range map[string]func(testing.TB){"hard": hardWorld,
		"no delay": func(tb testing.TB) { newWorld(tb); PurgeDelay = 0 }} {
		t.Run(name, func(t *testing.T) {
			world(t)
			h := mustAcquire(t, 8)
			blocks, _ := pagesOf(t, h, each, 256)
			freeEach(h, blocks)
			if h.Thread.retiredBytes > each<<SliceShift/retireShareUsed {
				t.Errorf("%d KiB are kept", h.Thread.retiredBytes>>10)
			}
		})
	}
}
