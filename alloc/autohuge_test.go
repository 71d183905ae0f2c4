package alloc

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// flagsAt is what the kernel says of the mapping that addr is in: hg where huge pages were asked
// for, nh where they were declined.
func flagsAt(t *testing.T, addr uintptr) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= addr && addr < to
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return flags
		}
	}
	t.Fatalf("no mapping at %#x", addr)
	return ""
}

func asked(t *testing.T, addr uintptr) bool { return strings.Contains(flagsAt(t, addr), " hg ") }

// haveTransparent skips a test where the kernel was built without transparent huge pages.
func haveTransparent(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip(err)
	}
}

// TestAutoSegments: segments of a heap that has grown have huge pages, but not in place of those of
// which a part goes back to the kernel, and segments of a small heap, or under a hard cap or near a
// limit, or of blocks that are hardly used, have none.
func TestAutoSegments(t *testing.T) {
	haveTransparent(t)
	used := uintptr(30000) // bytes of each block
	size := uintptr(30000)
	grown := func(t *testing.T) (wanted int, last *segment) {
		h := mustAcquire(t, 8)
		for range 3 * autoHeap / size {
			b := mustServe(t, h, size)
			for at := uintptr(0); at < min(used, size); at += raw.Page {
				raw.Store(b+at, 1)
			}
		}
		for s := pool.segments; s != nil; s = s.next {
			if got := asked(t, s.start); got != (s.pages == transparent) {
				t.Errorf("segment of %d slices: pages %d, kernel %v", s.slices, s.pages, got)
			}
			if s.pages == transparent {
				if wanted++; last == nil {
					last = s
				}
				if s.start&(huge2M-1) != 0 {
					t.Errorf("a segment of huge pages begins at %#x", s.start)
				}
			}
		}
		mustBeSound(t)
		return wanted, last
	}
	t.Run("grown", func(t *testing.T) {
		newWorld(t)
		wanted, last := grown(t)
		if first := pool.segments; wanted < 2 || first == nil || pool.count.advised == 0 {
			t.Fatalf("%d segments of huge pages, %d bytes", wanted, pool.count.advised)
		}
		p := Lookup(last.start)
		if !p.discard(last.start+huge2M, huge2M) || last.pages != transparent {
			t.Error("a whole huge page went back: the rest are ordinary ones")
		}
		for range 2 {
			if !p.discard(last.start+huge2M+SliceSize, huge2M) || last.split != 1<<1|1<<2 {
				t.Errorf("parts of two huge pages went back: %b are split", last.split)
			}
		}
		for i, want := range []bool{true, false, false, true} {
			at := last.start + uintptr(i)*huge2M
			if asked(t, at) != want || last.hugeAt(at) != want ||
				strings.Contains(flagsAt(t, at), " nh ") == want {
				t.Errorf("huge page %d: %s", i, flagsAt(t, at))
			}
		}
		pool.segSlices += splitHeap >> SliceShift
		split := p.discard(last.start, SliceSize)
		pool.segSlices -= splitHeap >> SliceShift
		if at := last.start + last.slices<<SliceShift - 1; !split || last.pages != mixed ||
			!strings.Contains(flagsAt(t, at), " nh ") {
			t.Errorf("of a large heap: pages %d, %s", last.pages, flagsAt(t, at))
		}
	})
	for name, set := range map[string]func(*config.Settings){
		"off":  func(s *config.Settings) { s.Tiers[config.TierNormal].HugePages = config.HugeOff },
		"hard": func(s *config.Settings) { s.Tiers[config.TierNormal].Hard = 1 << 30 },
	} {
		t.Run(name, func(t *testing.T) {
			newWorld(t)
			setTiers(set)
			if wanted, _ := grown(t); wanted != 0 || pool.count.advised != 0 {
				t.Errorf("%d segments of huge pages", wanted)
			}
		})
	}
	t.Run("sparse", func(t *testing.T) {
		newWorld(t)
		systemHuge = unasked // the system may give huge pages to all
		used = raw.Page
		defer func() { used = 30000 }()
		if wanted, _ := grown(t); wanted != 0 || pool.count.advised != 0 {
			t.Errorf("%d segments of huge pages for blocks that are hardly used", wanted)
		}
	})
	for _, first := range []uintptr{1000, 30000} {
		t.Run(fmt.Sprintf("sparse after blocks of %d", first), func(t *testing.T) {
			newWorld(t)
			systemHuge = unasked
			size = first
			defer func() { size, used = 30000, 30000 }()
			dense, _ := grown(t)
			size, used = 30000, raw.Page
			grown(t)
			wanted, _ := grown(t)
			if dense == 0 || wanted > dense+segmentControl-1 {
				t.Errorf("%d segments of huge pages, and %d more when blocks were hardly used",
					dense, wanted-dense)
			}
		})
	}
	t.Run("small", func(t *testing.T) {
		newWorld(t)
		size = 1000
		defer func() { size = 30000 }()
		wanted, _ := grown(t)
		last := 0 // the newest, without one of ordinary pages among them
		for s := pool.segments; s != nil && s.pages == transparent; s = s.next {
			last++
		}
		if wanted < 3 || wanted != last {
			t.Errorf("%d of the last %d segments have huge pages", last, wanted)
		}
	})
	t.Run("dear", func(t *testing.T) {
		newWorld(t)
		hugeCost.dear = 1
		if wanted, _ := grown(t); wanted != 0 {
			t.Errorf("%d segments of huge pages, which are dear", wanted)
		}
	})
	t.Run("limit", func(t *testing.T) {
		newWorld(t)
		limit.share, limit.beyond, limit.again = 2*autoHeap/limitShare+1, 1<<40, 1<<63
		if wanted, _ := grown(t); wanted != 0 {
			t.Errorf("%d segments of huge pages near the limit", wanted)
		}
	})
}

