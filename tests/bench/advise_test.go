package bench

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"tieralloc/internal/testlib"
)

// adviseWorkloads are those of BenchmarkAdvise, and whether their call sites tell hot from cold
// memory.
var adviseWorkloads = []struct {
	name string
	tell bool
}{{"sets hot 64", true}, {"sets cold 64", true}, {"sets turns 64", true},
	{"sets turns 1024", true}, {"btree", false}, {"redis", false}}

// leastAdvised is the part of the share with right hints that rules must reach.
const leastAdvised = 0.9

// BenchmarkAdvise is the share of a program's cache misses that the fast node of a guest serves:
// without hints, with the rules that "tierallocctl advise" makes of a profile with heat, and with
// right hints. The profile is of a run before, without caps. For rules the fast node is a tier of
// its own, or has a cap that holds for FAST and NORMAL together. Where call sites do not tell hot
// from cold memory, advise must write no rules, and there is nothing to compare.
func BenchmarkAdvise(b *testing.B) {
	testlib.Need(b, "qemu-system-x86_64", "redis-server", "redis-benchmark")
	g := tieringGuest(b)
	g.fastMiB = 320
	g.files = append(g.files, filepath.Join(filepath.Dir(testlib.Lib(b)), "tierallocctl")+
		"=/guest/tierallocctl")
	const apart, capped = "env TA_NODE_FAST=0 TA_NODE_NORMAL=1 ", "env TA_NORMAL_HARD=123M "
	const hinted = "env TIERING_HINTS=1 LD_PRELOAD=/guest/libtieralloc.so"
	policies := []tieringPolicy{
		{"no hints", 0, capped + "LD_PRELOAD=/guest/libtieralloc.so"},
		{"rules under a cap", 0, capped + "/tmp/ruled"},
		{"rules", 0, apart + "/tmp/ruled"},
		{"right hints", 0, apart + hinted},
	}
	for _, workload := range adviseWorkloads {
		b.Run(workload.name, func(b *testing.B) {
			var script strings.Builder
			script.WriteString(tieringPreamble)
			fmt.Fprintf(&script, adviseScript, workload.name)
			if workload.tell {
				for i, p := range policies {
					p.write(&script, workload.name, 2, 4, 10+2*i)
				}
			}
			periods := g.periods(b, script.String())
			b.Logf("%s", g.printed)
			b.ReportMetric(0, "ns/op")
			if ruled := bytes.Contains(g.printed, []byte("advise: 0\n")); ruled != workload.tell {
				b.Fatalf("rules: %v, not %v", ruled, workload.tell)
			}
			if workload.tell {
				reportAdvise(b, policies, periods)
			}
		})
	}
}

// reportAdvise reports what the fast node served under each policy.
func reportAdvise(b *testing.B, policies []tieringPolicy, periods map[int]share) {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "node 0 serves\tof misses\t")
	served := map[string]float64{}
	for i, p := range policies {
		misses := 100 * periods[11+2*i].misses
		served[p.name] = misses
		fmt.Fprintf(w, "%s\t%.1f%%\t\n", p.name, misses)
		b.ReportMetric(misses, "miss%:"+strings.ReplaceAll(p.name, " ", "-"))
	}
	w.Flush()
	b.Logf("\n%s", text.String())
	for _, rules := range []string{"rules", "rules under a cap"} {
		if served[rules] < leastAdvised*served["right hints"] {
			b.Errorf("%s serve less than %g of what right hints serve", rules, leastAdvised)
		}
	}
}

// adviseScript takes the profile and makes rules of it, or none, and prints how advise ends.
const adviseScript = `
echo 0 >/proc/sys/kernel/numa_balancing
begin '%s' env LD_PRELOAD=/guest/libtieralloc.so TA_PROFILE=/tmp/heat.pb TA_PROFILE_HEAT=1 \
	TA_STATS_LIVE=1
sleep 240
/guest/tierallocctl profile --wait 60s -o /tmp/named.pb $server || exit
kill -9 $server $client
wait $server $client
rm -f /tmp/redis
/guest/tierallocctl advise --fast 120M /tmp/named.pb >/tmp/rules
status=$?
[ $status = 0 ] || [ ! -s /tmp/rules ] || exit 1
cat /tmp/rules
echo "advise: $status"
cat >/tmp/ruled <<'END'
#!/bin/sh
exec env TA_RULES="$(cat /tmp/rules)" LD_PRELOAD=/guest/libtieralloc.so "$@"
END
chmod +x /tmp/ruled
`
