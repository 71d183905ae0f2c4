package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// The workloads of --scaling, if none are named: each of their threads does as much as one alone
// would, so with a processor for each the time should stay the same. It does not where threads wait
// for each other's data, with any allocator: how much of that is the pattern's, those of stills
// show.
const scalingOnly = "^(larson|mstress|xmalloc)"

var stills = []workload{
	{"larson" + stillSuffix, own("larson"+stillSuffix, 0)},
	{"mstress" + stillSuffix, own("mstress"+stillSuffix, 0)},
	{"xmalloc" + stillSuffix, own("xmalloc"+stillSuffix, 0)},
}

// parseCounts reads a list of numbers of threads, each greater than the one before.
func parseCounts(list string) (out []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 1024 || len(out) > 0 && n <= out[len(out)-1] {
			return nil, fmt.Errorf("--scaling %q: numbers from 1 to 1024 are accepted, rising, "+
				"with commas between", list)
		}
		out = append(out, n)
	}
	return out, nil
}

// grid is one workload's times in milliseconds, by number of threads, contender and round. Who
// failed has none.
type grid struct {
	name   string
	times  [][][]float64
	failed []string // by contender
}

// scaling runs the workloads with each number of threads, all contenders and numbers in turn in
// each round.
func (p *place) scaling(ctx context.Context, list []workload, all []contender, counts []int,
	rounds int, out, progress io.Writer) error {
	p.rest = 0
	fmt.Fprintf(out, "%s\n%d rounds, interleaved; each thread does as much as one alone would\n",
		machine(), rounds)
	var failed []string
	for _, w := range list {
		start := time.Now()
		g := grid{name: w.name, failed: make([]string, len(all)),
			times: make([][][]float64, len(counts))}
		for i := range counts {
			g.times[i] = make([][]float64, len(all))
		}
		for round := range rounds {
			for i, n := range counts {
				for k := range all {
					k = (k + round) % len(all)
					if g.failed[k] != "" {
						continue
					}
					ms, err := p.timeOf(ctx, w, all[k], n)
					switch {
					case ctx.Err() != nil:
						return ctx.Err()
					case err != nil:
						g.failed[k] = fmt.Sprintf("%s with %d threads under %s: %v", w.name, n,
							all[k].name, err)
					default:
						g.times[i][k] = append(g.times[i][k], ms)
					}
				}
			}
		}
		g.print(out, all, counts)
		fmt.Fprintf(progress, "%s: %.1f s\n", w.name, time.Since(start).Seconds())
		for _, why := range g.failed {
			if why != "" {
				failed = append(failed, why)
				fmt.Fprintln(out, "failed:", why)
			}
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d failed", len(failed))
	}
	return nil
}

func (p *place) timeOf(ctx context.Context, w workload, c contender, n int) (float64, error) {
	with := *p
	with.threads = n
	j, err := w.prepare(&with)
	if err != nil {
		return 0, err
	}
	s, err := with.once(ctx, j, c)
	return elapsed.value(s), err
}

// print shows for each number of threads the time, which is the cost of an operation in a
// thread but for a constant, as a ratio to the same allocator's with the least number; and
// beside it this library's as a ratio to each other's.
func (g *grid) print(out io.Writer, all []contender, counts []int) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "threads\t")
	for _, c := range all {
		fmt.Fprintf(w, "%s, ms\tx\t", c.name)
	}
	fmt.Fprintln(w)
	for i, n := range counts {
		fmt.Fprintf(w, "%d\t", n)
		for k := range all {
			if g.failed[k] != "" {
				fmt.Fprint(w, "–\t–\t")
				continue
			}
			fmt.Fprintf(w, "%.0f\t%s\t", median(g.times[i][k]),
				spread(over(g.times[i][k], g.times[0][k])))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "\n%s: time, and its ratio to the one with %d in the same round, median "+
		"(range of the middle half)\n%s",
		g.name, counts[0], text.String())
	for i, n := range counts {
		for k, c := range all {
			if k != ours && g.failed[k] == "" && g.failed[ours] == "" {
				fmt.Fprintf(out, "  %d threads: tieralloc takes %s of %s's time\n", n,
					spread(over(g.times[i][ours], g.times[i][k])), c.name)
			}
		}
	}
}

// over is a/b, round by round.
func over(a, b []float64) []float64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] /= b[i]
	}
	return out
}
