package plan

import (
	"tieralloc/internal/config"
)

// claims are the nodes that variables name, by tier: those of the variables that are
// accepted. Two of them are the same set or have no node in common, because a cap on nodes
// cannot hold while memory of a tier that it does not count may lie on some of them.
type claims struct {
	nodes [4]uint64 // 0: the tier has its automatic nodes
	all   uint64
}

// take takes the variables in their order. One that names a node which is not usable is left out,
// and one that overlaps an earlier one in part.
func (c *claims) take(s *config.Settings, usable uint64) {
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		want := s.Tiers[tier&tierMask].Nodes
		if want&^usable == 0 && c.overlapped(tier, want) == tier {
			c.nodes[tier&tierMask] = want
			c.all |= want
		}
	}
}

// overlapped is the first tier before this one whose claim has some of the nodes, but is another
// set; else the tier itself.
func (c *claims) overlapped(tier uintptr, nodes uint64) uintptr {
	for other := uintptr(0); other < tier; other++ {
		if have := c.nodes[other&tierMask]; have&nodes != 0 && have != nodes {
			return other
		}
	}
	return tier
}

// left is what a tier without a claim has of its automatic nodes: those that nobody else claims.
// Where that is none, it shares the first claim on them as a whole.
func (c *claims) left(automatic uint64) uint64 {
	if rest := automatic &^ c.all; rest != 0 {
		return rest
	}
	for tier := range c.nodes {
		if c.nodes[tier&tierMask]&automatic != 0 {
			return c.nodes[tier&tierMask]
		}
	}
	return 0 // there are no usable nodes
}
