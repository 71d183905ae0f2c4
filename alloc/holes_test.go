package alloc

import (
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// residentPages is how many memory pages of the span of p are resident.
func residentPages(t *testing.T, p *Page) (n int) {
	t.Helper()
	var in [256]byte
	if _, errno := raw.Sys(syscall.SYS_MINCORE, p.Start, p.bytes(), uintptr(unsafe.Pointer(&in)), 0, 0, 0); errno != 0 {
		t.Fatal(syscall.Errno(errno))
	}
	for _, b := range in {
		n += int(b & 1)
	}
	return n
}

// thinned has many pages of blocks of one size, of which one in so many survives, written over,
// and all pages have rested. It returns those blocks and one page that is not current.
func thinned(t *testing.T, r *thread, size uintptr, every int) (left []uintptr, p *Page) {
	t.Helper()
	var blocks []uintptr
	for range 6 * int(pageSlices(Class(size))<<SliceShift/size) {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
		for at := uintptr(0); at < size; at += 8 {
			raw.Store(b+at, b+at)
		}
	}
	for i, b := range blocks {
		if i%every == every/2 {
			left = append(left, b)
		} else {
			give(t, r, b, i%2 == 0)
		}
	}
	r.h.Thread.release()
	for c := range r.h.Spill {
		r.h.flush(uintptr(c))
	}
	r.h.Thread.rest(false)
	if n := pool.count.purgedBytes; n != 0 {
		t.Fatalf("%d bytes went before anything had rested", n)
	}
	r.h.Thread.rest(false)
	sound(t)
	for q := r.h.cur[Class(size)].next; q != nil; q = q.next {
		if q.holes != 0 {
			p = q
		}
	}
	if p == nil {
		t.Fatalf("no page of blocks of %d bytes has a hole", size)
	}
	return left, p
}

// TestHoles: what no block in use touches is not resident any more; it is found to be free when it is
// freed again, and comes back into use when all else is.
func TestHoles(t *testing.T) {
	for _, c := range []struct {
		size  uintptr
		every int
	}{{304, 64}, {1024, 16}, {3000, 16}, {4096, 8}, {9000, 7}, {16384, 4}, {30000, 7}} {
		newWorld(t)
		r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
		left, p := thinned(t, r, c.size, c.every)
		before := int(p.carved >> raw.PageShift)
		if n := residentPages(t, p); n > before*3/4 {
			t.Errorf("%d bytes: %d memory pages of %d are resident with holes %#x", c.size, n, before, p.holes)
		}
		for at := uintptr(0); at < uintptr(p.carved); at += p.Size {
			if b := p.Start + at; p.inHole(b) {
				if why := r.free(b); why != FreeDouble {
					t.Fatalf("%d bytes: freeing %#x in a hole says %d", c.size, b, why)
				}
			}
		}
		used := map[uintptr]bool{}
		for _, b := range left {
			used[b] = true
		}
		for pages := pool.usedBytes; pool.usedBytes == pages; {
			b, _ := r.malloc(c.size)
			if used[b] {
				t.Fatalf("%d bytes: %#x is given out twice", c.size, b)
			}
			used[b] = true
			for at := uintptr(0); at < c.size; at += 8 {
				raw.Store(b+at, b+at)
			}
		}
		sound(t)
		if p.holes != 0 || p.Carved != uint64(p.carved) {
			t.Errorf("%d bytes: a page has holes %#x still when another was needed", c.size, p.holes)
		}
		for b := range used {
			for at := uintptr(0); at < c.size; at += 8 {
				if got := raw.Load(b + at); got != b+at {
					t.Fatalf("%d bytes: %#x at %d of block %#x", c.size, got, at, b)
				}
			}
			give(t, r, b, true)
		}
		sound(t)
	}
}

// TestHolesWhereTheyPay: a page with many blocks in use, and one that is in use, keep their memory, but for
// who asks for all.
func TestHolesWhereTheyPay(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	left, p := thinned(t, r, 1024, 16)
	before := p.holes
	for _, b := range left {
		if Lookup(b) == p {
			give(t, r, b, true)
			break
		}
	}
	r.h.Thread.rest(false)
	if p.holes != before {
		t.Errorf("holes %#x, before that %#x, in a page whose counts changed", p.holes, before)
	}
	r.h.Thread.rest(false)
	if p.holes == before {
		t.Errorf("no more holes than %#x when the page has rested again", before)
	}
	var dense []uintptr
	for range 6 * 32 {
		b, _ := r.malloc(2048)
		dense = append(dense, b)
	}
	for i, b := range dense {
		if i/2%4 == 0 {
			give(t, r, b, false)
		}
	}
	q := Lookup(dense[40])
	r.h.Thread.rest(false)
	r.h.Thread.rest(false)
	if q.sparse() || q.holes != 0 {
		t.Errorf("a page with %d of %d blocks in use has holes %#x", q.Allocs-q.Frees, q.blocks, q.holes)
	}
	Trim(r.enter())
	if q.holes == 0 {
		t.Error("malloc_trim makes no hole in it")
	}
	sound(t)
}

// TestHolesWithGrowth: pages that rest while the program grows beyond what it ever had give their memory back.
func TestHolesWithGrowth(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	var blocks []uintptr
	for range 64 * 64 {
		b, _ := r.malloc(1024)
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		if i%32 != 0 {
			give(t, r, b, false)
		}
	}
	for range 600 {
		r.malloc(60000)
	}
	sound(t)
	if pool.count.purgedBytes == 0 {
		t.Error("nothing went back")
	}
}

// TestHolesInDamage: a free list that the program has written over is left alone.
func TestHolesInDamage(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	left, p := thinned(t, r, 1024, 16)
	const itself = 1
	for _, link := range []uintptr{8, p.Start + 8, itself} {
		for _, b := range left {
			if Lookup(b) == p {
				give(t, r, b, true)
				left = left[1:]
				break
			}
			left = left[1:]
		}
		was, holes := raw.Load(p.Free), p.holes
		if link == itself {
			link = p.Free
		}
		raw.Store(p.Free, link)
		if p.rest(true) != 0 || p.holes != holes {
			t.Errorf("with %#x for a link a page has holes %#x", link, p.holes)
		}
		raw.Store(p.Free, was)
	}
	if p.rest(true) == 0 {
		t.Error("no holes in a sound page")
	}
	sound(t)
}
