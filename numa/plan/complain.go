package plan

import (
	"math/bits"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// variable names the variable of a tier.
func variable(tier uintptr) string {
	switch tier {
	case uintptr(config.TierFast):
		return "TA_NODE_FAST"
	case uintptr(config.TierNormal):
		return "TA_NODE_NORMAL"
	}
	return "TA_NODE_SLOW"
}

// begin writes the start of a line about a tier's variable. It writes the value as it was parsed:
// "0,1" becomes "0-1".
func begin(l *raw.Line, tier uintptr, want *config.Tier) {
	l.Text("tieralloc: ")
	l.Text(variable(tier))
	l.Text("=\"")
	switch want.Spread {
	case config.SpreadInterleave:
		l.Text("interleave:")
	case config.SpreadWeighted:
		l.Text("weighted:")
	}
	list(l, want.Nodes)
	l.Text("\": expected ")
}

// complain writes a line for each variable that is refused, and returns their number.
func (c *claims) complain(s *config.Settings, t *numa.Topology, m *numa.Map,
	fd uintptr) (bad uintptr) {
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		want, using := &s.Tiers[tier&tierMask], m.Tier[tier&tierMask].Nodes
		switch {
		case want.Nodes == c.nodes[tier&tierMask]:
			continue
		case want.Nodes&^t.Usable() != 0:
			refuse(tier, want, t, using, fd)
		default:
			part(tier, want, c, using, fd)
		}
		bad++
	}
	return bad
}

// part writes the line about a variable whose nodes overlap those of another in part.
//
//go:noinline
func part(tier uintptr, want *config.Tier, c *claims, using uint64, fd uintptr) {
	var l raw.Line
	other := c.overlapped(tier, want.Nodes)
	begin(&l, tier, want)
	l.Text("the nodes of ")
	l.Text(variable(other))
	l.Text(" (")
	list(&l, c.nodes[other&tierMask])
	l.Text(") or none of them; using ")
	list(&l, using)
	l.Emit(fd)
}

// refuse writes the line about a variable that names nodes which cannot be used.
// It is kept out of line so that the buffer is on the stack only while it runs.
//
//go:noinline
func refuse(tier uintptr, want *config.Tier, t *numa.Topology, using uint64, fd uintptr) {
	var l raw.Line
	begin(&l, tier, want)
	l.Text("nodes with memory that this process may use (")
	list(&l, t.Usable())
	l.Text(")")
	missing := want.Nodes &^ t.Online
	empty := want.Nodes &^ (missing | t.Memory)
	reason(&l, missing, " does not exist", " do not exist")
	reason(&l, empty, " has no memory", " have no memory")
	reason(&l, want.Nodes&^(missing|empty|t.Allowed), " is not in this process's cpuset",
		" are not in this process's cpuset")
	l.Text("; using ")
	list(&l, using)
	l.Emit(fd)
}

// reason writes what is wrong with the nodes of a set, if the set is not empty.
func reason(l *raw.Line, set uint64, one, many string) {
	if set == 0 {
		return
	}
	l.Text(", node")
	if set&(set-1) != 0 {
		l.Text("s ")
		list(l, set)
		l.Text(many)
		return
	}
	l.Text(" ")
	list(l, set)
	l.Text(one)
}

// ignored writes a line for each variable whose nodes are usable but not used, because of
// TA_USE_LIBNUMA=0 or an errno of mbind. It returns their number.
func ignored(s *config.Settings, t *numa.Topology, fd, errno uintptr) (lines uintptr) {
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		want := &s.Tiers[tier&tierMask]
		if want.Nodes == 0 || errno != 0 && want.Nodes&^t.Usable() != 0 {
			continue
		}
		ignore(tier, want, errno, fd)
		lines++
	}
	return lines
}

//go:noinline
func ignore(tier uintptr, want *config.Tier, errno, fd uintptr) {
	var l raw.Line
	begin(&l, tier, want)
	if errno == 0 {
		l.Text("no nodes beside TA_USE_LIBNUMA=0")
	} else {
		l.Text("a system that lets this process bind memory (mbind failed with errno ")
		l.Dec(uint64(errno))
		l.Text(")")
	}
	l.Text("; using simulated tiers")
	l.Emit(fd)
}

// list writes a set of nodes as the kernel does: 0-2,5. The empty set is "none".
func list(l *raw.Line, set uint64) {
	if set == 0 {
		l.Text("none")
		return
	}
	for first := true; set != 0; first = false {
		low := uint(bits.TrailingZeros64(set))
		run := uint(bits.TrailingZeros64(^(set >> (low & 63)))) // ones from low on
		if !first {
			l.Text(",")
		}
		l.Dec(uint64(low))
		if run > 1 {
			l.Text("-")
			l.Dec(uint64(low + run - 1))
		}
		if low+run > 63 {
			return
		}
		set = set >> ((low + run) & 63) << ((low + run) & 63)
	}
}
