package plan

import (
	"math/bits"

	"tieralloc/numa"
)

// order says by what nodes are sorted from fast to slow.
type order uint32

const (
	byTier order = iota
	byFigures
	byDistance
)

// groups are the usable nodes, sorted from fast to slow. At most two groups are told
// apart, and the rest.
//
//	first ∪ second ∪ rest = the usable nodes, and no node is in two of them
//	second = 0 ⇒ rest = 0
type groups struct {
	first, second, rest uint64
}

// sort groups the nodes of the set:
//
//   - by the kernel's memory tiers, where it knows the tier of each of them and they
//     are not all in one;
//   - else by the firmware's figures, where it has a latency for each: nodes belong
//     together whose latency is within 20% of the lowest, and of these, those whose
//     bandwidth is within 20% of the highest;
//   - else by the mean distance from the nodes with processors on which this process
//     may run, again within 20%. A node without processors counts as 25% farther:
//     where the table of distances makes no difference it is the slower one.
func sort(t *numa.Topology, set uint64) (g groups) {
	by := sortKey(t, set)
	g.first = fastest(t, set, by)
	g.second = fastest(t, set&^g.first, by)
	g.rest = set &^ (g.first | g.second)
	return g
}

func sortKey(t *numa.Topology, set uint64) order {
	if set&^t.Tiered == 0 && fastest(t, set, byTier) != set {
		return byTier
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		if latency(&t.Node[bits.TrailingZeros64(rest)&63]) == 0 {
			return byDistance
		}
	}
	return byFigures
}

// fastest is the fastest group of the nodes in set.
func fastest(t *numa.Topology, set uint64, by order) uint64 {
	switch by {
	case byTier:
		return lowest(t, set, byTier, 0)
	case byDistance:
		return lowest(t, set, byDistance, 20)
	}
	set = lowest(t, set, byFigures, 20)
	widest := uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		widest = max(widest, bandwidth(&t.Node[bits.TrailingZeros64(rest)&63]))
	}
	group := uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		n := uint(bits.TrailingZeros64(rest)) & 63
		if bandwidth(&t.Node[n])*120 >= widest*100 {
			group |= 1 << n
		}
	}
	return group
}

// lowest is the part of set whose key is at most so many percent above the lowest.
func lowest(t *numa.Topology, set uint64, by order, percent uint64) (group uint64) {
	least := ^uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		least = min(least, key(t, uint(bits.TrailingZeros64(rest)), by))
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		n := uint(bits.TrailingZeros64(rest)) & 63
		if key(t, n, by)*100 <= least*(100+percent) {
			group |= 1 << n
		}
	}
	return group
}

// key is what node n is sorted by, below 2^50: small is fast.
func key(t *numa.Topology, n uint, by order) uint64 {
	switch by {
	case byTier:
		return uint64(t.Node[n&63].MemoryTier)
	case byFigures:
		return latency(&t.Node[n&63])
	}
	return meanDistance(t, n)
}

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

// meanDistance is the mean distance of node n from the nodes where this process may
// run, times 1000.
func meanDistance(t *numa.Topology, n uint) uint64 {
	from := t.Running
	if from == 0 {
		from = t.CPUs
	}
	if from == 0 {
		from = t.Online
	}
	sum, count := uint64(0), uint64(0)
	for ; from != 0; from &= from - 1 {
		m := uint(bits.TrailingZeros64(from)) & 63
		d := uint64(t.Node[m].Distance[n&63])
		if d == 0 && m == n {
			d = numa.LocalDistance
		} else if d == 0 {
			d = numa.RemoteDistance
		}
		sum += d
		count++
	}
	if count == 0 {
		return 0
	}
	mean := (sum*1000 + count - 1) / count // rounded up, lest a fraction part what is 20% apart
	if t.CPUs>>(n&63)&1 == 0 {
		mean += mean / 4
	}
	return mean
}
