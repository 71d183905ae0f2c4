package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// The pages whose nodes a report asks the kernel for.
const (
	NodesNone    uintptr = iota // none
	NodesSampled                // some pages of each tier
	NodesExact                  // every page
)

// memoryRange is memory of one placement.
type memoryRange struct {
	addr, bytes uintptr
	placement   uint32
	_           uint32
}

// ranges lists the heap's memory, so that the kernel can be asked about it without the lock. The
// zero value keeps only the sums.
//
//	n <= room ⇒ bytes[t] = Σ bytes of the extents whose placement is in tier t
type ranges struct {
	mapped  uintptr // address of the mapping, which begins with an asking; 0: none
	n, room uintptr
	bytes   [placementSlots]uintptr
}

const firstRanges = 16384 // unused entries of the mapping are never touched

// reserve maps memory for so many extents, or for none if the kernel refuses.
func (e *ranges) reserve(room uintptr) {
	e.room = room
	if e.mapped = raw.Map(e.size()); e.mapped == 0 {
		e.room = 0
	}
}

func (e *ranges) drop() {
	if e.mapped != 0 {
		unmapFresh(e.mapped, e.size())
		e.mapped = 0
	}
}

func (e *ranges) size() uintptr {
	return askBytes + raw.RoundUp(e.room*unsafe.Sizeof(memoryRange{}), raw.Page)
}

func (e *ranges) at(i uintptr) *memoryRange {
	return (*memoryRange)(raw.Ptr(e.mapped + askBytes + i*unsafe.Sizeof(memoryRange{})))
}

func (e *ranges) add(addr, bytes uintptr, placement uint32) {
	e.bytes[tierOf(placement)] += bytes
	if i := e.n - 1; i < e.room { // there is an extent before, and it was recorded
		last := e.at(i)
		if last.addr+last.bytes == addr && last.placement == placement {
			last.bytes += bytes
			return
		}
	}
	if e.n < e.room {
		x := e.at(e.n)
		x.addr, x.bytes, x.placement = addr, bytes, placement
	}
	e.n++
}

// whole lists the memory again, with more room, until all extents fit. It reports whether they do.
func (e *ranges) whole(token uintptr) bool {
	for i := 0; i < 8 && e.n > e.room && e.mapped != 0; i++ {
		room := e.n + e.n/2
		e.drop()
		e.reserve(room)
		if !poolLock.Take(token) {
			return false
		}
		scratch.collectCounts(e)
		poolLock.Release()
	}
	return e.mapped != 0 && e.n <= e.room
}

func setNodes(r *stats.Report, nodes uint64) {
	r.NodeCount = 0
	for node := uint64(0); node < stats.NodeMax; node++ {
		if nodes>>node&1 != 0 {
			r.Nodes[r.NodeCount&(stats.NodeMax-1)] = node
			r.NodeCount++
		}
	}
}

// ask asks the kernel on which nodes the memory of each tier is, and puts the answer into the
// report. If the kernel does not answer, the report has no nodes.
func (e *ranges) ask(r *stats.Report, nodes uintptr) {
	a := (*asking)(raw.Ptr(e.mapped))
	pages, failed := uint64(0), uint64(0)
	for tier := uintptr(0); tier < uintptr(stats.TierCount); tier++ {
		f := e.find(tier, nodes)
		if f.asked < f.all {
			r.NodesSampled = 1
		}
		t := &r.Tiers[tier&3]
		for k := uint64(0); k < r.NodeCount && k < stats.NodeMax; k++ {
			t.BytesPerNode[k] = f.on(a.found.Node[r.Nodes[k]&(stats.NodeMax-1)])
		}
		pages += f.asked
		failed += a.found.Failed / raw.Page
	}
	if failed != 0 && failed == pages {
		r.NodeCount, r.NodesSampled = 0, 0
	}
}

// finding is how many pages a tier has, and how many of them the kernel was asked about.
type finding struct{ all, asked uint64 }

// find asks on which nodes all or some pages of a tier are, and puts the answer into the asking at
// the beginning of the mapping.
func (e *ranges) find(tier, nodes uintptr) (f finding) {
	a := (*asking)(raw.Ptr(e.mapped))
	a.found = numa.Residency{}
	f.all = uint64(e.bytes[tier&3] / raw.Page)
	if nodes == NodesExact || f.all <= samplePages {
		f.asked = f.all
		e.count(tier, a)
	} else {
		f.asked = uint64(e.sample(tier, a))
	}
	return f
}

// on scales the bytes found on a node to the whole tier.
func (f *finding) on(found uint64) uint64 {
	if f.asked == 0 {
		return 0
	}
	return found / raw.Page * f.all / f.asked * raw.Page
}

