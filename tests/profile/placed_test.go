package profile

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// depths is how many callers of malloc a site of placed.c is told by.
var depths = map[string]int{"first": 1, "zero": 1, "new": 1, "second": 2, "align": 2, "third": 3,
	"fourth": 4}

// TestPlaced takes the addresses of call sites from a profile, makes rules of them, and finds each
// site's blocks in the tier that its rule names: for one to four callers, in threads and signal
// handlers, wherever the program is loaded.
func TestPlaced(t *testing.T) {
	for _, flags := range [][]string{{"-O1"}, {"-O2", "-no-pie"}, {"-O0"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			program := testlib.CC(t, "placed.c", flags...)
			p, _ := run(t, "1K", program)
			rules := map[string]string{}
			for _, s := range p.Sample {
				names := p.stack(s)
				for depth := 1; depth <= min(4, len(names)); depth++ {
					name, ok := strings.CutPrefix(names[depth-1], "site_")
					what, hint, _ := strings.Cut(name, "_")
					if !ok || hint == "none" || depths[what] != depth {
						continue
					}
					var callers []string
					for _, l := range s.Location[:depth] {
						callers = append(callers, fmt.Sprintf("%s+%#x",
							filepath.Base(l.Mapping.File), p.linked(l)))
					}
					rules["site="+strings.Join(callers, "<")+":"+hint] = name
				}
			}
			if len(rules) != 14 {
				t.Fatalf("%d sites in the profile: %v", len(rules), rules)
			}
			check(t, program, keys(rules), placedTier)
		})
	}
}

// TestPlacedNames names the functions of a program that exports them.
func TestPlacedNames(t *testing.T) {
	program := testlib.CC(t, "placed.c", "-O1", "-rdynamic", "-Dstatic=")
	var rules []string
	for what, depth := range depths {
		through := []string{"xmalloc", "xnew", "xmake"}[:depth-1]
		if what == "align" {
			through = []string{"xalign"}
		}
		for _, hint := range []string{"hot", "cold"} {
			callers := append(through[:len(through):len(through)], "site_"+what+"_"+hint)
			rules = append(rules, "site="+strings.Join(callers, " < ")+":"+hint)
		}
	}
	check(t, program, rules, placedTier)
	// One caller, whoever calls it; with other conditions.
	check(t, program, []string{"site=xmalloc,size>=3100:hot", "site=xnew:cold",
		"site=xmalloc<xnew<xmake<main:hot", "site=xmalloc,thread=placed,lib=placed:cold"},
		func(name string) int {
			if depths[strings.Split(name, "_")[0]] >= 2 && !strings.HasPrefix(name, "align") {
				return 2
			}
			return 1
		})
}

// placedTier is the tier that the name of a site asks for.
func placedTier(name string) int {
	switch {
	case strings.HasSuffix(name, "_hot"):
		return 0
	case strings.HasSuffix(name, "_cold"):
		return 2
	}
	return 1
}

// check runs the program with rules, and compares the tiers of the blocks.
func check(t *testing.T, program string, rules []string, tier func(site string) int) {
	t.Helper()
	res := testlib.Run(t, testlib.Cmd{Args: []string{program}, Preload: true,
		Env: []string{"TA_RULES=" + strings.Join(rules, ";")}})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("ended with %d, standard error %q", res.Status, res.Stderr)
	}
	lines := 0
	for line := range strings.Lines(res.Stdout) {
		var where, name string
		var tiers [3]int
		if _, err := fmt.Sscan(line, &where, &name, &tiers[0], &tiers[1], &tiers[2]); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if tiers[tier(name)] != 40 {
			t.Errorf("%s: %s has %v blocks by tier, not 40 in tier %d", where, name, tiers,
				tier(name))
		}
		lines++
	}
	if lines != 4*18 {
		t.Errorf("%d lines", lines)
	}
}

func keys(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}
