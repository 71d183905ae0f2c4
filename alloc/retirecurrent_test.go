package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// empty is how many current pages of several slices of h are empty, and how many bytes of those but
// the last one were put to use.
func empty(h *Heap) (n int, carved uintptr) {
	for c, p := range h.cur {
		if p == pageNone || p.slices == 1 || !p.allFree() {
			continue
		}
		n++
		if h.Thread.retiredHeap != h || int(h.Thread.retiredClass) != c {
			carved += uintptr(p.carved)
		}
	}
	return n, carved
}

// TestRetireCurrent: an array that grows leaves few bytes in empty pages of large blocks behind,
// whichever way its blocks are freed.
func TestRetireCurrent(t *testing.T) {
	for name, fast := range map[string]bool{"fast path": true, "slow path": false} {
		t.Run(name, func(t *testing.T) {
			newWorld(t)
			r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
			const least = 9 << 10
			last := uintptr(0)
			for n := uintptr(least); n <= sizeclass.MaxSize; n += n / 8 {
				b, _ := r.malloc(n)
				if b == 0 {
					t.Fatalf("no %d bytes", n)
				}
				if last != 0 {
					give(t, r, last, fast)
				}
				last = b
				sound(t)
			}
			give(t, r, last, fast)
			sound(t)
			if n, carved := empty(r.h); carved > keepMost {
				t.Errorf("%d pages are empty, with %d bytes", n, carved)
			}
			if free := pool.dirtyBytes + uintptr(pool.count.purgedBytes); free < sizeclass.MaxSize {
				t.Errorf("%d bytes are free for all classes, or went back", free)
			}
		})
	}
}

func give(t *testing.T, r *thread, b uintptr, fast bool) {
	t.Helper()
	why := uintptr(FreeOK)
	if fast {
		why = r.free(b)
	} else {
		why = r.freeSlow(b)
	}
	if why != FreeOK {
		t.Fatalf("freeing %#x: %d", b, why)
	}
}

// TestRetireInRotation: a large block that comes and goes soon stays with the fast path; its page
// goes to the pool when another class has one that is empty, unless little of it was put to use.
func TestRetireInRotation(t *testing.T) {
	newWorld(t)
	calls := 0
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { calls++; return 1e9 }}
	for i, n := range []uintptr{1 << 20, 100 << 10, 300 << 10, 10 << 10} {
		for range steadyRun {
			b, _ := r.malloc(n)
			give(t, r, b, true)
		}
		calls = 0
		for range 100 {
			b, _ := r.malloc(n)
			give(t, r, b, true)
		}
		if calls > 2 {
			t.Errorf("%d slow calls for 100 blocks of %d bytes", calls, n)
		}
		if got, _ := empty(r.h); got != []int{1, 1, 2, 2}[i] {
			t.Errorf("%d pages are empty after blocks of %d bytes", got, n)
		}
	}
	sound(t)
}

// TestRetireSeveral: buffers of several sizes in turn stay with the fast path while they are small
// together; more of them make each other's pages go to the pool.
func TestRetireSeveral(t *testing.T) {
	newWorld(t)
	calls := 0
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { calls++; return 1e9 }}
	turn := func(sizes ...uintptr) {
		for _, n := range sizes {
			b, _ := r.malloc(n)
			give(t, r, b, true)
		}
	}
	for range 40 {
		turn(10<<10, 40<<10, 17<<10, 80<<10, 25<<10)
	}
	calls = 0
	for range 100 {
		turn(10<<10, 40<<10, 17<<10, 80<<10, 25<<10)
	}
	if calls > 2 {
		t.Errorf("%d slow calls for 500 small buffers", calls)
	}
	for n := uintptr(9 << 10); n < 256<<10; n += n / 8 {
		turn(n)
		sound(t)
		if _, carved := empty(r.h); carved > keepMost {
			t.Fatalf("%d bytes in empty pages", carved)
		}
	}
	r.h.Thread.Now += 2 * PurgeDelay
	Trim(r.h)
	if n, _ := empty(r.h); n != 0 || pool.usedBytes > 2*SliceSize {
		t.Errorf("%d pages are empty after a trim, %d bytes in use", n, pool.usedBytes)
	}
	sound(t)
}