// count asks for the node of each page of a tier.
func (e *ranges) count(tier uintptr, a *asking) {
	for i := uintptr(0); i < e.n && i < e.room; i++ {
		if x := e.at(i); tierOf(x.placement) == tier {
			numa.Count(x.addr, x.bytes, &a.found)
		}
	}
}

// samplePages is the number of sampled pages of a tier. With it a node's share of the tier is off
// by at most a hundredth in two of three reports, whatever the size of the tier, and the query
// takes less than a millisecond.
const samplePages = 2048

// asking is the memory for queries of the kernel.
type asking struct {
	_     raw.OffHeap
	found numa.Residency
	pages [samplePages]uintptr
}

const askBytes = (unsafe.Sizeof(asking{}) + raw.Page - 1) &^ (raw.Page - 1)

// sample asks for the nodes of some pages of a tier and returns their number. It divides the tier's
// pages, in the order of its extents, into samplePages parts that differ by at most one page, and
// picks a random page of each part. Equal distances would be wrong, because pages may be
// interleaved over nodes. Precondition: the tier has more than samplePages pages.
func (e *ranges) sample(tier uintptr, a *asking) (n uintptr) {
	all := e.bytes[tier&3] / raw.Page
	passed := uintptr(0) // pages of the extents before
	next := pick(0, all)
	for i := uintptr(0); i < e.n && i < e.room; i++ {
		x := e.at(i)
		if tierOf(x.placement) != tier {
			continue
		}
		pages := x.bytes / raw.Page
		for n < samplePages && next < passed+pages {
			a.pages[n&(samplePages-1)] = x.addr + (next-passed)*raw.Page
			n++
			next = pick(n, all)
		}
		passed += pages
	}
	numa.CountPages(uintptr(unsafe.Pointer(&a.pages)), n, &a.found)
	return n
}

// pick returns the number of the page that represents part i of all pages.
func pick(i, all uintptr) uintptr {
	// 2^64 over the golden ratio: multiples of it are spread evenly
	const golden = 0x9e3779b97f4a7c15
	first, end := i*all/samplePages, (i+1)*all/samplePages
	return first + (i*golden>>32)*(end-first)>>32
}

// The kernel's NUMA balancing moves pages between nodes without notice. If a soft cap governs such
// memory, a sample of pages, like that of a report, tells the tiers every movesEvery how much the
// kernel has moved.
const movesEvery = 1e9 // nanoseconds

var kernelMoves struct {
	on  bool
	due uint64 // when the next sample is
}

// SetKernelMoves turns the samples on if the kernel may move memory that a soft cap governs. It is
// called once, before the first block.
func SetKernelMoves(s *config.Settings, m *numa.Map) { kernelMoves.on = m.Moving && onlySoft(s) }

// onlySoft reports whether a soft cap alone governs some tier.
func onlySoft(s *config.Settings) bool {
	for i := range s.Tiers {
		if t := &s.Tiers[i]; t.Soft != 0 && t.Hard == 0 {
			return true
		}
	}
	return false
}

// noteMoves takes a sample if one is due. Precondition: no lock is held.
func (t *Thread) noteMoves() {
	if kernelMoves.on {
		t.sampleMoves()
	}
}

//go:noinline
func (t *Thread) sampleMoves() {
	due := atomic.LoadUint64(&kernelMoves.due)
	if t.Now < due || !atomic.CompareAndSwapUint64(&kernelMoves.due, due, t.Now+movesEvery) {
		return
	}
	var e ranges
	if e.reserve(firstRanges); e.mapped != 0 && poolLock.Take(t.token) {
		scratch.collectCounts(&e)
		poolLock.Release()
		if e.whole(t.token) {
			e.tellMoves()
		}
	}
	e.drop()
}

// tellMoves tells the tiers how much the kernel has moved. Memory of a tier on a node of another
// tier counts for that one. Two tiers have the same nodes, or none in common.
func (e *ranges) tellMoves() {
	a := (*asking)(raw.Ptr(e.mapped))
	var in, out [placementSlots]uintptr // by the tier
	for from := uintptr(0); from < placementPin; from++ {
		f := e.find(from, NodesSampled)
		for node := range uintptr(len(a.found.Node)) {
			n := uintptr(f.on(a.found.Node[node&63]))
			for to := uintptr(0); n != 0 && to < placementPin; to++ {
				here := placements[to].nodes.Nodes>>node&1 != 0
				switch same := tiers.Same(from, to); {
				case here && !same:
					in[to] += n
				case same && !here:
					out[to] += n
				}
			}
		}
	}
	for to := uintptr(0); to < placementPin; to++ {
		tiers.KernelMoved(to, in[to], out[to])
	}
}
