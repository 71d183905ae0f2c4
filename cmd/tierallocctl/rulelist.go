package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/tiers"
)

// ruleLines lists the rules, and the sizes that they make slower.
func ruleLines(s *config.Settings) []string {
	if s.Rules.Count == 0 {
		return nil
	}
	var lines []string
	for i := range s.Rules.Count {
		line := fmt.Sprintf("%d. %s", i+1, ruleWords(&s.Rules, i))
		if by := hiddenBy(&s.Rules, i); by >= 0 {
			line += fmt.Sprintf(" (never reached: rule %d comes first)", by+1)
		}
		lines = append(lines, line)
	}
	return append(lines, slowLines(s)...)
}

// ruleWords writes a rule as it was parsed.
func ruleWords(l *config.RuleList, i uintptr) string {
	r := &l.Rule[i]
	var parts []string
	if r.Min != 0 || r.Max != math.MaxUint64 {
		parts = append(parts, "size "+rangeWords(r.Min, r.Max))
	}
	for _, c := range []struct {
		what string
		glob config.Glob
	}{{"thread", r.Thread}, {"program", r.Program}, {"library", r.Lib}} {
		if c.glob.Set() {
			parts = append(parts, c.what+" "+printable(pattern(l, c.glob)))
		}
	}
	if r.Site[0].Name.Set() {
		parts = append(parts, "site "+printable(siteWords(l, r)))
	}
	return strings.Join(parts, ", ") + ": " + config.HintWord(r.Hint) + ", to " +
		tierNames[tiers.Home(uintptr(r.Hint))]
}

// rangeWords writes a range of sizes.
func rangeWords(from, to uint64) string {
	switch {
	case to == math.MaxUint64:
		return "from " + exact(from)
	case from == to:
		return exact(from)
	case from == 0:
		return "to " + exact(to)
	}
	return exact(from) + " to " + exact(to)
}