// TestRetireKeptAgain: a kept page that becomes empty again stays, although the others that are
// kept leave no room for it. Other threads would get it while it is looked at.
func TestRetireKeptAgain(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	const large = 240 << 10
	for _, n := range []uintptr{large, 200 << 10, 120 << 10, large} {
		b, _ := r.malloc(n)
		give(t, r, b, false)
		sound(t)
	}
	if p := r.h.current(sizeclass.Of(large)); p == pageNone || !p.allFree() {
		t.Errorf("the page is gone: %+v", p)
	}
}

// TestBufferOfChangingSize: one large buffer at a time, each of another size than the one before,
// is served at the same address, and takes no more memory than the largest and a segment's growth.
func TestBufferOfChangingSize(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	first := uintptr(0)
	for i := range uintptr(200) {
		n := sizeclass.MaxSize - i*7919*1024%(sizeclass.MaxSize-(300<<10))
		b, _ := r.malloc(n)
		if b == 0 {
			t.Fatalf("no %d bytes", n)
		}
		if first == 0 {
			first = b &^ (sizeclass.SliceSize - 1)
		}
		if at := b &^ (sizeclass.SliceSize - 1); at != first {
			t.Fatalf("buffer %d, of %d bytes, is at %#x instead of %#x", i, n, at, first)
		}
		give(t, r, b, true)
		sound(t)
	}
	if pool.count.peak > sizeclass.MaxSize+firstGrowth<<SliceShift {
		t.Errorf("%d bytes at most for one buffer of %d", pool.count.peak, sizeclass.MaxSize)
	}
}

// TestCurrentGrowsOld: an empty current page goes to the pool when nothing was allocated from it
// between two looks.
func TestCurrentGrowsOld(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	sizes := []uintptr{100, 1000, 5000}
	current := func() (n int) {
		for _, size := range sizes {
			if h.cur[sizeclass.Of(size)] != pageNone {
				n++
			}
		}
		return n
	}
	for _, size := range sizes {
		Free(h, mustServe(t, h, size), HowAny, NoSize, 0)
	}
	h.collectPages(false)
	Free(h, mustServe(t, h, sizes[0]), HowAny, NoSize, 0)
	if n := current(); n != len(sizes) {
		t.Fatalf("%d of %d pages are left after one look", n, len(sizes))
	}
	h.collectPages(false)
	if h.cur[sizeclass.Of(sizes[0])] == pageNone || current() != 1 {
		t.Errorf("%d pages are left, that of %d bytes, which were used between: %v", current(),
			sizes[0], h.cur[sizeclass.Of(sizes[0])] != pageNone)
	}
	mustBeSound(t)
}

// TestGrownArray: an array that a program grows by copying it takes no more memory than the two
// copies and a few of the blocks before. None stays on the thread-cache free lists that it passes.
func TestGrownArray(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return 1e9 }}
	const most = 4 << 20
	last, peak := uintptr(0), uintptr(0)
	for n := uintptr(1000); n <= most; n += 1000 {
		b, _ := r.malloc(n)
		if b == 0 {
			t.Fatalf("no %d bytes", n)
		}
		if last != 0 {
			if why := r.free(last); why != FreeOK {
				t.Fatalf("free says %d", why)
			}
		}
		last = b
		peak = max(peak, pool.usedBytes)
	}
	if peak > 4*most {
		t.Errorf("at most %d bytes were in use for an array of %d", peak, most)
	}
	sound(t)
}

// TestTakeKept: when more buffers in turn have different sizes than a thread keeps pages for, a
// class more takes the page of another that is as long, and none goes to the pool or comes from it.
func TestTakeKept(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	turn := func(n uintptr) {
		b, _ := r.malloc(n)
		give(t, r, b, true)
		sound(t)
	}
	round := func() (changes int) {
		was := [2]uintptr{}
		for n := uintptr(9 << 10); n < 100<<10; n += n / 8 {
			turn(n)
			if is := [2]uintptr{pool.usedBytes, pool.dirtyBytes}; is != was {
				was = is
				changes++
			}
		}
		return changes - 1
	}
	for range 4 {
		round()
	}
	if n := round(); n > 0 {
		t.Errorf("spans went %d times to the pool or from it", n)
	}
	if n, carved := empty(r.h); carved > keepMost {
		t.Errorf("%d pages are empty, with %d bytes", n, carved)
	}
}

