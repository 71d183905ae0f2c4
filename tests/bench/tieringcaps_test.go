package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"tieralloc/internal/testlib"
)

// capsWorkloads are programs of BenchmarkTieringCaps, with their footprints in MiB.
var capsWorkloads = []struct {
	name string
	mib  int
}{{"gups", 192}, {"btree", 220}, {"redis", 240}}

// capsShares are the parts of a footprint, in percent, that fast memory takes.
var capsShares = []int{25, 50, 75}

// capsPolicies are the columns of BenchmarkTieringCaps. What gives a cap no meaning has as much of
// node 0 left to it.
var capsPolicies = []tieringPolicy{
	{"plain", 0, "env"},
	{"kernel tiering", 2, "env"},
	{"follow", 0, "env LD_PRELOAD=/guest/libtieralloc.so TA_ON_SOFTCAP=follow TA_NORMAL_HARD=%dM"},
}

// BenchmarkTieringCaps is BenchmarkTiering for programs of which a part fits in fast memory. The
// best static placement, by regions of 2 MiB, is of what the plugin counts under follow.
//
// Each cell is a guest of its own: where node 0 is full and nothing may be demoted, its kswapd gives
// up, and does not demote for a later program either.
func BenchmarkTieringCaps(b *testing.B) {
	testlib.Need(b, "qemu-system-x86_64", "redis-server", "redis-benchmark")
	g := tieringGuest(b)
	g.fastMiB = 320
	for _, workload := range capsWorkloads {
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
					last = g.periods(b, p.capped(workload.name, limit))[11]
					fmt.Fprintf(w, "%.1f%%\t", 100*last.misses)
					b.ReportMetric(100*last.misses, fmt.Sprintf("miss%%:%d:%s", percent,
						strings.ReplaceAll(p.name, " ", "-")))
				}
				fmt.Fprintf(w, "%.1f%%\t\n", 100*last.best(limit))
			}
			w.Flush()
			b.ReportMetric(0, "ns/op")
			b.Logf("\n%s", text.String())
		})
	}
}

// capped is a script that runs a workload with so many MiB of fast memory. Mark 11 ends what
// counts.
func (p tieringPolicy) capped(workload string, mib int) string {
	var s strings.Builder
	s.WriteString(tieringPreamble)
	if strings.Contains(p.command, "%d") {
		p.command = fmt.Sprintf(p.command, mib)
	} else {
		fmt.Fprintf(&s, "/guest/tiering leave %d >/tmp/left &\nready /tmp/left\n", mib)
	}
	settle := 60
	if p.name == "plain" {
		settle = 2
	}
	p.write(&s, workload, settle, 10)
	return s.String()
}
