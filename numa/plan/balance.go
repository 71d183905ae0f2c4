package plan

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// RefuseBalance makes TA_NUMA_BALANCING 0 where the kernel moves no memory with a policy. It
// returns the number of lines written to fd: one if the value was 1. Resolve has been called.
func RefuseBalance(s *config.Settings, m *numa.Map, fd uintptr) (bad uintptr) {
	if m.Simulated || s.NumaBalancing == config.BalanceNever || numa.CanBalance() {
		return 0
	}
	if s.NumaBalancing == config.BalanceAlways {
		var l raw.Line
		l.Text(`tieralloc: TA_NUMA_BALANCING="1": expected auto or 0, for this kernel moves no memory ` +
			`with a policy (Linux 6.12 does); using 0`)
		l.Emit(fd)
		bad = 1
	}
	s.NumaBalancing = config.BalanceNever
	return bad
}

// Balance decides which tiers' memory the kernel's NUMA balancing may move. It may always move
// memory of tiers with the default policy. TA_NUMA_BALANCING adds no tiers, all tiers, or those on
// whose nodes no tier has a hard cap. The kernel knows nothing of caps. A soft cap takes the bytes
// that the kernel has moved into account.
//
// mode is kernel.numa_balancing. If the kernel's memory tiering is on, or TA_NUMA_BALANCING=1 asks
// for it, the memory of a slow tier may be promoted to those nodes of faster tiers that have no
// cap. The slow tier must meet two conditions. Its node has no processors; otherwise the kernel's
// balancing would move the memory away at its first uses. And it has one node only; with several
// the kernel would search for the next nearest memory, which may be the fast node's.
//
// With TA_ON_SOFTCAP=follow the library moves memory itself, and the kernel moves none of it,
// unless TA_NUMA_BALANCING=1 asks for the kernel.
//
// The kernel refuses balancing with interleaving. With a strict policy it would move nothing.
func Balance(s *config.Settings, top *numa.Topology, m *numa.Map, mode uint64) {
	if m.Simulated || s.NumaBalancing == config.BalanceNever || s.Follows() {
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