// grow lengthens a block of n bytes by half, as a buffer that is filled, until it has most bytes or
// more. After each step it calls done.
func (r *thread) grow(t *testing.T, b, n, most uintptr, done func()) (uintptr, uintptr) {
	t.Helper()
	for n < most {
		was := n
		n += n / 2
		raw.StoreByte(b+was-1, byte(was>>8))
		to := uintptr(0)
		if was >= InPlaceMin {
			to = Resize(r.enter(), b, n)
			r.leave()
		}
		if to == 0 {
			to, _ = r.malloc(n)
			raw.Copy(to, b, was)
			give(t, r, b, true)
		}
		b = to
		if raw.LoadByte(b+was-1) != byte(was>>8) {
			t.Fatalf("from %d bytes to %d: other contents", was, n)
		}
		sound(t)
		done()
	}
	return b, n
}

// TestOfferKept: where there are other threads, a buffer that grows, with smaller ones in between,
// lies in the page of the one before it once it is too long for its own, and no span goes to the
// pool or comes from it.
func TestOfferKept(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	mustAcquire(t, 16)
	used, dirty, steady := uintptr(0), uintptr(0), false
	fill := func() {
		for small := uintptr(9 << 10); small < 64<<10; small += small / 8 {
			b, _ := r.malloc(small)
			give(t, r, b, true)
		}
		b, _ := r.malloc(4 << 10)
		b, _ = r.grow(t, b, 4<<10, 600<<10, func() {
			if steady && (pool.usedBytes != used || pool.dirtyBytes != dirty) {
				t.Fatalf("%d and %d bytes are in use and dirty, %d and %d before", pool.usedBytes,
					pool.dirtyBytes, used, dirty)
			}
		})
		give(t, r, b, true)
	}
	for range 5 {
		fill()
	}
	used, dirty, steady = pool.usedBytes, pool.dirtyBytes, true
	for range 10 {
		fill()
	}
}

// TestOfferSettles: buffers of which the program keeps some, grown to 100 KiB in the page of a
// longer one before, do not keep the whole of that page, whether they stay or are freed.
func TestOfferSettles(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	mustAcquire(t, 16)
	live, bytes := []uintptr{}, uintptr(0)
	offers := 0
	for i := range uintptr(12) {
		b, _ := r.malloc(20 << 10)
		b, _ = r.grow(t, b, 20<<10, 600<<10, func() {})
		give(t, r, b, true)
		b, _ = r.malloc(30<<10 + i<<10)
		b, n := r.grow(t, b, 30<<10+i<<10, 100<<10, func() {})
		if p := r.h.offered; p == Lookup(b) {
			offers++
		}
		live, bytes = append(live, b), bytes+n
	}
	long := 0
	for _, b := range live {
		if p := Lookup(b); uintptr(p.slices) > 2*r.h.slicesOf(p.class()) {
			long++
		}
	}
	if offers < 6 || long > 1 {
		t.Errorf("%d pages were offered, %d are longer than their blocks need", offers, long)
	}
	for _, b := range live {
		give(t, r, b, true)
		sound(t)
	}
	small := uintptr(8 << 10)
	for n := uintptr(40 << 10); n < 100<<10; n += n / 8 {
		for _, most := range []uintptr{600 << 10, n, 21 << 10} {
			b, _ := r.malloc(20 << 10)
			b, _ = r.grow(t, b, 20<<10, most, func() {})
			give(t, r, b, true)
		}
		small += small / 8
		b, _ := r.malloc(small)
		give(t, r, b, true)
		for c := r.h.kept.Next(0); c < sizeclass.Count; c = r.h.kept.Next(c + 1) {
			if p := r.h.current(c); uintptr(p.slices) > 2*r.h.slicesOf(c) {
				t.Errorf("a page of %d slices stays for blocks of %d bytes", p.slices, p.Size)
			}
		}
	}
}
