package plan

import (
	"math/bits"

	"tieralloc/numa"
)

// Order says what tells the kinds of memory apart.
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

// sort divides the nodes of the set. Those that have processors on which this process may run are
// the same kind by definition; where they have no memory, it is the fastest of the nearest nodes.
// Every other node is compared with these. It is faster when it is faster than all of them, slower
// when it is slower than all of them, and else of the same kind:
//
//   - by the kernel's memory tiers, where it knows the tier of each node of the set and they
//     are not all in one;
//   - else by the firmware's figures, where it has a latency for each: see byFigures;
//   - else by distance from the nearest processors: more than 20% farther is slower. A node
//     without processors counts as 25% farther, so it is always slower than one with them.
//
// Only the kernel's tiers tell nodes with processors apart: those of another socket are as
// far from here as we are from them, and the process may run there next.
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

// OrderOf is what tells the nodes of the set apart.
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

// processorMemory is the part of the set that has processors on which this process may run,
// or else of the nodes nearest to them the fastest.
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

// fastest is the part of the set than which no node of it is faster.
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

// byFigures reports whether a is faster than b: its latency is less than two thirds of b's; or the
// latencies are within 1.5 times of each other and its bandwidth is more than 20% higher, as that
// of memory on the processor's package is; or bandwidths do not tell either, and its latency is
// more than 20% lower.
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

// latency is that of a read and a write together, 0 when neither is known.
func latency(n *numa.Node) uint64 { return both(n.ReadLatency, n.WriteLatency) }

// bandwidth is that of reads and writes together, 0 when neither is known.
func bandwidth(n *numa.Node) uint64 { return both(n.ReadBandwidth, n.WriteBandwidth) }

// both adds up two figures; one that is not known counts as equal to the other.
func both(a, b uint32) uint64 {
	if a == 0 {
		a = b
	}
	if b == 0 {
		b = a
	}
	return uint64(a) + uint64(b)
}

// distance is that of node n from the nearest of some nodes, or of all where there are none,
// times 100.
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
