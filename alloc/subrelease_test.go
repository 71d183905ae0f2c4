package alloc

import (
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// residentPages is how many memory pages of the span of p are resident.
func residentPages(t *testing.T, p *Page) (n int) {
	t.Helper()
	var in [256]byte
	if _, errno := raw.Sys(syscall.SYS_MINCORE, p.spanStart(), p.bytes(),
		uintptr(unsafe.Pointer(&in)), 0, 0, 0); errno != 0 {
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
	for range 6 * int(sizeclass.PageSlices(sizeclass.Of(size))<<SliceShift/size) {
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
	for c := range r.h.CacheLists {
		r.h.flushCached(uintptr(c))
	}
	r.h.Thread.rest(false)
	if n := pool.count.purgedBytes; n != 0 {
		t.Fatalf("%d bytes went before anything had rested", n)
	}
	r.h.Thread.rest(false)
	sound(t)
	for q := r.h.cur[sizeclass.Of(size)].next; q != nil; q = q.next {
		if q.subreleased != 0 {
			p = q
		}
	}
	if p == nil {
		t.Fatalf("no page of blocks of %d bytes has a subreleased part", size)
	}
	return left, p
}

// TestSubrelease: what no block in use touches is not resident any more; it is found to be free
// when it is freed again, and comes back into use when all else is.
func TestSubrelease(t *testing.T) {
	for _, c := range []struct {
		size  uintptr
		every int
	}{{304, 64}, {1024, 16}, {3000, 16}, {4096, 8}, {9000, 7}, {16384, 4}, {30000, 7}} {
		newWorld(t)
		r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
		left, p := thinned(t, r, c.size, c.every)
		before := int(p.carved >> raw.PageShift)
		if n := residentPages(t, p); n > before*3/4 {
			t.Errorf(
				"%d bytes: %d memory pages of %d are resident with subreleased parts %#x",
				c.size,
				n,
				before,
				p.subreleased,
			)
		}
		for at := uintptr(0); at < uintptr(p.carved); at += p.stride() {
			if b := p.Start + at; p.isSubreleased(b) {
				if why := r.free(b); why != FreeDouble {
					t.Fatalf("%d bytes: freeing %#x in a subreleased part says %d", c.size, b, why)
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
		if p.subreleased != 0 || p.Carved != uint64(p.carved) {
			t.Errorf(
				"%d bytes: a page has subreleased parts %#x still when another was needed",
				c.size,
				p.subreleased,
			)
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

// TestSubreleaseWhereItPays: a page with many blocks in use, and one that is in use, keep their
// memory, but for who asks for all.
func TestSubreleaseWhereItPays(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	left, p := thinned(t, r, 1024, 16)
	before := p.subreleased
	for _, b := range left {
		if Lookup(b) == p {
			give(t, r, b, true)
			break
		}
	}
	r.h.Thread.rest(false)
	if p.subreleased != before {
		t.Errorf(
			"subreleased parts %#x, before that %#x, in a page whose counts changed",
			p.subreleased,
			before,
		)
	}
	r.h.Thread.rest(false)
	if p.subreleased == before {
		t.Errorf("no more subreleased parts than %#x when the page has rested again", before)
	}
	var dense []uintptr
	for range 6 * 128 {
		b, _ := r.malloc(512)
		dense = append(dense, b)
	}
	for i, b := range dense {
		if i/8%4 == 0 {
			give(t, r, b, false)
		}
	}
	q := Lookup(dense[160])
	r.h.Thread.rest(false)
	r.h.Thread.rest(false)
	if q.sparse() || q.subreleased != 0 {
		t.Errorf(
			"a page with %d of %d blocks in use has subreleased parts %#x",
			q.Allocs-q.Frees,
			q.blocks,
			q.subreleased,
		)
	}
	Trim(r.enter())
	if q.subreleased == 0 {
		t.Error("malloc_trim makes no subreleased part in it")
	}
	sound(t)
}

// TestSubreleaseWithGrowth: pages that rest while the program grows beyond what it ever had give
// their memory back.
func TestSubreleaseWithGrowth(t *testing.T) {
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

// TestSubreleaseInDamage: a free list that the program has written over is left alone.
func TestSubreleaseInDamage(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	left, p := thinned(t, r, 1024, 8)
	const itself = 1
	live := uintptr(0)
	for _, b := range left {
		if Lookup(b) == p {
			live = b // the last, which is not freed below
		}
	}
	raw.Store(live, 0)
	for _, link := range []uintptr{8, p.Start + 8, itself, live} {
		for _, b := range left {
			if Lookup(b) == p {
				give(t, r, b, true)
				left = left[1:]
				break
			}
			left = left[1:]
		}
		was, holes := raw.Load(p.Free), p.subreleased
		if link == itself {
			link = p.Free
		}
		raw.Store(p.Free, link)
		if r.h.Thread.restPage(p, true) != 0 || p.subreleased != holes {
			t.Errorf(
				"with %#x for a link a page has subreleased parts %#x, before that %#x",
				link,
				p.subreleased,
				holes,
			)
		}
		raw.Store(p.Free, was)
	}
	if r.h.Thread.restPage(p, true) == 0 {
		t.Error("no subreleased parts in a sound page")
	}
	sound(t)
}

// blocksOf fills n pages with blocks of one size.
func blocksOf(t *testing.T, r *thread, n int, size uintptr) (blocks []uintptr) {
	t.Helper()
	c := sizeclass.Of(size)
	for range n * int(sizeclass.PageSlices(c)<<SliceShift/sizeclass.Size(c)) {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
	}
	return blocks
}

// popCached gives cached blocks back to their pages.
func (t *thread) popCached() {
	for c := range t.h.CacheLists {
		t.h.flushCached(uintptr(c))
	}
}

// TestSubreleaseInTwoSteps: a page that is thinned out in two steps has the subreleased parts of
// one that is in one, also where blocks lie across parts.
func TestSubreleaseInTwoSteps(t *testing.T) {
	for _, size := range []uintptr{48, 304, 1024, 1280, 3072, 3584} {
		var got [2]uint32
		for two, lead := 0, uintptr(0); two < 2; {
			newWorld(t)
			r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
			blocks := blocksOf(t, r, 4, size)
			p := Lookup(blocks[len(blocks)/2])
			if two == 0 {
				lead = p.Start - p.spanStart()
			} else if p.Start-p.spanStart() != lead {
				continue // the blocks lie elsewhere in the parts
			}
			var later []uintptr
			for _, b := range blocks {
				switch at := b - p.Start; {
				case Lookup(b) != p || at < size:
				case at>>raw.PageShift%2 == 1 && two == 1:
					later = append(later, b)
				default:
					give(t, r, b, false)
				}
			}
			r.popCached()
			r.h.Thread.restPage(p, true)
			for _, b := range later {
				give(t, r, b, false)
			}
			r.popCached()
			r.h.Thread.restPage(p, true)
			got[two] = p.subreleased
			two++
			sound(t)
		}
		if got[0] == 0 || got[0] != got[1] {
			t.Errorf(
				"%d bytes: subreleased parts %#x at once, %#x in two steps",
				size,
				got[0],
				got[1],
			)
		}
	}
}

// TestSubreleaseLocked: memory that the kernel does not take back has no subreleased parts, and it
// is not asked all the time.
func TestSubreleaseLocked(t *testing.T) {
	newWorld(t)
	PurgeDelay = 1e9
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	blocks := blocksOf(t, r, 6, 1024)
	for _, b := range blocks {
		if _, errno := raw.Sys(syscall.SYS_MLOCK, Lookup(b).Start, SliceSize, 0, 0, 0,
			0); errno != 0 {
			t.Skip("mlock: ", syscall.Errno(errno))
		}
	}
	for i, b := range blocks {
		if i%16 != 8 {
			give(t, r, b, false)
		}
	}
	r.popCached()
	r.h.Thread.rest(true)
	for p := r.h.cur[sizeclass.Of(1024)]; p != nil; p = p.next {
		if p.subreleased != 0 || p.Carved == 0 {
			t.Errorf("a page has subreleased parts %#x", p.subreleased)
		}
	}
	if pool.quiet != r.h.Thread.Now+PurgeDelay {
		t.Error("the kernel will be asked again at once")
	}
	sound(t)
}

// TestSubreleaseCurrent: a page in use has none, so that frees of its blocks are the fast path's.
func TestSubreleaseCurrent(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	_, p := thinned(t, r, 1024, 16)
	c := sizeclass.Of(1024)
	for range 6 * 64 {
		if r.h.cur[c] == p {
			break
		}
		r.malloc(1024)
	}
	if r.h.cur[c] != p {
		t.Fatal("the page has not become current")
	}
	b, _ := r.malloc(1024)
	give(t, r, b, true)
	if p.subreleased != 0 || p.Carved != uint64(p.carved) {
		t.Errorf(
			"a page that is allocated from and freed to has subreleased parts %#x",
			p.subreleased,
		)
	}
	sound(t)
}

// TestSubreleaseUnderCap: where a cap refuses, no time is lost with subreleased parts, whose bytes
// stay charged.
func TestSubreleaseUnderCap(t *testing.T) {
	h := shortOf(t)
	blocks := untilNone(t, func() uintptr { return Malloc(h, 1024, 0, 0) })
	for i, b := range blocks {
		if i%16 != 8 {
			Free(h, b, HowAny, NoSize, 0)
		}
	}
	before := pool.count.purges
	for range 10 {
		if Malloc(h, 4096, 0, 0) != 0 {
			t.Fatal("there is room still")
		}
	}
	if pool.count.purges != before {
		t.Errorf("%d times something was given back", pool.count.purges-before)
	}
	mustBeSound(t)
}
