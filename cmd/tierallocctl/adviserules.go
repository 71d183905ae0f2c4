package main

import (
	"fmt"
	"slices"
	"strings"

	"tieralloc/internal/config"
)

// A siteNode is the sites that have their first callers in common.
type siteNode struct {
	callers  []string
	children []*siteNode // by the next caller
	sites    []*useSite
}

// rulesFor writes TA_RULES for sites with hints. A rule names as few callers as tell a site from
// those with other hints.
func rulesFor(sites []*useSite) (rules []string) {
	root := &siteNode{}
	for _, s := range sites {
		root.add(s)
	}
	for _, n := range root.children {
		rules = n.rules(rules)
	}
	return rules
}

func (n *siteNode) add(s *useSite) {
	n.sites = append(n.sites, s)
	depth := len(n.callers)
	if depth == len(s.callers) {
		return
	}
	i := slices.IndexFunc(n.children, func(c *siteNode) bool {
		return c.callers[depth] == s.callers[depth]
	})
	if i < 0 {
		i = len(n.children)
		n.children = append(n.children, &siteNode{callers: s.callers[:depth+1]})
	}
	n.children[i].add(s)
}

// rules appends the rules for the node's sites. Rules that name more callers come first.
func (n *siteNode) rules(rules []string) []string {
	hint, smallest, same := n.sites[0].hint, n.sites[0].smallest, true
	for _, s := range n.sites {
		same = same && s.hint == hint
		smallest = min(smallest, s.smallest)
	}
	if !same {
		for _, c := range n.children {
			rules = c.rules(rules)
		}
		return rules
	}
	if hint == "" {
		return rules
	}
	return append(rules, fmt.Sprintf("site=%s,size>=%d:%s", strings.Join(n.callers, "<"),
		floorPower(smallest), hint))
}

// floorPower is the largest power of two up to n, or 1. Requests of other sizes keep the short path
// of malloc.
func floorPower(n uint64) uint64 {
	p := uint64(1)
	for p <= n/2 {
		p *= 2
	}
	return p
}

// tooManyRules reports whether TA_RULES cannot hold the rules.
func tooManyRules(rules []string) bool {
	names := 0
	for _, r := range rules {
		names += len(r) // more than its patterns
	}
	return len(rules) > config.RuleMax || names >= config.TextSize
}
