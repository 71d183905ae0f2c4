package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
)

// tally counts blocks and their bytes.
type tally struct{ allocs, frees, allocBytes, freeBytes uint64 }

func (t *tally) alloc(n, bytes uint64) { t.allocs += n; t.allocBytes += bytes }

func (t *tally) free(n, bytes uint64) { t.frees += n; t.freeBytes += bytes }

func (t *tally) add(u *tally) {
	t.alloc(u.allocs, u.allocBytes)
	t.free(u.frees, u.freeBytes)
}

// tally returns the counts of the page's blocks.
func (p *Page) tally() (t tally) {
	frees, size := p.Frees+p.remoteCount(), uint64(p.Size)
	t.alloc(p.Allocs, p.Allocs*size)
	t.free(frees, frees*size)
	if p.isNursery() {
		t.granules(p)
	}
	return t
}

// granules corrects the counts of p, a nursery, which are of granules.
func (t *tally) granules(p *Page) {
	table := p.table()
	t.allocs += table.allocs
	t.frees += table.frees + atomic.LoadUint64(&table.remote)
}

// less is a - b, of numbers modulo 2^64 (granuleCounts), or 0 where other threads, running
// meanwhile, have made b the larger.
func less(a, b uint64) uint64 {
	if int64(a-b) < 0 {
		return 0
	}
	return a - b
}

// noteMove counts blocks of a span, allocated and freed by t, that go from one tier to another.
// Precondition: poolLock is held.
func noteMove(t tally, from, to uintptr) {
	out, in := &pool.count.moves[from&(placementSlots-1)], &pool.count.moves[to&(placementSlots-1)]
	out.alloc(t.allocs, t.allocBytes)
	out.free(t.allocs, t.allocBytes)
	in.alloc(-t.frees, -t.freeBytes)
	in.free(-t.frees, -t.freeBytes)
}

// A share is what a tier has of a huge block: the block counts for the tier of its first byte, its
// bytes for the tiers that they are in.
type (
	share  struct{ blocks, bytes uint64 }
	shares [placementSlots]share
)

// isMapping reports whether p is a huge block with a mapping of its own, in use or cached.
func (p *Page) isMapping() bool { return p.state == spanHuge || p.state == spanHugeCached }

// isHuge reports whether p is a huge block, which may have been freed meanwhile.
func (p *Page) isHuge() bool { return p.isMapping() || p.Owner == OwnerHuge }

// shares is what the tiers have of a huge block; of a page nothing.
func (p *Page) shares() (s shares) {
	if p.isHuge() {
		size := spanBytes(p)
		there := uint64(p.elsewhere(size))
		s[tierOf(p.placementAt(0))].blocks = 1
		s[tierOf(p.unmigratedIn)].bytes += there
		s[tierOf(p.placement)].bytes += uint64(size) - there
	}
	return s
}

// reshare replaces the tiers' shares of a huge block in use, before, by the present ones.
// Precondition: poolLock is held.
func (p *Page) reshare(before *shares) {
	now := p.shares()
	for i := range now {
		was, is := before[i], now[i]
		pool.count.huge[i].alloc(is.blocks-was.blocks, is.bytes-was.bytes)
		left := share{less(was.blocks, is.blocks), less(was.bytes, is.bytes)}
		pool.count.moves[i].alloc(left.blocks, left.bytes)
		pool.count.moves[i].free(left.blocks, left.bytes)
	}
}

// unshare counts that a huge block is freed. Precondition: poolLock is held.
func (p *Page) unshare() {
	for i, s := range p.shares() {
		pool.count.huge[i].free(s.blocks, s.bytes)
	}
}

// poolCounts are plain sums for the report.
type poolCounts struct {
	mapped    uint64
	committed uint64
	peak      uint64
	advised   uint64 // bytes for which huge pages were asked by measure; atomic
	purges    uint64
	pressures uint64 // times that memory became short; atomic
	// bytes returned while it was; atomic
	pressureBytes uint64
	purgedBytes   uint64
	hugeHits      uint64
	hugeMisses    uint64
	huge          [placementSlots]tally // by tier
	gone          [placementSlots]tally
	moves         [placementSlots]tally // see entered
}

