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

// BenchmarkAdvise is the share of a program's cache misses that the fast node of a guest serves:
// without hints, with the rules that "tierallocctl advise" makes of a profile with heat, and with
// right hints. The profile is of a run before, without caps.
func BenchmarkAdvise(b *testing.B) {
	testlib.Need(b, "qemu-system-x86_64", "redis-server", "redis-benchmark")
	g := tieringGuest(b)
	g.fastMiB = 320
	g.files = append(g.files, filepath.Join(filepath.Dir(testlib.Lib(b)), "tierallocctl")+
		"=/guest/tierallocctl")
	const apart = "TA_NODE_FAST=0 TA_NODE_NORMAL=1 "
	policies := []tieringPolicy{
		{"no hints", 0, "env LD_PRELOAD=/guest/libtieralloc.so TA_NORMAL_HARD=123M"},
		{"rules", 0, "/tmp/ruled"},
		{"right hints", 0, "env LD_PRELOAD=/guest/libtieralloc.so TIERING_HINTS=1 " + apart},
	}
	for _, name := range []string{"sets hot 64", "sets cold 64", "sets turns 64",
		"sets turns 1024", "btree", "redis"} {
		b.Run(name, func(b *testing.B) {
			var s, text bytes.Buffer
			s.WriteString(tieringPreamble)
			fmt.Fprintf(&s, adviseScript, name, apart)
			var script strings.Builder
			script.Write(s.Bytes())
			for i, p := range policies {
				p.write(&script, name, 2, 10+2*i)
			}
			periods := g.periods(b, script.String())
			w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(w, "node 0 serves\tof misses\t")
			for i, p := range policies {
				misses := 100 * periods[11+2*i].misses
				fmt.Fprintf(w, "%s\t%.1f%%\t\n", p.name, misses)
				b.ReportMetric(misses, "miss%:"+strings.ReplaceAll(p.name, " ", "-"))
			}
			w.Flush()
			b.ReportMetric(0, "ns/op")
			b.Logf("\n%s", text.String())
			b.Logf("%s", g.printed)
		})
	}
}

// adviseScript takes the profile and makes rules of it, or none.
const adviseScript = `
echo 0 >/proc/sys/kernel/numa_balancing
begin '%s' env LD_PRELOAD=/guest/libtieralloc.so TA_PROFILE=/tmp/heat.pb TA_PROFILE_HEAT=1 \
	TA_STATS_LIVE=1
sleep 240
/guest/tierallocctl profile --wait 60s -o /tmp/named.pb $server
kill -9 $server $client
wait $server $client
rm -f /tmp/redis
/guest/tierallocctl advise --fast 120M /tmp/named.pb >/tmp/rules
cat /tmp/rules
cat >/tmp/ruled <<'END'
#!/bin/sh
exec env TA_RULES="$(cat /tmp/rules)" %sLD_PRELOAD=/guest/libtieralloc.so "$@"
END
chmod +x /tmp/ruled
`
