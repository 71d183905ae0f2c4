package alloc

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/tiers"
)

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
