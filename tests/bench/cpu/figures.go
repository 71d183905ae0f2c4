package main

import (
	"math"
	"slices"
)

// figure is something that is measured of a run.
type figure struct {
	name  string
	unit  string
	value func(sample) float64 // 0: the run does not tell
	title string
}

var (
	elapsed = figure{"time", "ms", func(s sample) float64 { return float64(s.time) / 1e6 },
		"Time from start to end"}
	cpu = figure{"processor time", "ms", func(s sample) float64 { return float64(s.cpu) / 1e6 },
		""}
	system = figure{"system time", "ms", func(s sample) float64 { return float64(s.system) / 1e6 },
		"Processor time in the kernel"}
	faults = figure{"page faults", "number", func(s sample) float64 { return s.faults },
		"Page faults"}
	peak = figure{"peak memory", "MiB", func(s sample) float64 { return s.peak / 1024 },
		"Peak of resident memory"}
	steady = figure{"steady memory", "MiB", func(s sample) float64 { return s.steady / 1024 },
		"Resident when the peak's blocks are freed and half a second has passed"}
)

// quantile of the values, which it sorts a copy of; between two of them it is on the line
// that joins them.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	at, part := math.Modf(q * float64(len(s)-1))
	below, above := int(at), min(int(at)+1, len(s)-1)
	return s[below]*(1-part) + s[above]*part
}

// equal says whether ratios are 1 within their spread, the range of the middle half. One round
// has no spread.
func equal(ratios []float64) bool {
	return len(ratios) > 1 && quantile(ratios, 0.25) <= 1 && quantile(ratios, 0.75) >= 1
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// geometric mean of positive values; NaN of none.
func geometric(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// values of the figure for a contender, round by round; nil where it failed, or where the
// workload does not tell.
func (r row) values(f figure, k int) []float64 {
	var out []float64
	for _, s := range r.samples[k] {
		v := f.value(s)
		if v <= 0 {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// ratios of contender k to contender base, round by round; nil where one of them has none.
func (r row) ratios(f figure, k, base int) []float64 {
	a, b := r.values(f, k), r.values(f, base)
	if a == nil || b == nil {
		return nil
	}
	for i := range a {
		a[i] /= b[i]
	}
	return a
}

// mean is the geometric mean of the contender's median ratios to glibc; NaN where it has
// none. Workloads in which it failed do not count.
func (r *results) mean(f figure, k int) float64 {
	var all []float64
	for _, row := range r.rows {
		if x := row.ratios(f, k, 0); x != nil {
			all = append(all, median(x))
		}
	}
	return geometric(all)
}

// halfSpread is half the spread of the contender's ratios to glibc in a typical row: how far a
// ratio is from another run's by chance; NaN where there is none.
func (r *results) halfSpread(f figure, k int) float64 {
	var all []float64
	for _, row := range r.rows {
		if x := row.ratios(f, k, 0); x != nil {
			all = append(all, (quantile(x, 0.75)-quantile(x, 0.25))/2)
		}
	}
	if all == nil {
		return math.NaN()
	}
	return median(all)
}
