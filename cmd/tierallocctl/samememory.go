package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/dustin/go-humanize/english"
)

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
