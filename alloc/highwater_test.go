package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
)

// TestHighWaterOfDirty: where dirty spans are too short for what is wanted, they go back before
// the heap becomes larger than it ever was, and only then.
func TestHighWaterOfDirty(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	const part = 512 << 10
	scatter := func() (live []uintptr) { // leaves 3 parts dirty, each alone
		for i := range 7 {
			if b := mustServe(t, h, part); i%2 == 0 {
				live = append(live, b)
			} else {
				defer Free(h, b, HowAny, NoSize, 0)
			}
		}
		return live
	}
	live := scatter()
	if pool.dirtyBytes < 3*part || pool.dirtyBytes > minReserve {
		t.Fatalf("%d KiB are dirty", pool.dirtyBytes>>10)
	}
	peak := pool.count.peak
	live = append(live, mustServe(t, h, 8*part))
	mustBeSound(t)
	if grown := pool.count.peak - peak; grown > 5*part {
		t.Errorf("the heap grew by %d KiB for %d, with %d dirty", grown>>10, 8*part>>10, 3*part>>10)
	}
	for _, b := range live {
		Free(h, b, HowAny, NoSize, 0)
	}
	h.Thread.collectPages(true)
	purgeAll(h.Thread)
	if pool.dirtyBytes != 0 || pool.count.committed != 0 {
		t.Fatalf("%d KiB are dirty, %d committed", pool.dirtyBytes>>10, pool.count.committed>>10)
	}
	scatter()
	before := pool.count.purges
	mustServe(t, h, 2*part)
	if pool.count.purges != before {
		t.Errorf("%d KiB went back where the heap had been larger before",
			(3*part-pool.dirtyBytes)>>10)
	}
	// A huge block is no different.
	dirty := pool.dirtyBytes
	mustServe(t, h, 3*sizeclass.MaxSize)
	if pool.dirtyBytes != 0 || dirty == 0 {
		t.Errorf("%d of %d KiB are dirty beside a huge block", pool.dirtyBytes>>10, dirty>>10)
	}
}

// used is a block in a page of its class of which a quarter was in use, and nothing else is.
func used(t *testing.T, h *Heap, n uintptr) (b uintptr) {
	t.Helper()
	blocks := []uintptr{mustServe(t, h, n)}
	for Lookup(blocks[0]).carved < SliceSize/4 {
		blocks = append(blocks, mustServe(t, h, n))
	}
	for _, b := range blocks[1:] {
		Free(h, b, HowAny, NoSize, 0)
	}
	return blocks[0]
}

// TestHighWaterOfEmpty: the empty page of one class is used for another before the heap becomes
// larger than it ever was, and only then.
func TestHighWaterOfEmpty(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	const few = 4 // current pages of as many classes
	var blocks [few]uintptr
	for i := range blocks {
		blocks[i] = used(t, h, uintptr(i+1)*1000)
	}
	little := mustServe(t, h, 100)
	Free(h, little, HowAny, NoSize, 0)
	peak := pool.count.peak
	for _, b := range blocks[:few-1] {
		Free(h, b, HowAny, NoSize, 0)
	}
	for range few - 1 {
		p := Lookup(mustServe(t, h, 8000))
		for p == Lookup(mustServe(t, h, 8000)) {
		}
		mustBeSound(t)
	}
	// The last page of the loop holds one block: few-1 full ones, and this.
	if grown := pool.count.peak - peak; grown != SliceSize {
		t.Errorf("the heap grew by %d bytes for %d pages, with %d that were empty", grown, few,
			few-1)
	}
	if p := Lookup(blocks[few-1]); p == nil || h.cur[p.Class] != p {
		t.Error("a page in use is gone")
	}
	// A page of which little was ever used has little to give, and stays to tell who frees its
	// block again.
	if p := Lookup(little); p == nil || h.cur[p.Class] != p {
		t.Error("a page that was hardly used is gone")
	}
	// Below the peak empty pages stay where they are.
	b := used(t, h, 500)
	p := Lookup(b)
	big := mustServe(t, h, 1<<20)
	Free(h, big, HowAny, NoSize, 0)
	h.Thread.collectPages(true)
	purgeAll(h.Thread)
	Free(h, b, HowAny, NoSize, 0)
	mustServe(t, h, 9000)
	if h.cur[sizeclass.Of(500)] != p {
		t.Error("an empty page was taken from its class though the heap had been larger")
	}
}

