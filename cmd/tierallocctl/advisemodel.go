package main

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"tieralloc/internal/config"
)

// A useCell is memory of one call stack with one class of heat. Values are means over the time in
// which heat was measured.
type useCell struct{ bytes, touches float64 }

// A useSite is memory with the same callers of malloc, as far as a rule can name them.
//
//	bytes, touches = Σ cells
type useSite struct {
	callers  []string // as a rule names them, the innermost first; at least one
	function string   // the names of the callers, for people
	smallest uint64   // block
	cells    []useCell
	useCell
	hint string // "" leaves the site to the default hint
}

// density is the touches of a byte.
func (c useCell) density() float64 {
	if c.bytes == 0 {
		return 0
	}
	return c.touches / c.bytes
}

func sumOf(cells []useCell) (sum useCell) {
	for _, c := range cells {
		sum.bytes += c.bytes
		sum.touches += c.touches
	}
	return sum
}

// byDensity sorts the hottest first.
func byDensity(a, b useCell) int { return cmp.Compare(b.density(), a.density()) }

// served is how many touches the hottest bytes of the cells serve, which are sorted by density. Of
// a cell that does not fit, a part serves its part.
func served(sorted []useCell, bytes float64) (touches float64) {
	for _, c := range sorted {
		part := min(1, bytes/max(c.bytes, 1))
		touches += part * c.touches
		if bytes -= c.bytes; bytes <= 0 {
			break
		}
	}
	return touches
}

// needed is how many of the hottest bytes serve a share of the touches.
func needed(sorted []useCell, share float64) (bytes float64) {
	left := share * sumOf(sorted).touches
	for _, c := range sorted {
		if c.touches >= left {
			return bytes + c.bytes*left/max(c.touches, 1)
		}
		left -= c.touches
		bytes += c.bytes
	}
	return bytes
}

// A placement says which sites belong into fast memory.
type placement struct {
	sites []*useSite // the hottest first
	ruled []*useSite // those that rules are written for
	total useCell
	small float64 // bytes of blocks whose heat is not known
	fast  float64 // bytes of fast memory

	bySite []useCell // a cell for each site, the hottest first
	byCell []useCell // all cells, the hottest first: no placement serves more
}

// servedByDefault is the share of touches for which fast memory is meant if its size is not given.
const servedByDefault = 0.9

// newPlacement decides for fast bytes of fast memory, or for 0 for as many as serve servedByDefault
// of the touches. The hottest sites that fit are hot, and what does not fit is cold. The site that
// fits in part is neither, or cold if little is lost: where FAST and NORMAL are the same memory, a
// site that is neither takes the room of hot sites that allocate later.
func newPlacement(sites []*useSite, small, fast float64) *placement {
	p := &placement{sites: slices.Clone(sites), small: small, fast: fast}
	slices.SortStableFunc(p.sites, func(a, b *useSite) int {
		return byDensity(a.useCell, b.useCell)
	})
	for _, s := range p.sites {
		p.bySite = append(p.bySite, s.useCell)
		p.byCell = append(p.byCell, s.cells...)
	}
	slices.SortFunc(p.byCell, byDensity)
	p.total = sumOf(p.bySite)
	if fast == 0 {
		p.fast = needed(p.bySite, servedByDefault)
	}
	left, hot := p.fast, 0.0
	for _, s := range p.sites {
		part := max(left, 0) / s.bytes
		switch {
		case s.bytes <= left*fitTolerance:
			s.hint = "hot"
			hot += s.touches
		case part < 1-1/fitTolerance || part*s.touches < partWorth*hot:
			s.hint = "cold"
		}
		left -= s.bytes
	}
	least := p.leastSites()
	for _, s := range p.sites {
		if slices.Contains(least, s) {
			s.hint = ""
		} else {
			p.ruled = append(p.ruled, s)
		}
	}
	return p
}

// fitTolerance is how much larger than the room for it a site may be and count as fitting, because
// its size is an estimate.
const fitTolerance = 1.1

// partWorth is how much the site that fits in part would have to add to what hot sites serve.
const partWorth = 0.1

// A serving is what part of the touches fast memory of a size serves.
type serving struct{ bytes, rules, best, evenly float64 }

// at is the shares of fast memory of a size.
func (p *placement) at(bytes float64) serving {
	touches := max(p.total.touches, 1)
	return serving{bytes, served(p.bySite, bytes) / touches, served(p.byCell, bytes) / touches,
		min(1, bytes/max(p.total.bytes, 1))}
}

// curve is the shares for sizes up to all of the memory, and for the size decided for.
func (p *placement) curve() (curve []serving) {
	for _, part := range []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.75} {
		curve = append(curve, p.at(part*p.total.bytes))
	}
	curve = append(curve, p.at(p.fast))
	slices.SortFunc(curve, func(a, b serving) int { return cmp.Compare(a.bytes, b.bytes) })
	return curve
}

// Rules must win this much of what the best placement wins, and that this much of all touches:
// less is within the error of measurement.
const (
	leastWin  = 0.05
	leastPart = 0.5
)

// mostlyMeasured reports whether the heat of most of the memory is known.
func (p *placement) mostlyMeasured() bool { return p.small <= p.total.bytes }

// verdict is "" if rules by site are worth having, or why not.
func (p *placement) verdict() string {
	s := p.at(p.fast)
	switch {
	case !p.mostlyMeasured():
		return fmt.Sprintf("%s of %s are in blocks below 4 KiB, whose heat is not known. "+
			"TA_ON_SOFTCAP=follow moves memory by its use", size(uint64(p.small)),
			size(uint64(p.small+p.total.bytes)))
	case s.best-s.evenly < leastWin:
		return "the memory is used evenly: no placement serves many more accesses than any other"
	case s.rules-s.evenly < leastPart*(s.best-s.evenly):
		return "call sites do not tell hot from cold memory: blocks of the same site are used " +
			"differently. TA_ON_SOFTCAP=follow moves memory by its use"
	}
	return ""
}

// negligible is the part of all bytes, and of all touches, that sites without a rule may have
// together. Such a rule would cost each request of its size more than it serves.
const negligible = 0.01

// leastSites is the sites that are not worth a rule.
func (p *placement) leastSites() []*useSite {
	weight := func(s *useSite) float64 {
		return max(s.bytes/max(p.total.bytes, 1), s.touches/max(p.total.touches, 1))
	}
	sites := slices.Clone(p.sites)
	slices.SortStableFunc(sites, func(a, b *useSite) int {
		return cmp.Compare(weight(a), weight(b))
	})
	sum := 0.0
	for i, s := range sites {
		if sum += weight(s); sum > negligible {
			return sites[:i]
		}
	}
	return sites
}

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
func floorPower(n uint64) uint64 { return 1 << max(0, bits.Len64(n)-1) }

// tooManyRules reports whether TA_RULES cannot hold the rules.
func tooManyRules(rules []string) bool {
	names := 0
	for _, r := range rules {
		names += len(r) // more than its patterns
	}
	return len(rules) > config.RuleMax || names >= config.TextSize
}
