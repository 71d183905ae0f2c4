package alloc

import (
	"syscall"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
)

// batchThread is the second thread of a process, with many full pages.
func batchThread(t *testing.T) *Heap {
	t.Helper()
	roomyWorld(t)
	mustAcquire(t, 16)
	h := mustAcquire(t, 8)
	pagesOf(t, h, 8*batchShare, 256)
	return h
}

// untouched are the retired pages of a heap of which nothing was ever in use.
func untouched(h *Heap, c uintptr) (list []*Page) {
	for p := h.current(c); p != nil && p != pageNone; p = p.next {
		if p.isRetired() && p.carved == 0 && p.zero != 0 {
			list = append(list, p)
		}
	}
	return list
}

// TestBatch: a thread with many pages takes several fresh ones that lie side by side. They serve
// other classes as fresh memory, and go back to the pool when they were not wanted.
func TestBatch(t *testing.T) {
	h := batchThread(t)
	c := uintptr(sizeclass.Of(256))
	for len(untouched(h, c)) != batchMost-1 {
		mustServe(t, h, 256)
		if h.Thread.pages > 32*batchShare {
			t.Fatalf("of %d pages %d are untouched", h.Thread.pages, len(untouched(h, c)))
		}
	}
	mustBeSound(t)
	list := untouched(h, c)
	for i, p := range list[1:] {
		if p.Start != list[i].Start+SliceSize {
			t.Errorf("page %d is at %#x, the one before at %#x", i+1, p.Start, list[i].Start)
		}
	}
	_, pages := pagesOf(t, h, 2, 384)
	for _, p := range pages {
		if p.zero == 0 || p.Start < list[0].Start || p.Start > list[len(list)-1].Start {
			t.Errorf("a page of another class is at %#x, zero %d", p.Start, p.zero)
		}
	}
	mustBeSound(t)
	h.Thread.Now += 2 * PurgeDelay
	h.collectPages(false)
	if n := len(untouched(h, c)); n != 0 {
		t.Errorf("%d pages are kept after the delay", n)
	}
	mustBeSound(t)
}

// TestNoBatch: a page at a time for the only thread, for one with few pages, under a cap or a limit
// of addresses, and where the kernel is asked for huge pages.
func TestNoBatch(t *testing.T) {
	h := batchThread(t)
	if n := h.batch(1); n < 2 {
		t.Errorf("the thread takes %d at once", n)
	}
	if n := h.batch(2); n != 1 {
		t.Errorf("%d pages of two slices at once", n)
	}
	pool.threadCount = 1
	if n := h.batch(1); n != 1 {
		t.Errorf("the only thread takes %d at once", n)
	}
	pool.threadCount = 2
	addressLimit = 1 << 30
	if n := h.batch(1); n != 1 {
		t.Errorf("%d at once where addresses are limited", n)
	}
	addressLimit = 0
	if n := mustAcquire(t, 24).batch(1); n != 1 {
		t.Errorf("a thread without pages takes %d at once", n)
	}
	home := homeOf(uintptr(h.Hint))
	for name, set := range map[string]func(*config.Tier){
		"hard cap":   func(s *config.Tier) { s.Hard = 256 << 20 },
		"soft cap":   func(s *config.Tier) { s.Soft = 2 << 20 },
		"huge pages": func(s *config.Tier) { s.HugePages = config.HugeThp },
	} {
		setTiers(func(s *config.Settings) { set(&s.Tiers[home]) })
		if n := h.batch(1); n != 1 {
			t.Errorf("%s: %d at once", name, n)
		}
	}
}

// TestBatchRefused: where the kernel has no memory for a batch it may have some for a page.
func TestBatchRefused(t *testing.T) {
	newWorld(t)
	mustAcquire(t, 16)
	h := mustAcquire(t, 8)
	h.Thread.pages = 8 * batchShare // so many that a batch is wanted
	p := segmentMap(homeOf(uintptr(h.Hint)), 1, false)
	if p == nil {
		t.Fatal("no segment")
	}
	insertFree(p, spanClean)
	var usual syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &usual); err != nil {
		t.Fatal(err)
	}
	none := syscall.Rlimit{Cur: 1, Max: usual.Max} // for the one call that is of interest
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &none); err != nil {
		t.Fatal(err)
	}
	got := h.spanAlloc(1, batchMost)
	err := syscall.Setrlimit(syscall.RLIMIT_AS, &usual)
	addressLimit = 0
	if err != nil || got != p || p.bytes() != SliceSize {
		t.Errorf("the span is %p, not the last one there is, %p; %v", got, p, err)
	}
	h.Thread.pages = 0
}
