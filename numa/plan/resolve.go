// Package plan gives the tiers their nodes. It is the data plane's (docs/DESIGN.md), for the start of a process.
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
// A tier for which TA_NODE_* names nodes has these. The others, and those whose
// TA_NODE_* is refused, have their automatic nodes: with the usable nodes sorted into
// groups from fast to slow (see sort),
//
//	groups   FAST     NORMAL   SLOW
//	1        all      all      all
//	2        first    first    second
//	3        first    second   third and all slower ones
//
// Nodes that a variable names are not taken from the tiers that it does not name:
// several tiers may share a node.
//
// Memory goes to a tier's nodes as long as they have room, and elsewhere then
// (PreferredMany), unless the variable asks for interleaving. A tier that has all
// usable nodes keeps the default policy, which takes the nearest one. The tiers are
// simulated where fewer than two nodes are usable, where there is one group and
// nothing was named, and with TA_USE_LIBNUMA=0.
//
// A variable that names a node which does not exist, has no memory, or is closed to
// this process is one line on fd and is refused as a whole. So is each one that is
// named where nothing can be bound: with TA_USE_LIBNUMA=0, and where the kernel, or
// a container's filter of system calls, refuses mbind. The result is their number.
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
	g := sort(t, usable)
	named := false
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		want := &s.Tiers[tier&tierMask]
		nodes := g.automatic(tier)
		if want.Nodes != 0 && want.Nodes&^usable != 0 {
			refuse(tier, want, t, nodes, fd)
			bad++
		} else if want.Nodes != 0 {
			named = true
			nodes = want.Nodes
			m.Tier[tier&tierMask].Mode = spread(want.Spread)
		}
		p := &m.Tier[tier&tierMask]
		p.Nodes = nodes
		if p.Mode == numa.Default && nodes != usable {
			p.Mode = numa.PreferredMany
		}
	}
	if usable&(usable-1) == 0 || g.second == 0 && !named {
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

// automatic is the nodes that a tier has when nobody names any.
func (g *groups) automatic(tier uintptr) uint64 {
	switch {
	case g.second == 0 || tier == uintptr(config.TierFast):
		return g.first
	case g.rest == 0 && tier == uintptr(config.TierNormal):
		return g.first
	case g.rest == 0 || tier == uintptr(config.TierNormal):
		return g.second
	}
	return g.rest
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
