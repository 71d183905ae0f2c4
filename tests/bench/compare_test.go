package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"tieralloc/internal/testlib"
)

// allocator is one contender: a library to preload (none: glibc) and variables to set.
type allocator struct {
	name, library string
	env           []string
}

const peersDir = "/usr/lib/x86_64-linux-gnu"

var peers = flag.String("peers", "",
	"more `LIBRARIES` to compare with: NAME=PATH, with commas between")

// allocators returns glibc, this library, the peers that are installed, and those that -peers
// names.
func allocators(b *testing.B) []allocator { return append(installed(b), named(b)...) }

// installed returns glibc, this library, and the peers that are installed.
func installed(b *testing.B) []allocator {
	out := []allocator{{name: "glibc"}, {name: "tieralloc", library: testlib.Lib(b)}}
	for _, p := range []allocator{
		{name: "mimalloc", library: "libmimalloc.so.2"},
		{name: "jemalloc", library: "libjemalloc.so.2"},
		{name: "tcmalloc", library: "libtcmalloc_minimal.so.4"},
	} {
		p.library = filepath.Join(peersDir, p.library)
		if _, err := os.Stat(p.library); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func named(b *testing.B) (out []allocator) {
	if *peers == "" {
		return nil
	}
	for peer := range strings.SplitSeq(*peers, ",") {
		name, path, _ := strings.Cut(peer, "=")
		if _, err := os.Stat(path); err != nil || name == "" {
			b.Fatalf("-peers: %q: NAME=PATH of a library is accepted", peer)
		}
		out = append(out, allocator{name: name, library: path})
	}
	return out
}

// with is this library under a name of its own, with variables set.
func with(b *testing.B, name string, env ...string) allocator {
	return allocator{name, testlib.Lib(b), env}
}

// environ is the environment without variables of this library, which would hold for
// all contenders.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s,
			"TA_")
	})
}

// run runs a program under the allocator and returns its standard output. What the
// library says of a variable fails the benchmark: it would be measured without it.
func (a allocator) run(b *testing.B, args ...string) string {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(environ(), "LD_PRELOAD="+a.library), a.env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %q: %v\n%s", a.name, args, err, stderr.String())
	}
	// The loader goes on without a library: that would be glibc's time.
	if text := stderr.String(); strings.Contains(text, "cannot be preloaded") ||
		strings.Contains(text, "tieralloc:") {
		b.Fatalf("%s: %s", a.name, text)
	}
	return string(out)
}

// number runs a program that prints one number.
func (a allocator) number(b *testing.B, args ...string) float64 {
	b.Helper()
	var v float64
	out := a.run(b, args...)
	if _, err := fmt.Sscan(out, &v); err != nil {
		b.Fatalf("%s: %q printed %q", a.name, args, out)
	}
	return v
}

// contest is who is compared and how. The ratios are to all[0]; all[1] is the one in
// question, of which the table also has the figures themselves.
type contest struct {
	all    []allocator
	unit   string
	rounds int
	digits int // of a ratio, behind the point
}

// row is one measurement of all contenders.
type row struct {
	name    string
	samples [][]float64 // by contender, by round
}

// measure lets the contenders take turns. Who goes first changes from round to
// round.
func (c contest) measure(name string, once func(allocator) float64) row {
	r := row{name, make([][]float64, len(c.all))}
	for i := range r.samples {
		r.samples[i] = make([]float64, c.rounds)
	}
	for i := range c.rounds {
		for k := range c.all {
			k = (k + i) % len(c.all)
			r.samples[k][i] = once(c.all[k])
		}
	}
	return r
}

// quantile of the values, which it sorts a copy of.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(q*float64(len(s)-1)+0.5)]
}

// ratios to the first contender, round by round.
func (r row) ratios(k int) []float64 {
	out := make([]float64, len(r.samples[k]))
	for i := range out {
		out[i] = r.samples[k][i] / r.samples[0][i]
	}
	return out
}

// report gives the row to the benchmark's line of output.
func (c contest) report(b *testing.B, r row) {
	first := strings.ReplaceAll(c.all[0].name, " ", "-")
	b.ReportMetric(0, "ns/op") // the time of the whole comparison says nothing
	b.ReportMetric(quantile(r.samples[0], 0.5), first+"-"+c.unit)
	b.ReportMetric(quantile(r.samples[1], 0.5), c.unit)
	b.ReportMetric(quantile(r.ratios(1), 0.5), "x-"+first)
}

// table prints rows: the medians of the first two contenders, and for every one but the
// first the median ratio to it with the range that holds the middle half of the rounds.
func (c contest) table(b *testing.B, rows []row) {
	if len(rows) == 0 {
		return
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\t%s, %s\t%s, %[3]s\t", b.Name(), c.all[0].name, c.unit, c.all[1].name)
	for _, a := range c.all[1:] {
		fmt.Fprintf(w, "%s, x %s\t", a.name, c.all[0].name)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t", r.name, quantile(r.samples[0], 0.5),
			quantile(r.samples[1], 0.5))
		for k := range c.all[1:] {
			x := r.ratios(k + 1)
			fmt.Fprintf(w, "%.[1]*[2]f (%.[1]*[3]f–%.[1]*[4]f)\t", c.digits, quantile(x, 0.5),
				quantile(x, 0.25), quantile(x, 0.75))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Printf("\n%s\n", text.String())
}

// run measures each case as a sub-benchmark and prints them as one table. A
// measurement decides itself how long it takes, so b.N does not matter; when the
// framework asks again, the answer is the same.
func (c contest) run(b *testing.B, cases []string,
	once func(b *testing.B, a allocator, name string) float64) {
	var rows []row
	for _, name := range cases {
		var r row
		if !b.Run(name, func(b *testing.B) {
			if r.samples == nil {
				r = c.measure(name, func(a allocator) float64 { return once(b, a, name) })
			}
			c.report(b, r)
		}) || r.samples == nil { // failed, or not asked for
			continue
		}
		rows = append(rows, r)
	}
	c.table(b, rows)
}

// compare holds a contest of all allocators.
func compare(b *testing.B, unit string, rounds int, cases []string,
	once func(b *testing.B, a allocator, name string) float64) {
	contest{allocators(b), unit, rounds, 2}.run(b, cases, once)
}
