package bench

import (
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

// allocator is one contender; the one without a library is glibc.
type allocator struct{ name, library string }

const peersDir = "/usr/lib/x86_64-linux-gnu"

// allocators returns glibc, this library, and the peers that are installed.
func allocators(b *testing.B) []allocator {
	out := []allocator{{"glibc", ""}, {"tieralloc", testlib.Lib(b)}}
	for _, p := range []allocator{
		{"mimalloc", "libmimalloc.so.2"}, {"jemalloc", "libjemalloc.so.2"}, {"tcmalloc", "libtcmalloc_minimal.so.4"},
	} {
		p.library = filepath.Join(peersDir, p.library)
		if _, err := os.Stat(p.library); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// run runs a program under the allocator and returns its standard output.
func (a allocator) run(b *testing.B, args ...string) string {
	b.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+a.library)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %q: %v\n%s", a.name, args, err, stderr.String())
	}
	if strings.Contains(stderr.String(), "cannot be preloaded") { // the loader goes on without it: that would be glibc's time
		b.Fatalf("%s: %s", a.name, stderr.String())
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

// row is one measurement of all contenders.
type row struct {
	name    string
	samples [][]float64 // by contender, by round
}

// measure lets the contenders take turns. Who goes first changes from round to
// round.
func measure(name string, all []allocator, rounds int, once func(allocator) float64) row {
	r := row{name, make([][]float64, len(all))}
	for i := range r.samples {
		r.samples[i] = make([]float64, rounds)
	}
	for i := range rounds {
		for k := range all {
			k = (k + i) % len(all)
			r.samples[k][i] = once(all[k])
		}
	}
	return r
}

// quantile of the values, which it sorts a copy of.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(q*float64(len(s)-1)+0.5)]
}

// ratios to glibc, round by round.
func (r row) ratios(k int) []float64 {
	out := make([]float64, len(r.samples[k]))
	for i := range out {
		out[i] = r.samples[k][i] / r.samples[0][i]
	}
	return out
}

// report gives the row to the benchmark's line of output.
func (r row) report(b *testing.B, unit string) {
	b.ReportMetric(0, "ns/op") // the time of the whole comparison says nothing
	b.ReportMetric(quantile(r.samples[0], 0.5), "glibc-"+unit)
	b.ReportMetric(quantile(r.samples[1], 0.5), unit)
	b.ReportMetric(quantile(r.ratios(1), 0.5), "x-glibc")
}

// table prints rows: glibc's median, and for every other contender the median
// ratio to glibc with the range that holds the middle half of the rounds.
func table(b *testing.B, unit string, all []allocator, rows []row) {
	if len(rows) == 0 {
		return
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tglibc, %s\t", b.Name(), unit)
	for _, a := range all[1:] {
		fmt.Fprintf(w, "%s, x glibc\t", a.name)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%.4g\t", r.name, quantile(r.samples[0], 0.5))
		for k := range all[1:] {
			x := r.ratios(k + 1)
			fmt.Fprintf(w, "%.2f (%.2f–%.2f)\t", quantile(x, 0.5), quantile(x, 0.25), quantile(x, 0.75))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Printf("\n%s\n", text.String())
}

// compare measures each case as a sub-benchmark and prints them as one table. A
// measurement decides itself how long it takes, so b.N does not matter; of a case
// that the framework repeats the last counts.
func compare(b *testing.B, unit string, rounds int, cases []string, once func(b *testing.B, a allocator, name string) float64) {
	all := allocators(b)
	var rows []row
	for _, name := range cases {
		var r row
		if !b.Run(name, func(b *testing.B) {
			r = measure(name, all, rounds, func(a allocator) float64 { return once(b, a, name) })
			r.report(b, unit)
		}) || r.samples == nil { // failed, or not asked for
			continue
		}
		rows = append(rows, r)
	}
	table(b, unit, all, rows)
}
