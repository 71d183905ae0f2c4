package main

import (
	"math/bits"
	"strconv"
	"strings"

	"tieralloc/internal/config"
	"tieralloc/numa"
)

// nodeList returns the numbers of the nodes in a set.
func nodeList(set uint64) []int {
	var list []int
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// nodeWords writes node numbers, in rising order, as the kernel and TA_NODE_* do: 0-2,5.
func nodeWords(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		part := strconv.Itoa(list[i])
		if last > i {
			part += "-" + strconv.Itoa(list[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	if parts == nil {
		return none
	}
	return strings.Join(parts, ",")
}

// tierPlace is the placement of a tier, for the tables of check and topology.
type tierPlace struct {
	tier  string
	nodes []int
	how   string
}

// places returns the placements of the tiers, nil if they are simulated.
func places(m *numa.Map) []tierPlace {
	if m.Simulated {
		return nil
	}
	var list []tierPlace
	for i := range config.TierCount {
		p := m.Tier[i]
		list = append(list, tierPlace{tierNames[i], nodeList(p.Nodes), placeWords(&p)})
	}
	return list
}

// placeWords describes how a tier's memory is placed, and whether the kernel may move it later.
func placeWords(p *numa.Place) string {
	words := modeWords(p.Mode &^ numa.Balanced)
	switch {
	case p.Promote != 0:
		words += "; the kernel's tiering may promote to node " + nodeWords(nodeList(p.Promote))
	case p.Mode&numa.Balanced != 0:
		words += "; the kernel's NUMA balancing may move pages here"
	}
	return words
}

// modeWords describes a policy of the kernel.
func modeWords(mode uint32) string {
	switch mode {
	case numa.Default:
		return "the kernel's choice: the nearest node with room"
	case numa.Interleave:
		return "page by page in turn"
	case numa.WeightedInterleave:
		return "page by page in turn, by the system's weights"
	}
	return "these first, others when they are full"
}

// whySimulated explains why the tiers are simulated.
func whySimulated(s *config.Settings, t *numa.Topology) string {
	usable := nodeList(t.Usable())
	switch {
	case !s.UseLibnuma:
		return "TA_USE_LIBNUMA=0: the tiers are simulated"
	case len(nodeList(t.Memory)) < 2:
		return "one node: the tiers are simulated"
	case len(usable) < 2:
		return "one node that this process may use (" + nodeWords(usable) +
			"): the tiers are simulated"
	case s.Tiers[0].Nodes|s.Tiers[1].Nodes|s.Tiers[2].Nodes != 0:
		return "memory cannot be bound to the nodes that were named: the tiers are simulated"
	}
	return "all nodes are equally fast, as far as the system tells: the tiers are simulated, " +
		"unless TA_NODE_* divides the nodes"
}
