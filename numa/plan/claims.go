package plan

import (
	"tieralloc/internal/config"
)

// claims are the nodes that accepted variables name, by tier. Two claims are the same set or have
// no node in common. Otherwise a cap could not hold, because memory of a tier that it does not
// count could be on its nodes.
type claims struct {
	nodes [4]uint64 // 0: the tier has its automatic nodes
	all   uint64
}

// take reads the variables in their order. It leaves out a variable that names a node that is not
// usable, and one that overlaps an earlier one in part.
func (c *claims) take(s *config.Settings, usable uint64) {
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		want := s.Tiers[tier&tierMask].Nodes
		if want&^usable == 0 && c.overlapped(tier, want) == tier {
			c.nodes[tier&tierMask] = want
			c.all |= want
		}
	}
}

// overlapped returns the first tier before this one whose claim shares some of the nodes but is
// another set. If there is none it returns the tier itself.
func (c *claims) overlapped(tier uintptr, nodes uint64) uintptr {
	for other := uintptr(0); other < tier; other++ {
		if have := c.nodes[other&tierMask]; have&nodes != 0 && have != nodes {
			return other
		}
	}
	return tier
}

// left returns the nodes of a tier without a claim: its automatic nodes that no other tier claims.
// If all are claimed, the tier shares the first claim that has some of them.
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