// TestAutoBlocks: huge blocks have huge pages once the ones before were in use up to their end, but
// for one in autoControl, and not after one that was not.
func TestAutoBlocks(t *testing.T) {
	haveTransparent(t)
	newWorld(t)
	PurgeDelay = 0 // nothing is cached
	h := mustAcquire(t, 8)
	const size = autoHeap + 6<<20
	use := func(touched uintptr) (advised bool) {
		b := mustServe(t, h, size)
		advised = asked(t, b)
		for at := uintptr(0); at < touched; at += raw.Page {
			raw.Store(b+at, 1)
		}
		Free(h, b, HowAny, NoSize, 0)
		mustBeSound(t)
		return advised
	}
	for i := range autoStreak {
		if use(size) {
			t.Errorf("block %d has huge pages: nothing is known yet", i)
		}
	}
	n := 0
	for range 2 * autoControl {
		if use(size) {
			n++
		}
	}
	if n != 2*(autoControl-1) {
		t.Errorf("%d of %d dense blocks had huge pages", n, 2*autoControl)
	}
	for range autoControl {
		use(size / 2)
	}
	for i := range autoStreak {
		if use(size) {
			t.Errorf("block %d after sparse ones has huge pages", i)
		}
	}
	if !use(size) {
		t.Error("after dense blocks there are no huge pages")
	}
	if b := Malloc(h, size, 0, uintptr(stats.CallCalloc)) &^ ZeroBit; b == 0 || asked(t, b) {
		t.Error("a block of calloc has huge pages")
	}
	if asked(t, mustServe(t, h, autoFactor*(size+2*SliceSize))) {
		t.Error("a block much larger than the dense ones has huge pages")
	}
}

// TestAutoGrown: so does a block that is filled and grows.
func TestAutoGrown(t *testing.T) {
	haveTransparent(t)
	newWorld(t)
	h := mustAcquire(t, 8)
	size := uintptr(autoHeap + 6<<20)
	b := mustServe(t, h, size)
	for from := uintptr(0); ; {
		for at := from; at < size; at += raw.Page {
			raw.Store(b+at, at)
		}
		from, size = size, size+4<<20
		if b = Resize(h, b, size); b == 0 {
			t.Fatal("no growth")
		}
		mustBeSound(t)
		if asked(t, b+from) {
			break
		}
		if size > 2*autoHeap {
			t.Fatal("a dense block of 64 MiB has no huge pages")
		}
	}
	for at := uintptr(raw.Page); at < size-4<<20; at += raw.Page {
		if raw.Load(b+at) != at {
			t.Fatalf("the contents at %#x are lost", at)
		}
	}
}

// TestAutoSplit: a block whose first part lies in a tier with a hard cap has no huge pages.
func TestAutoSplit(t *testing.T) {
	haveTransparent(t)
	h := splitWorld(t, "TA_FAST_HARD=32M")
	mustServe(t, h, 30*mib)
	autoHuge.streak, autoHuge.dense = autoStreak, 40*mib
	b := mustServe(t, h, 40*mib)
	lies(t, b, "tier 0, 2 38 0 of 32 38 0")
	numbered(b, 40*mib)
	for at := uintptr(0); at < 40*mib; at += 20 * mib {
		if asked(t, b+at) {
			t.Errorf("at %d MiB there are huge pages", at/mib)
		}
	}
	if b = Resize(h, b, 80*mib); b == 0 {
		t.Fatal("no growth")
	}
	if asked(t, b) || asked(t, b+79*mib) {
		t.Error("the grown block has huge pages")
	}
	if c := mustServe(t, h, 40*mib); !asked(t, c) {
		t.Error("a block in a tier without a hard cap has no huge pages")
	}
}

