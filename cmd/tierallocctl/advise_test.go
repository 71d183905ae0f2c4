package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// siteOf makes a site of equal cells.
func siteOf(callers string, bytes, touches float64) *useSite {
	s := &useSite{callers: strings.Split(callers, "<"), smallest: 70000}
	for range 4 {
		s.cells = append(s.cells, useCell{bytes / 4, touches / 4})
	}
	s.useCell = sumOf(s.cells)
	return s
}

func hints(p *placement) (list []string) {
	for _, s := range p.sites {
		list = append(list, strings.Join(s.callers, "<")+":"+s.hint)
	}
	return list
}

func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		fast float64
		want string
	}{
		{0, "a:hot b:cold c:cold d:cold"}, // 90%
		{100, "a:hot b:cold c:cold d:cold"},
		{95, "a:hot b:cold c:cold d:cold"}, // within the error of the size
		{80, "a: b:cold c:cold d:cold"},
		{5, "a:cold b:cold c:cold d:cold"},
		{150, "a:hot b:cold c:cold d:cold"},
		{300, "a:hot b:hot c:cold d:cold"},
		{1e6, "a:hot b:hot c:hot d:hot"},
	} {
		p := newPlacement([]*useSite{siteOf("d", 1000, 1), siteOf("c", 500, 10),
			siteOf("a", 100, 900), siteOf("b", 100, 89)}, 0, c.fast)
		if got := strings.Join(hints(p), " "); got != c.want {
			t.Errorf("%g bytes: %s, not %s", c.fast, got, c.want)
		}
	}
}

// TestPartialSite: the site that fits in part is cold if that part would serve little.
func TestPartialSite(t *testing.T) {
	for fast, want := range map[float64]string{120: "a:hot b:cold", 150: "a:hot b:",
		195: "a:hot b:hot"} {
		p := newPlacement([]*useSite{siteOf("a", 100, 900), siteOf("b", 100, 300)}, 0, fast)
		if got := strings.Join(hints(p), " "); got != want {
			t.Errorf("%g bytes: %s, not %s", fast, got, want)
		}
	}
}

// TestServed: for all sizes rules serve no more than right hints and no less than chance.
func TestServed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var sites []*useSite
		for i := range 1 + r.IntN(20) {
			s := &useSite{callers: []string{fmt.Sprint(i)}}
			for range 1 + r.IntN(5) {
				bytes, touches := 1+1000*r.Float64(), 1+math.Exp(9*r.Float64())
				s.cells = append(s.cells, useCell{bytes, touches})
			}
			s.useCell = sumOf(s.cells)
			sites = append(sites, s)
		}
		p := newPlacement(sites, 0, 0)
		if got := p.at(p.fast).rules; math.Abs(got-servedByDefault) > 1e-6 {
			t.Fatalf("the default serves %g", got)
		}
		last := serving{}
		for part := 0.0; part <= 1.2; part += 0.05 {
			s := p.at(part * p.total.bytes)
			if s.rules > s.best+1e-9 || s.evenly > s.rules+1e-9 || s.rules < last.rules-1e-9 ||
				s.best < last.best-1e-9 || s.best > 1+1e-9 {
				t.Fatalf("%g: %+v after %+v", part, s, last)
			}
			last = s
		}
	}
}

func TestVerdict(t *testing.T) {
	mixed := siteOf("a", 1000, 1000)
	mixed.cells = []useCell{{200, 900}, {800, 100}}
	for _, c := range []struct {
		sites []*useSite
		small float64
		want  string
	}{
		{[]*useSite{siteOf("a", 200, 900), siteOf("b", 800, 100)}, 1000, ""},
		{[]*useSite{siteOf("a", 200, 900), siteOf("b", 800, 100)}, 3072,
			"3.0 KiB of 4.0 KiB are in blocks below 4 KiB"},
		{[]*useSite{siteOf("a", 500, 500), siteOf("b", 500, 500)}, 0, "the memory is used evenly"},
		{[]*useSite{mixed}, 0, "call sites do not tell"},
	} {
		got := newPlacement(c.sites, c.small, 200).verdict()
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// TestRulesFor: rules name as few callers as they must.
func TestRulesFor(t *testing.T) {
	for _, c := range []struct{ sites, want string }{
		{"a<m:hot b<m:cold", "a:hot b:cold"},
		{"a<b:hot a<c:hot a<d<e:hot", "a:hot"},
		{"a<b:hot a<c:cold", "a<b:hot a<c:cold"},
		{"a<b<x:hot a<b<y:cold a<c<x:cold a<c<y:cold", "a<b<x:hot a<b<y:cold a<c:cold"},
		{"a<b:hot a<c: d:", "a<b:hot"},
		{"a:", ""},
		// A stack that ends where another goes on cannot be told from it.
		{"a:hot a<b:cold", "a<b:cold"},
	} {
		var sites []*useSite
		for _, text := range strings.Fields(c.sites) {
			callers, hint, _ := strings.Cut(text, ":")
			s := siteOf(callers, 1, 1)
			s.hint = hint
			sites = append(sites, s)
		}
		var want []string
		for _, w := range strings.Fields(c.want) {
			callers, hint, _ := strings.Cut(w, ":")
			want = append(want, "site="+callers+",size>=65536:"+hint)
		}
		if got := rulesFor(sites); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", c.sites, got, want)
		}
	}
}

func TestFastBytes(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "512M": 512 << 20, "8g": 8 << 30, "1.5K": 1536,
		"4096": 4096, "2GiB": 2 << 30, "1T": 1 << 40} {
		if got, err := fastBytes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "x", "-1", "8Q", "M", "1e400"} {
		if got, err := fastBytes(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// TestRuled: sites that hardly matter together get no rule, one that only its touches or its bytes
// make matter does.
func TestRuled(t *testing.T) {
	p := newPlacement([]*useSite{siteOf("big", 1000, 0), siteOf("hot", 1, 900), siteOf("x", 4, 1),
		siteOf("y", 4, 4), siteOf("z", 3, 2), siteOf("a", 100, 100)}, 0, 0)
	var names []string
	for _, s := range p.ruled {
		names = append(names, s.callers[0])
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "a big hot y" {
		t.Errorf("rules for %s", got)
	}
}
