package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"tieralloc/internal/config"
	"tieralloc/numa"
)

// Memory is preferred on a tier's nodes. When they are full the kernel takes other nodes, whose
// tiers may have caps that do not count it.

// reserve is the part of a node's free memory that the kernel may keep: one in so many. Small nodes
// have the largest.
const reserve = 16

// overflowRemarks names tiers in use whose nodes may become full without a hard cap that stops
// them, where another tier has a hard cap. free returns the free bytes of a node.
func overflowRemarks(c *configCheck, free func(node uintptr) uint64) []string {
	s, account := c.settings, c.places.Accounts()
	if s.Disable || c.places.Simulated {
		return nil
	}
	var lines []string
	seen := map[uintptr]bool{}
	used := usedTiers(s, account)
	slices.Sort(used)
	for _, tier := range used {
		if seen[account[tier]] {
			continue
		}
		seen[account[tier]] = true
		capped := cappedBeside(s, account, tier)
		nodes, room := nodeList(c.places.Tier[tier].Nodes), uint64(0)
		for _, n := range nodes {
			room += free(uintptr(n))
		}
		hard, most := s.Tiers[tier].Hard, room-room/reserve
		if capped == nil || hard != 0 && hard <= most {
			continue
		}
		names := namesOf(account, tier)
		has := "no hard cap"
		if hard != 0 {
			has = "a hard cap of " + size(hard)
		}
		lines = append(lines, fmt.Sprintf("%s: %s, and node %s has %s free: when it is full the "+
			"kernel takes other nodes, and the hard cap of %s does not count that; %s%s_HARD of "+
			"at most %s keeps it", andWords(names), has, nodeWords(nodes), size(room),
			andWords(capped), prefix, names[len(names)-1], size(most)))
	}
	return lines
}

// cappedBeside lists the tiers with a hard cap whose memory is not that of tier.
func cappedBeside(s *config.Settings, account [4]uintptr, tier int) (names []string) {
	for i, name := range tierNames {
		if account[i] != account[tier] && s.Tiers[i].Hard != 0 {
			names = append(names, name)
		}
	}
	return names
}

// namesOf lists the tiers with the memory of tier.
func namesOf(account [4]uintptr, tier int) (names []string) {
	for i, name := range tierNames {
		if account[i] == account[tier] {
			names = append(names, name)
		}
	}
	return names
}

// overflowInReport tells for each memory with a cap how much of other tiers is on its nodes.
func overflowInReport(r *report) (lines []string) {
	account := accountsInReport(r)
	for i, t := range r.tiers() {
		if int(account[i]) != i || t.CapacitySoft|t.CapacityHard == 0 {
			continue
		}
		for k, other := range r.tiers() {
			strays := uint64(0)
			for _, node := range t.Nodes {
				strays += other.BytesPerNode[strconv.Itoa(node)]
			}
			if account[k] == account[i] || strays == 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s of %s on node %s, where the cap of %s does not "+
				"count: node %s was full, or the kernel has moved memory",
				estimate(strays, r.BytesPerNodeSampled), tierNames[k], nodeWords(t.Nodes),
				andWords(namesOf(account, i)), nodeWords(other.Nodes)))
		}
	}
	return lines
}

// accountsInReport returns for each tier the first tier with the same memory.
func accountsInReport(r *report) [4]uintptr {
	account := (&numa.Map{Simulated: true}).Accounts()
	for tier, t := range r.tiers() {
		for _, other := range t.SameMemory {
			if i := slices.Index(tierNames[:tier], strings.ToUpper(other)); i >= 0 {
				account[tier] = min(account[tier], account[i])
			}
		}
	}
	return account
}

// pastNodes names tiers that were charged with more than their nodes have, as topology t says. The
// report's own nodes are those at the end, when the memory may have been freed.
func pastNodes(r *report, t *numa.Topology) (lines []string) {
	account := accountsInReport(r)
	for i, tier := range r.tiers() {
		capped := false // another memory has a hard cap
		for k, other := range r.tiers() {
			capped = capped || account[k] != account[i] && other.CapacityHard != 0
		}
		if has := memoryOn(t, tier.Nodes); capped && has != 0 && tier.BytesPeak > has {
			lines = append(lines, fmt.Sprintf("%s had up to %s, and node %s has %s: the rest was "+
				"on other nodes, if it was used, and no cap counts it there", tierNames[i],
				size(tier.BytesPeak), nodeWords(tier.Nodes), size(has)))
		}
	}
	return lines
}

// sameMemory names each set of tiers on the same nodes, and the caps that hold for all of them.
// caps describes the caps of a tier's memory.
func sameMemory(account [4]uintptr, nodes func(tier int) []int,
	caps func(tier int) []string) []string {
	var lines []string
	for first := range tierNames {
		var names, held []string
		for tier, name := range tierNames {
			if account[tier] == uintptr(first) {
				names = append(names, name)
				held = append(held, caps(tier)...)
			}
		}
		if len(names) < 2 {
			continue
		}
		line := andWords(names) + " are the same memory (node " + nodeWords(nodes(first)) + ")"
		if held = slices.Compact(held); len(held) > 0 {
			line += "; " + andWords(held) + english.PluralWord(len(held), " holds", " hold") +
				" for " + english.PluralWord(len(names)-1, "both", "all")
		}
		lines = append(lines, line)
	}
	return lines
}

// andWords joins words as "a, b and c".
func andWords(words []string) string { return english.WordSeries(words, "and") }

// sameInPlan is sameMemory for the tiers that the library would make, with the variables in effect.
func sameInPlan(env environ, c *configCheck) []string {
	account := c.places.Accounts()
	return sameMemory(account,
		func(tier int) []int { return nodeList(c.places.Tier[tier].Nodes) },
		func(tier int) (list []string) {
			for _, kind := range []string{"_SOFT", "_HARD"} {
				name := prefix + tierNames[tier] + kind
				value, set := env.get(name)
				if set && !slices.ContainsFunc(c.mistakes,
					func(m mistake) bool { return m.name == name }) {
					list = append(list, name+"="+printable(value))
				}
			}
			return list
		})
}

// sameInReport is sameMemory for the tiers of a report.
func sameInReport(r *report) []string {
	account := accountsInReport(r)
	return sameMemory(account,
		func(tier int) []int { return r.tiers()[tier].Nodes },
		func(tier int) (list []string) {
			if tier != int(account[tier]) {
				return nil // the first tier on the nodes has them
			}
			t := r.tiers()[tier]
			if t.CapacitySoft != 0 {
				list = append(list, "the soft cap of "+size(t.CapacitySoft))
			}
			if t.CapacityHard != 0 {
				list = append(list, "the hard cap of "+size(t.CapacityHard))
			}
			return list
		})
}

func writeLines(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}
