package plan

import (
	"tieralloc/internal/config"
	"tieralloc/numa"
)

// Balance says which tiers' memory the kernel's NUMA balancing may move, beside that of tiers with
// the default policy, which it always may: by TA_NUMA_BALANCING that of no tier, of all tiers, or
// of those on whose nodes no tier has a hard cap. The kernel knows nothing of caps; a soft cap
// follows what it moves.
//
// mode is kernel.numa_balancing. The memory of a slow tier is promoted to the faster tiers' nodes
// that are not capped where the kernel's memory tiering is on, or TA_NUMA_BALANCING=1 asks for it.
// Two things are needed for that. The tier's node has no processors: else the kernel's balancing
// would take the memory away from it at its first uses. And it is one node: from another one the
// kernel would look for the next nearest memory, which may be the fast node's.
//
// The kernel refuses balancing with interleaving, and where memory is bound strictly it would
// move nothing.
func Balance(s *config.Settings, top *numa.Topology, m *numa.Map, mode uint64) {
	if m.Simulated || s.NumaBalancing == config.BalanceNever {
		return
	}
	m.Moving = mode != 0
	tiering := mode&numa.Tiering != 0
	always := s.NumaBalancing == config.BalanceAlways
	capped := uint64(0)
	for tier := uintptr(0); tier < uintptr(config.TierCount) && !always; tier++ {
		if t := &s.Tiers[tier&tierMask]; t.Hard != 0 || t.HardPart != 0 {
			capped |= m.Tier[tier&tierMask].Nodes
		}
	}
	faster := uint64(0)
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		p := &m.Tier[tier&tierMask]
		if p.Mode == numa.PreferredMany && p.Nodes&capped == 0 {
			p.Mode |= numa.Balanced
			if (tiering || always) && p.Nodes&(p.Nodes-1) == 0 && p.Nodes&top.CPUs == 0 {
				p.Promote = faster &^ (capped | p.Nodes)
			}
		}
		faster |= p.Nodes
	}
}
