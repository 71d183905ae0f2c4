package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// ours is this library's place among the contenders.
const ours = 1

// ahead is how much better a contender must be to be named.
const ahead = 1.05

// print writes the tables.
func (r *results) print(out io.Writer) {
	scale := ""
	if r.scale != 1000 {
		scale = fmt.Sprintf(", %d%% of the work", r.scale/10)
	}
	fmt.Fprintf(out, "%s\n%d rounds, interleaved; %d threads%s. x: ratio to glibc in the same "+
		"round, median (its spread: the range of the middle half)\n",
		machine(), r.rounds, r.thread, scale)
	if r.rounds > 1 {
		fmt.Fprintf(out, "%s: equal within the spread\n", equalMark)
	} else {
		fmt.Fprintln(out, "One round tells nothing of the spread.")
	}
	r.table(out, elapsed, elapsed, cpu)
	r.table(out, system)
	r.table(out, faults, faults)
	r.table(out, peak, peak)
	r.table(out, steady, steady)
	for _, line := range r.absent {
		fmt.Fprintln(out, "not run:", line)
	}
	for _, line := range r.failures() {
		fmt.Fprintln(out, "failed:", line)
	}
	r.behind(out)
}

// table prints one figure of all workloads, and the geometric means of some.
func (r *results) table(out io.Writer, f figure, means ...figure) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\tglibc, %s\t", f.unit)
	for _, c := range r.all[1:] {
		fmt.Fprintf(w, "%s, x\t", c.name)
	}
	fmt.Fprintln(w)
	rows := 0
	for _, row := range r.rows {
		base := row.values(f, 0)
		if base == nil {
			continue
		}
		rows++
		fmt.Fprintf(w, "%s\t%.4g\t", row.name, median(base))
		for k := range r.all[1:] {
			fmt.Fprintf(w, "%s\t", cell(row.ratios(f, k+1, 0)))
		}
		fmt.Fprintln(w)
	}
	if rows == 0 {
		return
	}
	for _, m := range means {
		fmt.Fprintf(w, "geometric mean, %s\t\t", m.name)
		for k := range r.all[1:] {
			fmt.Fprintf(w, "%s\t", number(r.mean(m, k+1)))
		}
		fmt.Fprintln(w)
	}
	if r.rounds > 1 {
		fmt.Fprint(w, "half the spread, median\t\t")
		for k := range r.all[1:] {
			fmt.Fprintf(w, "%s\t", number(r.halfSpread(f, k+1)))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "\n%s\n%s", f.title, text.String())
}

// equalMark stands before a ratio that is 1 within the spread.
const equalMark = "~"

func markOf(equal bool) string {
	if equal {
		return equalMark
	}
	return ""
}

func cell(x []float64) string { return markOf(equal(x)) + spread(x) }

func spread(x []float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(x), quantile(x, 0.25), quantile(x, 0.75))
}

func number(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf("%.3f", x)
}

// failures has a line for each contender that failed in a workload, which counts in none of
// its means.
func (r *results) failures() []string {
	var out []string
	for _, row := range r.rows {
		for k, why := range row.failed {
			if why != "" {
				out = append(out, fmt.Sprintf("%s under %s: %s", row.name, r.all[k].name, why))
			}
		}
	}
	return out
}

// lead is a contender that does better than this library in something.
type lead struct {
	workload, figure, who string
	factor                float64
	equal                 bool // within the spread
}

// leads are all of them, the greatest first.
func (r *results) leads() []lead {
	var out []lead
	for _, row := range r.rows {
		for _, f := range []figure{elapsed, peak, steady} {
			for k := range r.all {
				if x := row.ratios(f, ours, k); k != ours && x != nil && median(x) > ahead {
					out = append(out, lead{row.name, f.name, r.all[k].name, median(x), equal(x)})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b lead) int {
		switch {
		case a.factor > b.factor:
			return -1
		case a.factor < b.factor:
			return 1
		}
		return 0
	})
	return out
}

// behind prints a line for each workload and figure in which another is ahead.
func (r *results) behind(out io.Writer) {
	type line struct{ workload, figure string }
	var order []line
	text := map[line][]string{}
	for _, l := range r.leads() {
		key := line{l.workload, l.figure}
		if text[key] == nil {
			order = append(order, key)
		}
		text[key] = append(text[key], fmt.Sprintf("%s%.2f times %s", markOf(l.equal), l.factor,
			l.who))
	}
	if len(order) == 0 {
		fmt.Fprintf(out, "\nNowhere is another ahead of tieralloc by more than 5%%.\n")
		return
	}
	fmt.Fprintf(out, "\nWhere another is ahead of tieralloc by more than 5%%, tieralloc takes\n")
	for _, key := range order {
		fmt.Fprintf(out, "  %s, %s: %s\n", key.workload, key.figure, strings.Join(text[key], ", "))
	}
}

// verdict is an error where this library failed: that is no figure to go on with.
func (r *results) verdict() error {
	var all []error
	for _, row := range r.rows {
		if row.failed[ours] != "" {
			all = append(all, fmt.Errorf("%s: tieralloc failed: %s", row.name, row.failed[ours]))
		}
	}
	return errors.Join(all...)
}
