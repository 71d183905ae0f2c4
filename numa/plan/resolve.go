// Package plan gives the tiers their nodes at the start of a process. It is freestanding Go
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
// NORMAL is the memory of the processors that the process may use, FAST all memory that is
// faster, SLOW all that is slower (see sort); a tier for which there is none has NORMAL's
// nodes:
//
//	FAST = faster or same    NORMAL = same    SLOW = slower or same
//
// A tier for which TA_NODE_* names nodes has these instead, and the automatic ones of the
// others give them up (see claims). So of any two tiers the nodes are the same, and then they are
// one account (numa.Map.Accounts), or they have none in common.
//
// Memory goes to a tier's nodes as long as they have room, and elsewhere then
// (PreferredMany), unless the variable asks for interleaving. The kernel's own choice is left
// alone (Default) in a tier that has all usable nodes, and in an automatic one of the
// processors' memory while no tier has a cap: it is then where it would be without us. With a cap
// anywhere it is bound, for a policy of the program's own may lead to nodes that a cap is on. The
// tiers are simulated where fewer than two nodes are usable, where there is one kind and
// nothing was named, and with TA_USE_LIBNUMA=0.
//
// A variable that names a node which does not exist, has no memory, or is closed to this process,
// or that shares only some nodes with an earlier one, is one line on fd and is refused as a whole.
// So is each one that is named where nothing can be bound: with TA_USE_LIBNUMA=0, and where the
// kernel, or a container's filter of system calls, refuses mbind. The result is their number.
func Resolve(s *config.Settings, t *numa.Topology, m *numa.Map, fd uintptr) (bad uintptr) {
	bad = plan(s, t, m, fd)
	if m.Simulated {
		return bad
	}
	if errno := try(m); errno != 0 {
		*m = numa.Map{Nodes: t.Memory, Simulated: true}
		// Those that plan has complained of already get no second line.
		bad += ignored(s, t, fd, errno)
	}
	return bad
}

// plan is Resolve without asking the kernel whether it goes along.
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

// place is where a tier lies.
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

// automatic is the nodes that a tier has when nobody names any.
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

// spread is the mode for what a variable asks; Default when it leaves that open.
func spread(how uint32) uint32 {
	switch how {
	case config.SpreadInterleave:
		return numa.Interleave
	case config.SpreadWeighted:
		return numa.WeightedInterleave
	}
	return numa.Default
}

// try binds a page in each way that the map has, and returns the first errno.
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
