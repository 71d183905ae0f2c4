package alloc

import (
	"slices"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// sparse leaves one block of so many of size bytes in a number of pages, has them rest, and the heap grow. It returns the blocks.
func sparse(t *testing.T, r *thread, size uintptr, every int) (left []uintptr) {
	t.Helper()
	var blocks []uintptr
	for range 6 * int(SliceSize/size) {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		if i%every == every/2 {
			left = append(left, b)
		} else {
			give(t, r, b, i%2 == 0)
		}
	}
	for c := range r.h.Spill {
		r.h.flush(uintptr(c))
	}
	r.h.Thread.rest(false, false)
	r.h.Thread.rest(false, true)
	sound(t)
	return left
}

// written has each word of the block say where it is.
func written(b, n uintptr) {
	for at := uintptr(0); at+8 <= n; at += 8 {
		raw.Store(b+at, b+at)
	}
}

func intact(t *testing.T, b, n uintptr) {
	t.Helper()
	for at := uintptr(0); at+8 <= n; at += 8 {
		if got := raw.Load(b + at); got != b+at {
			t.Fatalf("the block %#x of %d bytes has %#x at %d", b, n, got, at)
		}
	}
}

func liveBlocks(t *testing.T, h *Heap) uint64 {
	t.Helper()
	r := filled(h.Thread.token)
	if r == nil {
		t.Fatal("no report")
	}
	return r.BlocksLive
}

// TestRuns: between the blocks in use of pages that have rested there is room for blocks of other sizes, which lie where their class says, are
// as large as they say, are told from what is free, and can be freed by any thread. When all is freed no page is left.
func TestRuns(t *testing.T) {
	for _, unit := range []uintptr{16, 48, 80, 208, 512} {
		for _, size := range []uintptr{16, 40, 128, 144, 500, 700, 2000} {
			newWorld(t)
			r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
			other := mustAcquire(t, 16)
			left := sparse(t, r, unit, 16)
			if r.h.runs == nil || r.h.runPages < 3 {
				t.Fatalf("%d bytes: %d pages are in runs", unit, r.h.runPages)
			}
			for _, b := range left {
				written(b, unit)
			}
			most := pool.usedBytes
			var blocks []uintptr
			inRuns := 0
			for range 400 {
				b, _ := r.malloc(size)
				p := Lookup(b)
				if pool.usedBytes > most {
					give(t, r, b, true)
					break
				}
				if class := ClassSize(Class(size)); b&(class&-class-1) != 0 {
					t.Fatalf("%d bytes among blocks of %d: at %#x", size, unit, b)
				}
				if p.inRuns() {
					inRuns++
				}
				n := Usable(b)
				if n < size {
					t.Fatalf("a block of %d bytes among those of %d has %d", size, unit, n)
				}
				written(b, n)
				blocks = append(blocks, b)
			}
			class := ClassSize(Class(size))
			need := (class + unit - 1) / unit * unit
			if class != unit && size <= 10*unit && (inRuns >= 5) != (need <= runWaste*class && class >= runLeast) {
				t.Errorf("%d blocks of %d bytes are among those of %d", inRuns, size, unit)
			}
			sound(t)
			if n := liveBlocks(t, r.h); n != uint64(len(left)+len(blocks)) {
				t.Errorf("%d, %d bytes: the report has %d blocks, not %d", unit, size, n, len(left)+len(blocks))
			}
			for _, b := range blocks {
				p := Lookup(b)
				if !p.inRuns() {
					continue
				}
				if size > unit {
					if why := Free(r.h, b+unit, HowAny, NoSize, 0); why != FreeInside {
						t.Fatalf("freeing the second of %d bytes in the block %#x says %d", unit, b, why)
					}
				}
				intact(t, b, Usable(b))
			}
			for i, b := range blocks {
				p, h := Lookup(b), r.h
				if i%3 == 0 {
					h = other
				}
				if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
					t.Fatalf("freeing %#x says %d", b, why)
				}
				if p.inRuns() && Check(b) != FreeDouble {
					t.Fatalf("a second free of %#x would do", b)
				}
			}
			sound(t)
			if n := liveBlocks(t, r.h); n != uint64(len(left)) {
				t.Errorf("%d, %d bytes: when they are freed the report has %d blocks, not %d", unit, size, n, len(left))
			}
			for i, b := range left {
				intact(t, b, unit)
				h := r.h
				if i%2 == 0 {
					h = other
				}
				if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
					t.Fatalf("freeing %#x says %d", b, why)
				}
			}
			r.h.collectPages(true)
			sound(t)
			if r.h.runs != nil || r.h.runPages != 0 || liveBlocks(t, r.h) != 0 {
				t.Errorf("%d, %d bytes: %d pages are in runs when all is freed, %d blocks live", unit, size, r.h.runPages, liveBlocks(t, r.h))
			}
		}
	}
}

