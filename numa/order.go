package numa

import "math/bits"

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
func (t *Topology) sort(set uint64) (g groups) {
	by := t.sortKey(set)
	g.first = t.fastest(set, by)
	g.second = t.fastest(set&^g.first, by)
	g.rest = set &^ (g.first | g.second)
	return g
}

func (t *Topology) sortKey(set uint64) order {
	if set&^t.Tiered == 0 && t.fastest(set, byTier) != set {
		return byTier
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		if t.Node[bits.TrailingZeros64(rest)&63].latency() == 0 {
			return byDistance
		}
	}
	return byFigures
}

// fastest is the fastest group of the nodes in set.
func (t *Topology) fastest(set uint64, by order) uint64 {
	switch by {
	case byTier:
		return t.lowest(set, byTier, 0)
	case byDistance:
		return t.lowest(set, byDistance, 20)
	}
	set = t.lowest(set, byFigures, 20)
	widest := uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		widest = max(widest, t.Node[bits.TrailingZeros64(rest)&63].bandwidth())
	}
	group := uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		n := uint(bits.TrailingZeros64(rest)) & 63
		if t.Node[n].bandwidth()*120 >= widest*100 {
			group |= 1 << n
		}
	}
	return group
}

// lowest is the part of set whose key is at most so many percent above the lowest.
func (t *Topology) lowest(set uint64, by order, percent uint64) (group uint64) {
	least := ^uint64(0)
	for rest := set; rest != 0; rest &= rest - 1 {
		least = min(least, t.key(uint(bits.TrailingZeros64(rest)), by))
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		n := uint(bits.TrailingZeros64(rest)) & 63
		if t.key(n, by)*100 <= least*(100+percent) {
			group |= 1 << n
		}
	}
	return group
}

// key is what node n is sorted by, below 2^50: small is fast.
func (t *Topology) key(n uint, by order) uint64 {
	switch by {
	case byTier:
		return uint64(t.Node[n&63].MemoryTier)
	case byFigures:
		return t.Node[n&63].latency()
	}
	return t.meanDistance(n)
}

// latency is that of a read and a write together, 0 when neither is known.
func (n *Node) latency() uint64 { return both(n.ReadLatency, n.WriteLatency) }

// bandwidth is that of reads and writes together, 0 when neither is known.
func (n *Node) bandwidth() uint64 { return both(n.ReadBandwidth, n.WriteBandwidth) }

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
func (t *Topology) meanDistance(n uint) uint64 {
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
			d = localDistance
		} else if d == 0 {
			d = remoteDistance
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
