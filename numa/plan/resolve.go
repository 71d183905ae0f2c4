// Package plan assigns nodes to the tiers at the start of a process. It is freestanding Go
// (docs/runtime.md).
package plan

import (
	"syscall"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
)

const tierMask = 3

// Resolve fills m from the settings and the topology.
//
// NORMAL is the memory of the processors that the process may use, FAST all faster memory, SLOW all
// slower memory (see sort). If there is no faster or slower memory, the tier has NORMAL's nodes:
//
//	FAST = faster or same    NORMAL = same    SLOW = slower or same
//
// If TA_NODE_* names nodes for a tier, it has these instead, and the other tiers lose them (see
// claims). So any two tiers have the same nodes, and are one account (numa.Map.Accounts), or have
// no node in common.
//
// Memory goes to a tier's nodes while they have room, and then to other nodes (PreferredMany),
// unless the variable asks for interleaving. Two kinds of tiers keep the kernel's own choice
// (Default): a tier that has all usable nodes, and an automatic one of the processors' memory while
// no tier has a cap. Once any tier has a cap, such a tier is bound too, because a policy of the
// program could place its memory on capped nodes. The tiers are simulated if fewer than two nodes
// are usable, if there is one kind of memory and no variable names nodes, and with
// TA_USE_LIBNUMA=0.
//
// A variable is refused as a whole, with one line on fd, if it names a node that does not exist,
// has no memory, or is closed to this process, or if it shares only some nodes with an earlier
// variable. Each variable is refused if nothing can be bound: with TA_USE_LIBNUMA=0, and if the
// kernel, or a container's filter of system calls, refuses mbind. Resolve returns the number of
// refused variables.
func Resolve(s *config.Settings, t *numa.Topology, m *numa.Map, fd uintptr) (bad uintptr) {
	bad = plan(s, t, m, fd)
	if m.Simulated {
		return bad
	}
	if errno := try(m); errno != 0 {
		*m = numa.Map{Nodes: t.Memory, Simulated: true}
		// Variables that plan has refused already get no second line.
		bad += ignored(s, t, fd, errno)
	}
	return bad
}

// plan is Resolve without the test whether the kernel allows binding.
func plan(s *config.Settings, t *numa.Topology, m *numa.Map, fd uintptr) (bad uintptr) {
	*m = numa.Map{Nodes: t.Memory, Simulated: true}
	if !s.UseLibnuma {
		return ignored(s, t, fd, 0)
	}
	usable := t.Usable()
	k := sort(t, usable)
	var c claims
	c.take(s, usable)
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		m.Tier[tier&tierMask] = k.place(tier, s, &c, usable)
	}
	bad = c.complain(s, t, m, fd)
	if usable&(usable-1) == 0 || k.faster|k.slower|c.all == 0 {
		*m = numa.Map{Nodes: t.Memory, Simulated: true}
		return bad
	}
	m.Simulated = false
	m.Pin.Nodes = m.Tier[config.TierFast&tierMask].Nodes
	if m.Pin.Nodes != usable {
		m.Pin.Mode = numa.Strict
	}
	return bad
}

// place returns the placement of a tier.
func (k *kinds) place(tier uintptr, s *config.Settings, c *claims, usable uint64) (p numa.Place) {
	p.Nodes = c.nodes[tier&tierMask]
	if p.Nodes != 0 {
		p.Mode = spread(s.Tiers[tier&tierMask].Spread)
	} else {
		p.Nodes = c.left(k.automatic(tier))
		if p.Nodes == k.same && !capped(s) {
			return p
		}
	}
	if p.Mode == numa.Default && p.Nodes != usable {
		p.Mode = numa.PreferredMany
	}
	return p
}

// automatic returns the nodes that a tier has if no variable names any.
func (k *kinds) automatic(tier uintptr) uint64 {
	switch {
	case tier == uintptr(config.TierFast) && k.faster != 0:
		return k.faster
	case tier == uintptr(config.TierSlow) && k.slower != 0:
		return k.slower
	}
	return k.same
}

// capped reports whether any tier has a cap.
func capped(s *config.Settings) bool {
	for tier := range s.Tiers {
		t := &s.Tiers[tier&tierMask]
		if t.Soft|t.Hard != 0 || t.SoftPart|t.HardPart != 0 {
			return true
		}
	}
	return false
}

// spread returns the mode that a variable asks for, Default if it asks for none.
func spread(how uint32) uint32 {
	switch how {
	case config.SpreadInterleave:
		return numa.Interleave
	case config.SpreadWeighted:
		return numa.WeightedInterleave
	}
	return numa.Default
}

// try binds a page with each policy of the map, and returns the first errno.
func try(m *numa.Map) (errno uintptr) {
	page := raw.Map(raw.Page)
	if page == 0 {
		return uintptr(syscall.ENOMEM)
	}
	for tier := uintptr(0); tier < uintptr(config.TierCount) && errno == 0; tier++ {
		errno = numa.Bind(page, raw.Page, &m.Tier[tier&tierMask], false)
	}
	if errno == 0 {
		errno = numa.Bind(page, raw.Page, &m.Pin, false)
	}
	raw.Unmap(page, raw.Page)
	return errno
}
