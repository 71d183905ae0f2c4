package numa

import (
	"sync"
	"syscall"
	"testing"

	"tieralloc/internal/raw"
)

// TestCount: every page is counted once, at each alignment, and in more than a batch.
func TestCount(t *testing.T) {
	const pages = 2*batch + 7
	addr := mapped(t, (pages+2)*raw.Page)
	node := usableNodes()[0]
	Bind(addr, (pages+2)*raw.Page, &Place{Nodes: 1 << node, Mode: PreferredMany}, false)
	for i := uintptr(0); i < pages; i += 2 {
		raw.Store(addr+i*raw.Page, 1)
	}
	read := raw.Load(addr + raw.Page) // only read: the page of zeros
	touched := uint64((pages + 1) / 2)
	if ownPage(t, addr+raw.Page) {
		touched++
	}
	if r := counted(addr, pages*raw.Page); read != 0 ||
		r.Node[node] != touched*raw.Page ||
		r.Absent != (pages-touched)*raw.Page || r.Failed != 0 {
		t.Errorf("%d of %d pages touched: %+v", touched, pages, r)
	}
	last := addr + (pages-1)*raw.Page
	r := counted(last, 2*raw.Page)
	Count(last, 2*raw.Page, r)
	if r.Node[node] != 2*raw.Page || r.Absent != 2*raw.Page {
		t.Errorf("Count does not add up: %+v", r)
	}
	for _, c := range []struct{ from, n, want uintptr }{
		{0, 0, 0}, {1, 1, 1}, {raw.Page - 1, 2, 2}, {0, raw.Page, 1}, {0, raw.Page + 1, 2},
		{100, batch * raw.Page, batch + 1},
	} {
		r := counted(addr+c.from, c.n)
		if got := r.Node[node] + r.Absent + r.Failed; got != uint64(c.want*raw.Page) {
			t.Errorf("%d bytes at %d: %d counted, not %d pages", c.n, c.from, got, c.want)
		}
	}
	if r := counted(1<<20, 3*raw.Page); *r != (Residency{Absent: 3 * raw.Page}) {
		t.Errorf("where nothing is mapped: %+v", r)
	}
}

// TestCountRefused: where the kernel does not answer, all is failed, not lost.
func TestCountRefused(t *testing.T) {
	var r Residency
	CountPages(8, batch+1, &r) // no addresses can be read there
	if r != (Residency{Failed: (batch + 1) * raw.Page}) {
		t.Errorf("%+v", r)
	}
}

// TestCountAdd: statuses that no kernel here gives.
func TestCountAdd(t *testing.T) {
	var r Residency
	for _, status := range []int32{0, 63, 63, 64, 1 << 20, -int32(syscall.ENOENT),
		-int32(syscall.EFAULT),
		-int32(syscall.EFAULT), -int32(syscall.EBUSY), -1 << 31} {
		r.add(status)
	}
	var want Residency
	want.Node[0], want.Node[63], want.Absent, want.Failed = raw.Page, 2*raw.Page, 3*raw.Page,
		4*raw.Page
	if r != want {
		t.Errorf("%+v", r)
	}
}

// TestCountThreads: several may count at once.
func TestCountThreads(t *testing.T) {
	const n = 600 * raw.Page
	node := usableNodes()[0]
	var wg sync.WaitGroup
	for range 4 {
		addr := mapped(t, n)
		Bind(addr, n, &Place{Nodes: 1 << node, Mode: PreferredMany}, false)
		touch(addr, n)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 20 {
				if r := counted(addr, n); r.Node[node] != n {
					t.Errorf("%+v", r)
					return
				}
			}
		}()
	}
	wg.Wait()
}