// exact writes a size without rounding, in the largest unit that it is a multiple of.
func exact(n uint64) string {
	unit := 0
	for ; unit < 4 && n != 0 && n%1024 == 0; unit++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// pattern returns a pattern's text.
func pattern(l *config.RuleList, g config.Glob) string {
	addr, n := l.Pattern(g)
	return string(unsafe.Slice((*byte)(raw.Ptr(addr)), n))
}

// siteWords writes the callers of a rule's site, that of malloc first.
func siteWords(l *config.RuleList, r *config.Rule) string {
	var callers []string
	for i := range r.Site {
		c := &r.Site[i]
		if !c.Name.Set() {
			break
		}
		words := pattern(l, c.Name)
		if !c.Function() {
			words += fmt.Sprintf("+%#x", c.Offset)
		}
		callers = append(callers, words)
	}
	return strings.Join(callers, " < ")
}

// hiddenBy returns the number of an earlier rule that matches whenever rule i does, or -1.
func hiddenBy(l *config.RuleList, i uintptr) int {
	r := &l.Rule[i]
	wider := func(a, b config.Glob) bool {
		return !a.Set() || b.Set() && covers(pattern(l, a), pattern(l, b))
	}
	widerSite := func(e, r *config.Rule) bool {
		for d := range e.Site {
			a, b := &e.Site[d], &r.Site[d]
			if !wider(a.Name, b.Name) || a.Name.Set() && a.Offset != b.Offset ||
				a.Function() && pattern(l, a.Name) != pattern(l, b.Name) {
				return false
			}
		}
		return true
	}
	for k := range i {
		e := &l.Rule[k]
		if e.Min <= r.Min && r.Max <= e.Max && wider(e.Thread, r.Thread) &&
			wider(e.Program, r.Program) && wider(e.Lib, r.Lib) && widerSite(e, r) {
			return int(k)
		}
	}
	return -1
}

// covers reports whether pattern a matches every name that pattern b does. It matches a against the
// text of b, where only a * of a matches a * of b.
func covers(a, b string) bool {
	i, star, from := 0, -1, 0 // the last * of a, and where in b what follows it was tried last
	for k := 0; k < len(b); {
		switch {
		case i < len(a) && a[i] == '*':
			star, from = i, k
			i++
		case i < len(a) && (a[i] == b[k] || a[i] == '?' && b[k] != '*'):
			i++
			k++
		case star >= 0:
			from++
			i, k = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(a[i:], "*") == ""
}

// threadNameMax is the length of the longest name that the kernel keeps of a thread.
const threadNameMax = 15

// idleRules names rules that no request can match.
func idleRules(l *config.RuleList) (lines []string) {
	for i := range l.Count {
		rule := fmt.Sprintf("TA_RULES: rule %d (%s) ", i+1, ruleWords(l, i))
		if by := hiddenBy(l, i); by >= 0 {
			lines = append(lines, fmt.Sprintf("%sis never reached: rule %d comes first and "+
				"matches the same requests", rule, by+1))
		}
		if g := l.Rule[i].Thread; g.Set() {
			if n := len(strings.ReplaceAll(pattern(l, g), "*", "")); n > threadNameMax {
				lines = append(lines, fmt.Sprintf("%smatches no thread: the pattern needs %d "+
					"characters, and the kernel's names of threads have at most %d", rule, n,
					threadNameMax))
			}
		}
	}
	return lines
}

// audience is a set of programs and threads for which the rules are the same.
type audience struct {
	program, thread string // patterns, which are names that they match; "": any other name
}

func (a audience) String() string {
	words := "in all other threads"
	if a.thread != "" {
		words = "in threads " + a.thread
	}
	if a.program != "" {
		words += " of programs " + a.program
	}
	return printable(words)
}

// audiences lists the audiences that the rules distinguish.
func audiences(l *config.RuleList) []audience {
	programs, threads := []string{""}, []string{""}
	add := func(list []string, g config.Glob) []string {
		if !g.Set() || slices.Contains(list, pattern(l, g)) {
			return list
		}
		return append(list, pattern(l, g))
	}
	for i := range l.Count {
		programs = add(programs, l.Rule[i].Program)
		threads = add(threads, l.Rule[i].Thread)
	}
	var list []audience
	for _, p := range programs {
		for _, t := range threads {
			list = append(list, audience{p, t})
		}
	}
	return list
}

// slowLines lists the sizes for which malloc takes the slow path because of the rules.
func slowLines(s *config.Settings) []string {
	var lines []string
	general := ""
	all := audiences(&s.Rules)
	for _, a := range all {
		sizes := "none"
		if list := slowSizes(s, a); len(list) > 0 {
			sizes = strings.Join(list, "; ")
		}
		if (a == audience{}) {
			general = sizes
		} else if sizes == general {
			continue
		}
		where := ""
		if len(all) > 1 {
			where = " " + a.String()
		}
		lines = append(lines, "sizes that the rules keep off the fast path"+where+": "+sizes)
	}
	return append(lines, "blocks above "+exact(sizeclass.MaxSize)+" are never on it; all others "+
		"always")
}

// slowSizes lists the ranges of sizes, by whole size classes, that an audience's rules keep off the
// fast path. It applies the library's own test: see Heap.rule in package alloc.
func slowSizes(s *config.Settings, a audience) []string {
	var pin runtime.Pinner
	defer pin.Unpin()
	account := (&numa.Map{Simulated: true}).Accounts()
	tiers.Setup(s, &account, nameOf(&pin, a.program))
	set := tiers.ThreadSet(nameOf(&pin, a.thread))
	base := tiers.Base(set, uintptr(s.DefaultHint))
	var list []string
	from, lo := uintptr(0), uintptr(0)
	open := false
	for c := uintptr(0); c <= sizeclass.Count; c++ {
		slow := false
		hi := lo
		if c < sizeclass.Count {
			hi = sizeclass.Size(c)
			hint, same := tiers.Uniform(set, lo, hi)
			if hint == tiers.NoHint {
				hint = uintptr(s.DefaultHint)
			}
			slow = !same || hint != base
		}
		if slow && !open {
			from = lo
		}
		if !slow && open {
			list = append(list, exact(uint64(from))+" to "+exact(uint64(lo-1)))
		}
		open = slow
		lo = hi + 1
	}
	return list
}

// nameOf returns the address of a name as a C string, 0 for none, valid while it is pinned.
func nameOf(pin *runtime.Pinner, name string) uintptr {
	if name == "" {
		return 0
	}
	return cString(pin, name)
}