// TestRunsSpilled: a block that is on a spill list, cut and never handed out, is found to be free.
func TestRunsSpilled(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	sparse(t, r, 48, 16)
	for _, n := range []uintptr{100, 240, 256} {
		r.malloc(n)
		b := r.h.Spill[Class(n)].Head
		if b == 0 || !Lookup(b).inRuns() {
			t.Fatalf("nothing was cut but one block of %d bytes", n)
		}
		if why := Free(r.h, b, HowAny, NoSize, 0); why != FreeDouble {
			t.Errorf("freeing a block of %d bytes that was not handed out says %d", n, why)
		}
	}
	sound(t)
}

// TestRunsWhereTheyPay: pages that are half in use, of large blocks, current ones, and those of a heap that does not grow stay as they are.
func TestRunsWhereTheyPay(t *testing.T) {
	for _, c := range []struct {
		size  uintptr
		every int
	}{{48, 2}, {48, 3}, {600, 16}, {2000, 8}} {
		newWorld(t)
		r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
		sparse(t, r, c.size, c.every)
		if r.h.runs != nil {
			t.Errorf("pages of blocks of %d bytes, of which one in %d is in use, are in runs", c.size, c.every)
		}
	}
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	sparse(t, r, 48, 16)
	if p := r.h.cur[Class(48)]; p == pageNone || p.inRuns() {
		t.Error("the current page is in runs")
	}
	if n := uint64(r.h.runPages); n != 5 {
		t.Errorf("%d pages of 5 are in runs", n)
	}
}

// TestRunsGiven: what free units alone touch goes to the kernel when the page has rested, once.
func TestRunsGiven(t *testing.T) {
	for _, unit := range []uintptr{16, 48, 64, 80, 128, 208, 512} {
		newWorld(t)
		r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
		left := sparse(t, r, unit, 16)
		p := r.h.runs
		kept := slices.IndexFunc(left, func(b uintptr) bool { return Lookup(b) == p })
		for i, b := range left {
			if i != kept {
				give(t, r, b, false)
			}
		}
		written(left[kept], unit)
		before := residentPages(t, p)
		r.h.Thread.collectPages(false)
		if n := residentPages(t, p); n != before {
			t.Errorf("%d bytes: %d memory pages of %d are resident before the page has rested", unit, n, before)
		}
		r.h.Thread.collectPages(false)
		if n := residentPages(t, p); n > 3 { // the block may lie in two, and the end was never cut
			t.Errorf("%d memory pages are resident for one block of %d bytes", n, unit)
		}
		purged := pool.count.purgedBytes
		b, _ := r.malloc(unit + unit/2)
		written(b, unit+unit/2)
		give(t, r, b, false)
		r.h.Thread.collectPages(true)
		if n := pool.count.purgedBytes - purged; n > 4*raw.Page+2*runBytes {
			t.Errorf("%d bytes: %d bytes go again when one block was there", unit, n)
		}
		intact(t, left[kept], unit)
		sound(t)
	}
}

// TestRunsGivenLater: a page that was not looked at, for want of time or because the kernel has refused, has its turn later.
func TestRunsGivenLater(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	left := sparse(t, r, 64, 16)
	for i, b := range left { // of each page one stays
		if i > 0 && Lookup(left[i-1]) == Lookup(b) && Lookup(b).inRuns() {
			give(t, r, b, false)
		}
	}
	th := r.h.Thread
	th.walk = runUnits / 64 // for one page
	one := r.h.collectRuns(true)
	if one == 0 || one >= SliceSize {
		t.Errorf("%d bytes of one page go", one)
	}
	th.walk, pool.quiet = walkMost, th.Now+1
	if n := r.h.collectRuns(true); n != 0 {
		t.Errorf("%d bytes go while all is to be quiet", n)
	}
	pool.quiet = 0
	if n := r.h.collectRuns(true); n < one {
		t.Errorf("%d bytes of the other pages go later, %d of the first", n, one)
	}
	if n := r.h.collectRuns(true); n != 0 {
		t.Errorf("%d bytes go twice", n)
	}
	sound(t)
}