// TestAutoLooksOnce: a block from the cache is not looked at again when it is freed, unless it has
// grown.
func TestAutoLooksOnce(t *testing.T) {
	haveTransparent(t)
	newWorld(t)
	PurgeDelay = 16e9 // what is freed stays
	h := mustAcquire(t, 8)
	mustServe(t, h, 2*autoHeap) // the heap has grown
	const size = 24 << 20
	looks := func(grow uintptr) bool {
		autoHuge.streak = autoStreak
		b := mustServe(t, h, size)
		if grow != 0 {
			b = Resize(h, b, grow)
			autoHuge.streak = autoStreak
		}
		Free(h, b, HowAny, NoSize, 0)
		mustBeSound(t)
		return autoHuge.streak != autoStreak // what is not in use ends it
	}
	for i, want := range []bool{true, false, false} {
		if got := looks(0); got != want {
			t.Errorf("free %d of the block looked at it: %v", i, got)
		}
	}
	if !looks(size + 4<<20) {
		t.Error("a block that had grown was not looked at")
	}
}

// TestSystemHuge: what the system says is read once. Where it gives huge pages unasked, the
// segments of a small heap have none, grown or new. What could not be unmapped has none anywhere,
// though as a huge block it had.
func TestSystemHuge(t *testing.T) {
	haveTransparent(t)
	newWorld(t)
	systemHuge = unasked
	mustServe(t, mustAcquire(t, 8), 1000)
	if systemHuge != unasked {
		t.Error("a huge page does not fit into the heap, and the system is asked")
	}
	if mustServe(t, mustAcquire(t, 8), 3<<20); systemHuge == unasked {
		t.Error("a huge page fits into the heap, and the system is not asked")
	}
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		t.Fatal(err)
	}
	if (systemHuge == always) != strings.HasPrefix(string(enabled), "[always]") {
		t.Errorf("%d is known of %s", systemHuge, enabled)
	}
	for i, system := range []uint32{byAdvice, always, always} {
		newWorld(t)
		systemHuge = system
		setTiers(func(s *config.Settings) { s.Secure = i == 2 }) // then nothing is by measure
		h := mustAcquire(t, 8)
		for range 4 << 20 / 30000 {
			mustServe(t, h, 30000)
		}
		const n = huge2M
		kept := mapAligned(n, huge2M)
		if !advise(kept, n) {
			t.Error("the kernel refuses huge pages")
		}
		poolLock.Take(8)
		retain(kept, n, 1)
		poolLock.Release()
		segments := 0
		for s := pool.segments; s != nil; s = s.next {
			for _, at := range []uintptr{s.start, s.start + s.slices<<SliceShift - 1} {
				want := system == always || s.start == kept
				if never := strings.Contains(flagsAt(t, at), " nh "); never != want {
					t.Errorf("system %d: at %#x of a segment of %d slices: %s", system, at,
						s.slices, flagsAt(t, at))
				}
			}
			segments++
		}
		if segments < 2 {
			t.Errorf("%d segments", segments)
		}
		mustBeSound(t)
	}
}

// TestLeftResident: nothing stays resident in a segment of which no span is in use, though a huge
// page had more than the spans did.
func TestLeftResident(t *testing.T) {
	for _, pages := range []uint32{transparent, mixed} {
		newWorld(t)
		PurgeDelay = 0
		h := mustAcquire(t, 8)
		b := mustServe(t, h, 100000)
		seg := Lookup(b).segment
		last := Lookup(seg.start + seg.slices<<SliceShift - 1)
		if last == nil || last.state != spanClean {
			t.Fatalf("the segment's end is %+v", last)
		}
		raw.Store(last.Start, 1) // as if by a huge page
		seg.pages = pages
		Free(h, b, HowAny, NoSize, 0)
		purgeAll(h.Thread)
		p := Lookup(seg.start)
		if p.slices != uint32(seg.slices) {
			t.Fatalf("%d slices of %d are free", p.slices, seg.slices)
		}
		if n := residentIn(t, p); n != 0 {
			t.Errorf("pages %d: %d memory pages are resident", pages, n)
		}
		mustBeSound(t)
	}
}
