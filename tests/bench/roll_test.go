package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"tieralloc/internal/testlib"
)

// rollers have a fast tier that holds the window of testdata/bench_roll.c, or half of it
// and all that there is to do about that.
func rollers(b *testing.B) []allocator {
	const half = "TA_FAST_SOFT=32M"
	return []allocator{
		with(b, "no cap"),
		with(b, "demote", half, "TA_ON_SOFTCAP=demote"),
		with(b, "demote, no limit", half, "TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0"),
		with(b, "warn", half, "TA_ON_SOFTCAP=warn"),
		with(b, "reroute", half, "TA_ON_SOFTCAP=reroute"),
	}
}

// rolled is one run.
type rolled struct {
	name, backend string
	steps         int64
	tiers         map[string]struct {
		BytesCurrent int64 `json:"bytes_current"`
		Migrations   struct {
			Attempted   int64
			MovedPages  int64 `json:"moved_pages"`
			FailedPages int64 `json:"failed_pages"`
		}
	}
}

// roll returns the time of a step.
func (r *rolled) roll(b *testing.B, a allocator, program, size string) float64 {
	b.Helper()
	var ns float64
	text := a.run(b, program, size)
	if _, err := fmt.Sscan(text, &ns, &r.steps); err != nil {
		b.Fatalf("%s: %v", a.name, err)
	}
	var report struct {
		Backend string
		Tiers   any
	}
	report.Tiers = &r.tiers
	if err := json.Unmarshal([]byte(text[strings.IndexByte(text, '{'):]), &report); err != nil {
		b.Fatalf("%s: %v", a.name, err)
	}
	r.backend = report.Backend
	return ns
}

// BenchmarkBenchRoll is a window of 64 MiB of live blocks moving on, in nanoseconds for
// each new block: with room in its tier, and with a soft cap of half of that. A second
// table tells what the library did about the cap in the last of the runs.
func BenchmarkBenchRoll(b *testing.B) {
	program := testlib.CC(b, "bench_roll.c", "-O2")
	did := map[string]*rolled{}
	var order []string
	cases := []string{"4096", "65536", "1048576", "8388608"}
	contest{rollers(b), "ns", 5, 2}.run(b, cases,
		func(b *testing.B, a allocator, size string) float64 {
			name := size + " " + a.name
			if did[name] == nil {
				order = append(order, name)
			}
			r := &rolled{name: name}
			did[name] = r
			return r.roll(b, a, program, size)
		})
	if len(order) == 0 {
		return
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tbackend\tsteps\tspans moved\tMiB moved\tpages refused\tfast, MiB\tnormal, "+
		"MiB\tslow, MiB\t")
	for _, name := range order {
		did[name].print(w)
	}
	w.Flush()
	fmt.Print(text.String(), "\n")
}

func (r *rolled) print(w *tabwriter.Writer) {
	const mib = 1 << 20
	var attempted, pages, failed int64
	for _, t := range r.tiers {
		attempted += t.Migrations.Attempted
		pages += t.Migrations.MovedPages
		failed += t.Migrations.FailedPages
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t", r.name, r.backend, r.steps, attempted,
		pages*4096/mib, failed)
	for _, tier := range []string{"fast", "normal", "slow"} {
		fmt.Fprintf(w, "%.1f\t", float64(r.tiers[tier].BytesCurrent)/mib)
	}
	fmt.Fprintln(w)
}
