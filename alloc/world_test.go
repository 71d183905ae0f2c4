package alloc

import (
	"slices"
	"testing"
	"unsafe"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// mappedRoot and mappedNone are the two structures that the C side owns in the
// library. One pair serves all tests: leaves are never given back. Nor are
// descriptors and heaps, so a test's first come from mappedMeta, emptied before
// each, or else the millions of runs of a fuzz target would use up the memory.
var mappedRoot, mappedNone, mappedMeta uintptr

const metaArena = 16 * metaChunk

// newWorld gives the test a heap in which nothing has happened. The package's
// state is global, so tests of it do not run in parallel.
func newWorld(tb testing.TB) {
	tb.Helper()
	if mappedRoot == 0 {
		mappedRoot, mappedNone = raw.Map(RootEntries*8), raw.Map(raw.Page)
		mappedMeta = raw.Map(metaArena)
		if mappedRoot == 0 || mappedNone == 0 || mappedMeta == 0 {
			tb.Fatal("no memory for the page map")
		}
	}
	Boot(mappedRoot, mappedNone)
	pool, base, abandoned, heaps, stealNext = poolState{}, Counts{}, abandonedThreads{}, 0, 0
	zeroPages = zeroState{}
	alone.pages, alone.threads, tight, everyThread = 0, 0, 0, nil
	summariesTorn, CountFromFork, withoutGuardPages = false, false, 0
	limit.beyond, limit.share, limit.busy, limit.again = 0, 0, 0, 0
	pressure.on, pressure.since, pressure.again, pressure.stalled, pressure.answer = 0, 0, 0, 0, 0
	cgroup.System = "/nowhere" // what the machine lacks changes no test
	autoHuge.streak, autoHuge.turn, autoHuge.dense = 0, 0, 0
	hugeCost.until, hugeCost.dear = 1<<63, 0 // whatever they cost on the machine
	systemHuge, addressLimit = byAdvice, 0
	secure, secret, leftover = false, secrets{}, [leftoverSlots]uint64{}
	reservedPages, firstMetaTaken, anySlice = false, true, false
	setTiers(func(*config.Settings) {})
	raw.Discard(mappedMeta, metaArena)
	pool.meta = metaArea{mappedMeta, metaArena}
	mapped(metaArena)
	poolLock.Reset()
	heapsLock.Reset()
	PurgeDelay = 100e6
	tb.Cleanup(func() { unmapWorld(tb) })
}

// crowdedWorld is newWorld where many heaps have been made already.
func crowdedWorld(tb testing.TB) {
	tb.Helper()
	newWorld(tb)
	heaps = nurseryAfter
}

// hardWorld is newWorld with TA_SECURE=1.
func hardWorld(tb testing.TB) {
	tb.Helper()
	newWorld(tb)
	Harden(0, 0)
}

// roomyWorld is newWorld with a segment whose pages are summed up.
func roomyWorld(tb testing.TB) {
	tb.Helper()
	newWorld(tb)
	p := segmentMap(uintptr(config.TierNormal), maxGrowth, false)
	if p == nil {
		tb.Fatal("no segment")
	}
	insertFree(p, spanClean)
}

// unmapWorld gives back what the pool still holds, and looks whether the page
// none, which every heap shares, is as it was.
func unmapWorld(tb testing.TB) {
	for s := pool.segments; s != nil; s = s.next {
		for a := s.start; a < s.start+s.slices<<SliceShift; a += SliceSize {
			mapSet(a, nil)
			raw.Store(summaryEntry(a), 0)
		}
		raw.Unmap(s.mapAddr, s.mapSize)
	}
	for i := range pool.aged {
		for p := pool.aged[i].head; p != nil; p = p.ageNext {
			if p.state == spanHuge {
				mapSet(p.Start, nil)
				if secure {
					raw.Unmap(p.reservation())
				} else {
					raw.Unmap(p.Start, p.Size)
				}
			}
		}
	}
	for _, p := range pool.cache.slot[:pool.cache.n] {
		mapSet(p.Start, nil)
		raw.Unmap(p.Start, p.Size)
	}
	for _, p := range pool.parked.slot {
		if p != nil {
			mapSet(p.Start, nil)
			raw.Unmap(p.reservation())
		}
	}
	pool = poolState{}
	if none := (*Page)(raw.Ptr(mappedNone)); none.Free != 0 || none.Allocs != 0 || none.Frees != 0 {
		tb.Error("the page that stands for no page was used")
	}
}

var testSettings config.Settings

// setTiers configures simulated tiers, from the defaults, for a world with no block.
func setTiers(f func(*config.Settings)) {
	config.Parse(&testSettings, 0)
	f(&testSettings)
	DefaultHint = testSettings.DefaultHint
	tiers.Setup(&testSettings, &[4]uintptr{0, 1, 2, 3}, 0)
	SetPlacements(&testSettings, &numa.Map{Nodes: 1, Simulated: true})
}

// tierFigures are the tiers of a report of this moment.
func tierFigures() []stats.Tier {
	const size = (unsafe.Sizeof(stats.Report{}) + raw.Page - 1) &^ (raw.Page - 1)
	at := raw.Map(size)
	if at == 0 { // it was this call that a test has refused
		at = raw.Map(size)
	}
	defer raw.Unmap(at, size)
	r := (*stats.Report)(raw.Ptr(at))
	tiers.Fill(r)
	return slices.Clone(r.Tiers[:stats.TierCount])
}

// filled is the heap's part of a report of this moment, or nil when there is none.
// A report must be in mapped memory that is zero.
func filled(token uintptr) *stats.Heap {
	const size = (unsafe.Sizeof(stats.Report{}) + raw.Page - 1) &^ (raw.Page - 1)
	at := raw.Map(size)
	if at == 0 {
		return nil
	}
	defer raw.Unmap(at, size)
	r := (*stats.Report)(raw.Ptr(at))
	if !Fill(token, r, 1, NodesNone) {
		return nil
	}
	h := r.Heap
	return &h
}

// mustAcquire is a heap for the thread of the given token.
// mustAcquire returns a heap whose classes have had their first blocks from a nursery, unless it is
// one of a crowd.
func mustAcquire(tb testing.TB, token uintptr) *Heap {
	tb.Helper()
	h := Acquire(token)
	if h == nil {
		tb.Fatal("no heap")
	}
	if h.Number <= nurseryAfter {
		for c := range h.nursed {
			h.nursed[c] = nurseryFirst
		}
	}
	return h
}

// spansDo calls f for each span of the pool's segments, in order of address.
func spansDo(f func(s *segment, a uintptr, p *Page) bool) {
	for s := pool.segments; s != nil; s = s.next {
		for a, end := s.start, s.start+s.slices<<SliceShift; a < end; {
			p := Lookup(a)
			if !f(s, a, p) || p == nil || p.slices == 0 {
				break
			}
			a += p.bytes()
		}
	}
}

// mustServe is a block of n bytes for the thread of h, by the slow path.
func mustServe(tb testing.TB, h *Heap, n uintptr) uintptr {
	tb.Helper()
	b := Malloc(h, n, 0, 0) &^ ZeroBit
	if b == 0 {
		tb.Fatal("no block")
	}
	return b
}