// TestHighWaterInTurn: classes that are used in turn, at the heap's peak, soon keep a page each.
func TestHighWaterInTurn(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	sizes := []uintptr{1000, 2000, 3000, 8000}
	for _, n := range sizes {
		Free(h, used(t, h, n), HowAny, NoSize, 0)
	}
	refills := 0
	for range 10_000 {
		h.Thread.Now += 1e3
		for _, n := range sizes {
			if h.cur[sizeclass.Of(n)] == pageNone {
				refills++
			}
			Free(h, mustServe(t, h, n), HowAny, NoSize, 0)
		}
	}
	if most := int(trimSliceRate>>SliceShift) / 50; refills > most {
		t.Errorf("%d pages in 10 ms, not %d", refills, most)
	}
}

// TestTrimBudget: what goes back for peaks is the peak and trimRate, whatever is asked.
func TestTrimBudget(t *testing.T) {
	var b trimBudget
	const peak, mib = 100 << 20, 1 << 20
	now, spent := uint64(1e9), uintptr(0)
	for range 1000 {
		spent += b.spend(mib, peak, trimRate, now)
		now += 1e6
	}
	if least, most := uintptr(peak+trimRate*9/10), uintptr(peak+trimRate); spent < least ||
		spent > most {
		t.Errorf("%d MiB in a second, %d to %d were to be had", spent>>20, least>>20, most>>20)
	}
	now += 3600e9
	spent = 0
	for range 1000 {
		spent += b.spend(mib, peak, trimRate, now)
	}
	if spent > peak {
		t.Errorf("%d MiB after an hour, for a peak of %d", spent>>20, peak>>20)
	}
	if n := b.spend(mib, peak, trimRate, now-1e9); n != 0 {
		t.Errorf("%d bytes for a thread that came before the last", n)
	}
	if n := b.spend(50*mib, peak+20*mib, trimRate, now); n != 20*mib {
		t.Errorf("%d MiB for a peak that has grown by 20", n>>20)
	}
}

// TestHighWaterWanted: with several threads, what was wanted again after it went back stays next
// time, up to trimWantedShare of the peak, until nobody wants it for the delay. A program of one
// thread has no more than it uses at its peak.
func TestHighWaterWanted(t *testing.T) {
	const part, holes = 2 << 20, 3
	for threads := range uintptr(3) {
		newWorld(t)
		h := mustAcquire(t, 8)
		for i := range threads {
			h = mustAcquire(t, 8*(i+2))
		}
		h.Thread.Now = 1e9
		var parts []uintptr
		for range 2 * trimWantedShare * holes {
			parts = append(parts, mustServe(t, h, part))
		}
		left := func() uintptr { // of holes of one part, when the heap has grown by more
			for i := range uintptr(holes) {
				Free(h, parts[2*i], HowAny, NoSize, 0)
			}
			for range 2 * holes {
				mustServe(t, h, part*3/2)
			}
			dirty := pool.dirtyBytes
			for i := range uintptr(holes) {
				parts[2*i] = mustServe(t, h, part)
			}
			mustBeSound(t)
			return dirty
		}
		first, second := left(), left()
		if first != 0 || threads == 0 && second != 0 || threads > 0 && second < holes*part/2 {
			t.Errorf("%d threads: %d KiB stay dirty, and then %d", threads+1, first>>10, second>>10)
		}
		wanted := pool.trimFeedback.wanted
		for i := range uintptr(holes) {
			Free(h, parts[2*i], HowAny, NoSize, 0)
		}
		h.Thread.Now += PurgeDelay
		purgeDue(h.Thread.token, h.Thread.Now)
		now := pool.trimFeedback.wanted
		if pool.dirtyBytes != 0 || now > wanted-min(wanted, part) {
			t.Errorf("%d threads: after the delay %d KiB are dirty, %d of %d wanted", threads+1,
				pool.dirtyBytes>>10, now>>10, wanted>>10)
		}
	}
}