// TestRunsHoles: units that start in holes are free as well.
func TestRunsHoles(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	const unit = 304
	left := sparse(t, r, unit, 64)
	if pool.count.purgedBytes == 0 || r.h.runs == nil {
		t.Fatalf("%d bytes went for holes, %d pages are in runs", pool.count.purgedBytes, r.h.runPages)
	}
	for p := r.h.runs; p != nil; p = p.next {
		if free := uint64(p.carved)/uint64(p.Size) - (p.Allocs - p.Frees); uint64(p.table().left) != free {
			t.Errorf("%d units of %d are free", p.table().left, free)
		}
	}
	for _, b := range left {
		give(t, r, b, false)
	}
	if r.h.runs != nil {
		t.Error("a page is in runs when all is free")
	}
	sound(t)
}

// TestRunsLast: when there is no other memory a block is found wherever it is.
func TestRunsLast(t *testing.T) {
	const size, pages, slice = 64, 120, uint64(SliceSize)
	newWorld(t)
	setTiers(func(s *config.Settings) {
		s.OnHardcap = config.HardcapFail
		s.Tiers[config.TierNormal].Hard = pages * slice
	})
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	var blocks []uintptr
	for range pages * SliceSize / size {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		every := 4 // three side by side
		if i < 10*SliceSize/size {
			every = 64
		}
		if i%every != 2 {
			give(t, r, b, true)
		}
	}
	r.h.flush(Class(size))
	r.h.Thread.rest(false, false)
	r.h.Thread.rest(false, true)
	sound(t)
	room := 0
	for p := r.h.runs; p != nil; p = p.next {
		search := newRunSearch(0, uintptr(p.table().Units), 2048/size, 2048/size)
		for search.next(p.table()) != runUnits {
			room++
		}
	}
	got := 0
	for b, _ := r.malloc(2000); b != 0; b, _ = r.malloc(2000) {
		if Lookup(b).inRuns() {
			got++
		}
	}
	if room < 100 || got != room {
		t.Errorf("%d blocks are found where there is room for %d", got, room)
	}
	sound(t)
}

// TestRunsMoved: what a page in runs counts goes with it to another tier, and stays counted when it is gone.
func TestRunsMoved(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	left := sparse(t, r, 48, 16)
	var blocks []uintptr
	for range 200 {
		b, _ := r.malloc(144)
		blocks = append(blocks, b)
	}
	live := func(tier int) int64 {
		poolLock.Take(8)
		defer poolLock.Release()
		scratch.collectCounts(&extents{})
		return int64(scratch.tier[tier].allocs - scratch.tier[tier].frees)
	}
	home := int(tierOf(r.h.runs.place))
	all := live(home)
	if all != int64(len(left)+len(blocks)) {
		t.Errorf("%d blocks are counted, not %d", all, len(left)+len(blocks))
	}
	poolLock.Take(8)
	for p := r.h.runs; p != nil; p = p.next {
		putIn(p, uint32(home+1), 0, 0, 0)
	}
	poolLock.Release()
	if a, b := live(home), live(home+1); a < 0 || b < int64(len(blocks)) || a+b != all {
		t.Errorf("of %d blocks %d are counted in the tier they were in, %d in the one they are in", all, a, b)
	}
	poolLock.Take(8)
	for p := r.h.runs; p != nil; p = p.next {
		putIn(p, uint32(home), 0, 0, 0)
	}
	poolLock.Release()
	for _, b := range append(left, blocks...) {
		give(t, r, b, false)
	}
	r.h.Thread.collectPages(true)
	if n := live(home); n != 0 || r.h.runs != nil {
		t.Errorf("%d blocks are counted when all is freed", n)
	}
	sound(t)
}