// countsBySize are too large to lie beside the fields that each step reads.
type countsBySize struct {
	// blocks allocated and freed in pages taken from other threads
	stolen   [sizeclass.Count]uint64
	granules granuleCounts // of blocks that threads without a heap have freed
}

// granuleClasses is more than there are classes of the blocks that lie in granules.
const granuleClasses = 64

// granuleIndex returns c, masked for a table of granuleClasses entries: see sizeclass.Index.
func granuleIndex(c uintptr) uintptr { return c & (granuleClasses - 1) }

// granuleCounts are corrections of the counts of blocks by class, for nurseries, whose pages count
// granules as blocks of class 0. They are modulo 2^64.
type granuleCounts struct {
	allocs, frees [granuleClasses]uint64
}

// Indices of Heap.Calls beyond the functions' own (stats.Call…). The calls of malloc and free are
// computed: each other function that allocates or frees counts its calls, and these counters count
// calls that did not allocate or free exactly one block.
const (
	CallFreeNull      = functionsMost + iota // free of NULL or of a foreign block
	CallOtherFreeNull                        // the same by delete, free_sized, …
	CallMallocFailed
	CallOtherFailed
	CallReallocFailed // part of OtherFailed
	CallReallocAllocs // blocks allocated by realloc
	CallReallocFrees
	CallKinds = 32
)

const functionsMost = 24 // of stats.Call…

// Counts are sums over the whole heap, exact while other threads are quiescent. They are computed
// on request: the fast paths only keep the two counts of their page.
type Counts struct {
	Allocs    [sizeclass.Count]uint64 // blocks handed out, ever
	Frees     [sizeclass.Count]uint64 // blocks taken back, ever
	Pages     [sizeclass.Count]uint64 // pages now
	PageBytes [sizeclass.Count]uint64
	nursed    [granuleClasses]uint64 // blocks in use in nurseries, but for class 0
	Calls     [CallKinds]uint64
	Remotes   uint64
	Heaps     uint64 // of running threads
	Abandoned uint64 // of threads that have ended
	Segments  uint64
	FreeSpans uint64
	Cached    uint64                // bytes held and not in use
	tier      [placementSlots]tally // blocks of classes, by the tier that their page is in
	hints     [hintSlots]uint64     // bytes of the spans in use for each hint
	pool      poolCounts
	zero      [placementSlots]tally // blocks of 0 bytes
	// bytes of the pool's spans, huge blocks and cached ones, and lost ones, by tier
	charged [placementSlots]uintptr

	Quarantined, QuarantineBytes uint64
}

// base is the counts at the fork that made this process.
var base Counts

// A block counts for the tier that its span is in, and a span that moves takes its counts along, so
// a tier's counts in reports may fall. Reports also have counts that never fall: blocks that
// entered the tier, by allocation or migration, and blocks that left it. If a span with a allocated
// and f freed blocks moves, a and f are subtracted from the one tier and added to the other, and a
// - f blocks enter that one:
//
//	entered = allocs + moves.allocs, left = frees + moves.frees
//	entered - left = allocs - frees
//
//	moves[from] += (a, a), moves[to] -= (f, f)

// forget resets the counts of a page, all of whose blocks are free, because the caller counts them.
func (p *Page) forget() {
	p.Allocs, p.Frees = 0, -p.remoteCount()
}

// entered returns the counts that have entered and left tier i.
func (k *Counts) entered(i uintptr) (t tally) {
	t = k.tier[i&(placementSlots-1)]
	t.add(&k.pool.huge[i&(placementSlots-1)])
	t.add(&k.zero[i&(placementSlots-1)])
	t.add(&k.pool.moves[i&(placementSlots-1)])
	return t
}

// rising is entered, but never less than at the call before. entered may fall by freed blocks that
// were on a thread's list when their span moved, and are in use again: these have entered the tier
// once more. Precondition: poolLock is held.
func (k *Counts) rising(i uintptr) (t tally) {
	t = k.entered(i)
	was := &pool.entered[i&(placementSlots-1)]
	again := tally{
		allocs:     max(less(was.allocs, t.allocs), less(was.frees, t.frees)),
		allocBytes: max(less(was.allocBytes, t.allocBytes), less(was.freeBytes, t.freeBytes)),
	}
	again.free(again.allocs, again.allocBytes)
	t.add(&again)
	pool.count.moves[i&(placementSlots-1)].add(&again)
	*was = t
	return t
}
