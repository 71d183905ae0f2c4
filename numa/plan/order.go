package plan

import (
	"math/bits"

	"tieralloc/numa"
)

// Order is the source of the order between kinds of memory.
type Order uint32

const (
	ByTier     Order = iota // the kernel's memory tiers
	ByFigures               // the firmware's latency and bandwidth (HMAT)
	ByDistance              // the table of distances, and which nodes have processors
)

// kinds are the usable nodes by kind. Same is the memory of the processors.
//
//	faster ∪ same ∪ slower = the usable nodes, and no node is in two of them
//	there are usable nodes ⇒ same ≠ 0
type kinds struct {
	faster, same, slower uint64
}

// sort divides the nodes of the set into kinds. The kind "same" is the nodes with processors on
// which this process may run; if these have no memory, it is the fastest of the nearest nodes.
// Every other node is compared with these. It is faster if it is faster than all of them, slower if
// it is slower than all of them, and otherwise of the same kind. The comparison is
//
//   - by the kernel's memory tiers, if it knows the tier of each node of the set and they are
//     not all in one;
//   - otherwise by the firmware's figures, if it has a latency for each: see byFigures;
//   - otherwise by distance from the nearest processors: more than 20% farther is slower. A
//     node without processors counts as 25% farther, so it is always slower than one with
//     processors.
//
// Only the kernel's tiers distinguish nodes with processors. By distance another socket is as far
// from this one as this one from it, and the process may run there next.
func sort(t *numa.Topology, set uint64) (k kinds) {
	by := OrderOf(t, set)
	base := processorMemory(t, set)
	k.same = base
	for rest := set &^ base; rest != 0; rest &= rest - 1 {
		n := uint(bits.TrailingZeros64(rest)) & 63
		switch {
		case by != ByTier && t.CPUs>>n&1 != 0:
			k.same |= 1 << n
		case allBeyond(t, n, base, by, true):
			k.faster |= 1 << n
		case allBeyond(t, n, base, by, false):
			k.slower |= 1 << n
		default:
			k.same |= 1 << n
		}
	}
	return k
}

// OrderOf returns the source of the order between the nodes of the set.
func OrderOf(t *numa.Topology, set uint64) Order {
	if set&^t.Tiered == 0 && !oneTier(t, set) {
		return ByTier
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		if latency(&t.Node[bits.TrailingZeros64(rest)&63]) == 0 {
			return ByDistance
		}
	}
	return ByFigures
}

func oneTier(t *numa.Topology, set uint64) bool {
	first := t.Node[bits.TrailingZeros64(set)&63].MemoryTier
	for rest := set; rest != 0; rest &= rest - 1 {
		if t.Node[bits.TrailingZeros64(rest)&63].MemoryTier != first {
			return false
		}
	}
	return true
}

// processorMemory returns the nodes of the set with processors on which this process may run. If
// there are none it returns the fastest of the nodes nearest to them.
func processorMemory(t *numa.Topology, set uint64) (base uint64) {
	if base = set & t.Running; base != 0 {
		return base
	}
	from := t.Running
	if from == 0 {
		from = t.CPUs
	}
	least := ^uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		least = min(least, distance(t, uint(bits.TrailingZeros64(rest)), from))
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		n := uint(bits.TrailingZeros64(rest)) & 63
		if distance(t, n, from) == least {
			base |= 1 << n
		}
	}
	return fastest(t, base, OrderOf(t, set))
}

// fastest returns the nodes of the set such that no node of the set is faster.
func fastest(t *numa.Topology, set uint64, by Order) (group uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		n, beaten := uint(bits.TrailingZeros64(rest))&63, false
		for other := set; other != 0; other &= other - 1 {
			beaten = beaten || isFaster(t, uint(bits.TrailingZeros64(other)), n, by)
		}
		if !beaten {
			group |= 1 << n
		}
	}
	return group
}

// allBeyond reports whether node n is faster, or else slower, than every node of base.
func allBeyond(t *numa.Topology, n uint, base uint64, by Order, faster bool) bool {
	for ; base != 0; base &= base - 1 {
		a, b := n, uint(bits.TrailingZeros64(base))
		if !faster {
			a, b = b, a
		}
		if !isFaster(t, a, b, by) {
			return false
		}
	}
	return true
}

// isFaster reports whether node a is of a faster kind than node b.
func isFaster(t *numa.Topology, a, b uint, by Order) bool {
	switch by {
	case ByTier:
		return t.Node[a&63].MemoryTier < t.Node[b&63].MemoryTier
	case ByFigures:
		return byFigures(&t.Node[a&63], &t.Node[b&63])
	}
	return above(distance(t, b, t.CPUs), distance(t, a, t.CPUs), 120)
}

// byFigures reports whether a is faster than b. If one latency is less than two thirds of the
// other, the lower one is faster. Otherwise a bandwidth that is more than 20% higher is faster, as
// that of memory on the processor's package is. Otherwise a latency that is more than 20% lower is
// faster.
func byFigures(a, b *numa.Node) bool {
	here, there := latency(a), latency(b)
	switch wide, narrow := bandwidth(a), bandwidth(b); {
	case above(there, here, 150):
		return true
	case above(here, there, 150):
		return false
	case wide == 0 || narrow == 0:
	case above(wide, narrow, 120):
		return true
	case above(narrow, wide, 120):
		return false
	}
	return above(there, here, 120)
}

// above reports whether a is more than so many percent of b.
func above(a, b, percent uint64) bool { return a*100 > b*percent }

// latency returns the sum of the latencies of a read and a write, 0 if neither is known.
func latency(n *numa.Node) uint64 { return both(n.ReadLatency, n.WriteLatency) }

// bandwidth returns the sum of the bandwidths of reads and writes, 0 if neither is known.
func bandwidth(n *numa.Node) uint64 { return both(n.ReadBandwidth, n.WriteBandwidth) }

// both adds two figures. One that is not known counts as equal to the other.
func both(a, b uint32) uint64 {
	if a == 0 {
		a = b
	}
	if b == 0 {
		b = a
	}
	return uint64(a) + uint64(b)
}

// distance returns 100 times the distance of node n from the nearest node of a set, or of all nodes
// if the set is empty.
func distance(t *numa.Topology, n uint, from uint64) uint64 {
	if from == 0 {
		from = t.Online
	}
	least := uint64(255)
	for ; from != 0; from &= from - 1 {
		m := uint(bits.TrailingZeros64(from)) & 63
		d := uint64(t.Node[m].Distance[n&63])
		if d == 0 && m == n {
			d = numa.LocalDistance
		} else if d == 0 {
			d = numa.RemoteDistance
		}
		least = min(least, d)
	}
	if t.CPUs>>(n&63)&1 == 0 {
		return least * 125
	}
	return least * 100
}
