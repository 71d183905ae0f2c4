package bench

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"tieralloc/internal/testlib"
)

// capsWorkloads are programs of BenchmarkTieringCaps, with their footprints in MiB.
var capsWorkloads = []capsWorkload{{name: "gups", mib: 192}, {name: "btree", mib: 220},
	{name: "redis", mib: 240}}

type capsWorkload struct {
	name      string
	mib       int
	arguments string // of a program
	seconds   int    // until it may have its memory
}

// capsShares are the parts of a footprint, in percent, that fast memory takes.
var capsShares = []int{25, 50, 75}

// capsPolicies are the columns of BenchmarkTieringCaps. What gives a cap no meaning has as much of
// node 0 left to it.
var capsPolicies = []tieringPolicy{
	{"plain", 0, "env"},
	{"kernel tiering", 2, "env"},
	{"follow", 0, "env LD_PRELOAD=/guest/libtieralloc.so TA_ON_SOFTCAP=follow TA_NORMAL_HARD=%dM"},
}

// grains are sizes of regions in KiB, as testdata/nodeshare.c counts misses in them.
var grains = []int{4, 16, 64, 2048}

// BenchmarkTieringGrains is the best that any static placement can do for the programs of
// BenchmarkTieringCaps, by the size of the regions that it tells apart: where blocks lie is up to
// the library, and nothing moves. It counts for long: of few misses the best regions are those that
// chance has chosen. Each page that is hot is to be missed many times.
func BenchmarkTieringGrains(b *testing.B) {
	testlib.Need(b, "qemu-system-x86_64", "redis-server", "redis-benchmark")
	g := tieringGuest(b)
	for _, workload := range capsWorkloads {
		b.Run(workload.name, func(b *testing.B) {
			var text bytes.Buffer
			w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprint(w, "of misses, the best regions have\t")
			for _, grain := range grains {
				fmt.Fprintf(w, "of %d KiB\t", grain)
			}
			fmt.Fprintln(w)
			p := tieringPolicy{"", 0, "env LD_PRELOAD=/guest/libtieralloc.so"}
			var script strings.Builder
			script.WriteString(tieringPreamble)
			p.write(&script, workload.name, 2, 90, 10)
			s := g.periods(b, script.String())[11]
			misses := 0.0
			for _, n := range s.regions[grains[0]] {
				misses += n
			}
			b.ReportMetric(misses/float64(len(s.regions[grains[0]])), "misses/page")
			for _, percent := range capsShares {
				fmt.Fprintf(w, "%d%% of %d MiB is fast\t", percent, workload.mib)
				for _, grain := range grains {
					best := 100 * s.best(workload.mib*percent/100, grain)
					fmt.Fprintf(w, "%.1f%%\t", best)
					b.ReportMetric(best, fmt.Sprintf("miss%%:%d:%dK", percent, grain))
				}
				fmt.Fprintln(w)
			}
			w.Flush()
			b.ReportMetric(0, "ns/op")
			b.Logf("\n%s", text.String())
		})
	}
}

// BenchmarkTieringCaps is BenchmarkTiering for programs of which a part fits in fast memory. The
// best static placement, by regions of 2 MiB, is of what the plugin counts under follow. Brackets
// tell how many MiB of the program node 0 has. It fails where these are more than the cap and 5%,
// at least 2 MiB: then other memory left the node, and the columns do not have the same room.
//
// TIERING_PROGRAM="MIB SECONDS PATH ARGUMENT..." adds a program: from so many seconds on, once it
// has so many MiB, within a quarter, it has what it works on. It fails if its peak grows after that.
// It is not to end for a minute and a half from then on. Programs that others wrote are not part of
// this repository: docs/benchmarks.md says how some were run.
//
// Each cell is a guest of its own: where node 0 is full and nothing may be demoted, its kswapd
// gives up, and does not demote for a later program either.
func BenchmarkTieringCaps(b *testing.B) {
	testlib.Need(b, "qemu-system-x86_64", "redis-server", "redis-benchmark")
	g := tieringGuest(b)
	g.fastMiB = 320
	workloads := capsWorkloads
	if program := os.Getenv("TIERING_PROGRAM"); program != "" {
		workloads = append(slices.Clone(workloads), g.add(b, program))
	}
	for _, workload := range workloads {
		b.Run(workload.name, func(b *testing.B) {
			var text bytes.Buffer
			w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprint(w, "of misses, node 0 serves\t")
			for _, p := range capsPolicies {
				fmt.Fprintf(w, "%s\t", p.name)
			}
			fmt.Fprintln(w, "best static\t")
			for _, percent := range capsShares {
				limit := workload.mib * percent / 100
				fmt.Fprintf(w, "%d%% of %d MiB is fast\t", percent, workload.mib)
				var last share
				for _, p := range capsPolicies {
					last = g.periods(b, p.capped(workload, limit))[11]
					fmt.Fprintf(w, "%.1f%%", 100*last.misses)
					if has := resides.FindSubmatch(g.printed); has != nil {
						fmt.Fprintf(w, " (%s MiB)", has[1])
						checkRoom(b, p.name, limit, string(has[1]))
					}
					fmt.Fprint(w, "\t")
					b.ReportMetric(100*last.misses, fmt.Sprintf("miss%%:%d:%s", percent,
						strings.ReplaceAll(p.name, " ", "-")))
				}
				fmt.Fprintf(w, "%.1f%%\t\n", 100*last.best(limit, grains[len(grains)-1]))
			}
			w.Flush()
			b.ReportMetric(0, "ns/op")
			b.Logf("\n%s", text.String())
		})
	}
}

// checkRoom fails if node 0 has clearly more MiB of a program than the cap.
func checkRoom(b *testing.B, policy string, limit int, printed string) {
	b.Helper()
	has, err := strconv.Atoi(printed)
	if err != nil {
		b.Fatal(err)
	}
	if has > limit+max(limit/20, 2) {
		b.Errorf("%s: node 0 has %d MiB of the program, and the cap is %d", policy, has, limit)
	}
}

// add adds a program, as BenchmarkTieringCaps says.
func (g *tiering) add(b *testing.B, program string) capsWorkload {
	b.Helper()
	w := capsWorkload{name: "program"}
	var path string
	if _, err := fmt.Sscanf(program, "%d %d %s", &w.mib, &w.seconds, &path); err != nil {
		b.Fatalf("TIERING_PROGRAM=%s: not MIB SECONDS PATH ARGUMENT...: %v", program, err)
	}
	_, w.arguments, _ = strings.Cut(program, path)
	g.files = append(g.files, path+"=/guest/program")
	return w
}

// capped is a script that runs a workload with so many MiB of fast memory. Mark 11 ends what
// counts.
func (p tieringPolicy) capped(workload capsWorkload, mib int) string {
	var s strings.Builder
	s.WriteString(tieringPreamble)
	fmt.Fprintf(&s, "arguments='%s'\nseconds=%d\nmib=%d\n", workload.arguments,
		workload.seconds, workload.mib)
	if strings.Contains(p.command, "%d") {
		p.command = fmt.Sprintf(p.command, mib)
	} else {
		fmt.Fprintf(&s, "/guest/tiering leave %d >/tmp/left &\nready /tmp/left\n", mib)
	}
	settle := 60
	if p.name == "plain" {
		settle = 2
	}
	p.write(&s, workload.name, settle, 4, 10)
	return s.String()
}
