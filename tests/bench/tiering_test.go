package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"

	"tieralloc/internal/testlib"
)

// tieringPolicy is a column of BenchmarkTiering: who decides where pages lie.
type tieringPolicy struct {
	name      string
	balancing int    // kernel.numa_balancing; with 2 the kernel demotes, too
	command   string // before the program
}

var tieringPolicies = []tieringPolicy{
	{"plain", 0, "env"},
	{"interleave", 0, "/guest/tiering interleave"},
	{"kernel tiering", 2, "env"},
	{"tieralloc", 2, "env LD_PRELOAD=/guest/libtieralloc.so"},
	{"follow", 0, "env LD_PRELOAD=/guest/libtieralloc.so TA_ON_SOFTCAP=follow TA_NORMAL_HARD=123M"},
	{"right hints", 0, "env LD_PRELOAD=/guest/libtieralloc.so TIERING_HINTS=1 " +
		"TA_NODE_FAST=0 TA_NODE_NORMAL=1"},
}

// tieringWorkloads are those of testdata/tiering.c, and redis.
var tieringWorkloads = []string{"sets hot 64", "sets hot 1024", "sets hot 0", "sets cold 64",
	"sets cold 1024", "sets cold 0", "sets turns 64", "sets turns 1024", "sets turns 0",
	"sets change 1024", "gups", "btree", "redis"}

// BenchmarkTiering is the share of a program's memory accesses, and of its cache misses, that the
// fast node of a guest serves, of a fast and a slow one, by who decides where pages lie. The
// programs have more memory than the fast node, and a tenth of it, or half, is hot. A plugin of
// QEMU's counts, so only how far the kernel gets meanwhile depends on the speed of this machine.
func BenchmarkTiering(b *testing.B) {
	testlib.Need(b, "qemu-system-x86_64", "redis-server", "redis-benchmark")
	g := tieringGuest(b)
	for _, name := range tieringWorkloads {
		b.Run(name, func(b *testing.B) {
			var text bytes.Buffer
			w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(w, "node 0 serves\tof accesses\tof misses\t")
			for i, s := range g.run(b, name) {
				fmt.Fprintf(w, "%s\t%.1f%%\t%.1f%%\t\n", tieringPolicies[i].name, 100*s.accesses,
					100*s.misses)
				b.ReportMetric(100*s.misses, "miss%:"+strings.ReplaceAll(tieringPolicies[i].name,
					" ", "-"))
			}
			w.Flush()
			b.ReportMetric(0, "ns/op")
			b.Logf("\n%s", text.String())
		})
	}
}

// tiering is what the guests need.
type tiering struct {
	plugin  string
	files   []string
	fastMiB int
	printed []byte // by the last guest
}

const (
	slowMiB  = 512
	cacheMiB = 1
)

func tieringGuest(b *testing.B) *tiering {
	b.Helper()
	plugin := filepath.Join(b.TempDir(), "nodeshare.so")
	command(b, "gcc", "-O2", "-fPIC", "-shared", "-o", plugin,
		filepath.Join("testdata", "nodeshare.c"))
	g := &tiering{plugin: plugin, fastMiB: 192, files: []string{testlib.Lib(b) + "=/guest/libtieralloc.so",
		testlib.CC(b, "tiering.c", "-O2") + "=/guest/tiering"}}
	for _, name := range []string{"redis-server", "redis-benchmark"} {
		path, err := exec.LookPath(name)
		if err != nil {
			b.Fatal(err)
		}
		g.files = append(g.files, path+"=/guest/"+name)
	}
	return g
}

// share is what the fast node serves: parts of 1.
type share struct {
	accesses, misses float64

	// misses in each region of so many KiB of addresses, the greatest first
	regions map[int][]float64
}

// best is the part of the misses that are in so many MiB, if regions of so many KiB are chosen for
// it.
func (s share) best(mib, grain int) float64 {
	var here, all float64
	for i, misses := range s.regions[grain] {
		if i < mib<<10/grain {
			here += misses
		}
		all += misses
	}
	return here / all
}

// run boots a guest, and runs a workload under each policy.
func (g *tiering) run(b *testing.B, workload string) []share {
	b.Helper()
	periods := g.periods(b, tieringScript(workload))
	var all []share
	for i := range tieringPolicies {
		all = append(all, periods[11+2*i])
	}
	return all
}

// periods boots a guest, runs a script, and returns what the plugin has counted, by the number of
// the mark that ends a period.
func (g *tiering) periods(b *testing.B, script string) map[int]share {
	b.Helper()
	counts := filepath.Join(b.TempDir(), "counts")
	plugin := fmt.Sprintf("-plugin %s,out=%s,nodes=%d+%d,cache=%d", g.plugin, counts, g.fastMiB,
		slowMiB, cacheMiB)
	nodes := fmt.Sprintf("%d/1/100/50000 %d/0/300/12000", g.fastMiB, slowMiB)
	cmd := exec.Command(filepath.Join("..", "numa", "vm.sh"),
		append([]string{"-a", plugin, "-n", nodes, "-p", "transparent_hugepage=never", "-t",
			"3600"}, g.files...)...)
	cmd.Stdin = strings.NewReader(script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // the guest ends with it
	out, err := cmd.CombinedOutput()
	g.printed = out
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(counts)
	if err != nil {
		b.Fatal(err)
	}
	periods := readPeriods(b, string(text))
	// two touches, of node 0 and of node 1
	for node, want := range map[int]bool{1: true, 2: false} {
		if s := periods[node].accesses; (s > 0.8) != want || s > 0.3 && s < 0.8 {
			b.Fatalf("the plugin does not tell the nodes apart:\n%s", text)
		}
	}
	return periods
}

// readPeriods reads what the plugin has counted.
func readPeriods(b *testing.B, text string) map[int]share {
	b.Helper()
	all := map[int]share{}
	for line := range strings.Lines(text) {
		var n int
		var count [4]float64
		if _, err := fmt.Sscanf(line, "%d accesses %f %f misses %f %f", &n, &count[0], &count[1],
			&count[2], &count[3]); err != nil {
			b.Fatalf("%q: %v", line, err)
		}
		s := share{accesses: count[0] / (count[0] + count[1]),
			misses: count[2] / (count[2] + count[3])}
		s.regions = map[int][]float64{}
		for _, part := range strings.Split(line, " grain ")[1:] {
			words := strings.Fields(part)
			shift, err := strconv.Atoi(words[0])
			if err != nil || shift < 10 {
				b.Fatalf("%.40q: %v", part, err)
			}
			for _, word := range words[1:] {
				misses, err := strconv.ParseFloat(word, 64)
				if err != nil {
					b.Fatal(err)
				}
				grain := 1 << (shift - 10)
				s.regions[grain] = append(s.regions[grain], misses)
			}
		}
		all[n] = s
	}
	return all
}

// tieringPreamble tunes the kernel, shows the plugin each node, and says how a workload begins.
const tieringPreamble = `
mount -t debugfs debugfs /sys/kernel/debug
for line in scan_delay_ms:100 scan_period_min_ms:100 scan_period_max_ms:1000 \
	hot_threshold_ms:5000; do
	echo ${line#*:} >/sys/kernel/debug/sched/numa_balancing/${line%:*}
done
mark() { /guest/tiering mark $1; }
mark 0
/guest/tiering touch 0; mark 1
/guest/tiering touch 1; mark 2
ready() { # FILE
	i=0
	while ! grep -q ready $1; do
		i=$((i + 1))
		[ $i -lt 200 ] || exit 1
		sleep 1
	done
}
fill='local v = string.rep("v", 4000) for i = 0, 59999 do redis.call("set", string.format("key:%012d", i * 7919 % 60000), v) end'
begin_redis() {
	"$@" /guest/redis-server --port 0 --unixsocket /tmp/redis --save '' --appendonly no \
		--loglevel warning &
	server=$!
	while [ ! -S /tmp/redis ]; do sleep 1; done
	/guest/redis-benchmark -s /tmp/redis -q -n 1 -c 1 eval "$fill" 0 >/dev/null
	/guest/redis-benchmark -s /tmp/redis -q -r 6000 -n 100000000 -P 16 -c 4 get key:__rand_int__ \
		>/dev/null &
	client=$!
}
resides() {
	grep -v file= /proc/$server/numa_maps | grep -o N0=[0-9]* |
		awk -F= '{ pages += $2 } END { printf "node 0 has %d MiB\n", pages / 256 }'
}
kib_of() { awk "/^$1/ { print \$2 }" /proc/$server/status; }
has_memory() { # a program that still builds what it works on has more, or less
	i=0
	while kib=$(kib_of VmRSS)
		[ ${kib:-0} -lt $((mib * 768)) ] || [ $kib -gt $((mib * 1280)) ]; do
		i=$((i + 1))
		[ $i -lt 400 ] || exit 1
		sleep 1
	done
	peak=$(kib_of VmHWM)
}
has_built() {
	[ -z "$peak" ] || [ $(kib_of VmHWM) -lt $((peak + 4096)) ] || {
		echo "the program went on building: give it more than $seconds s"
		exit 1
	}
}
begin() { # WORKLOAD COMMAND...
	name=$1
	shift
	: >/tmp/ready
	client=
	peak=
	if [ "$name" = redis ]; then
		begin_redis "$@"
	elif [ "$name" = program ]; then
		"$@" /guest/program $arguments >/tmp/output &
		server=$!
		sleep $seconds
		has_memory
	else
		"$@" /guest/tiering $name >/tmp/ready &
		server=$!
		ready /tmp/ready
	fi
}
`

// resides finds what write prints.
var resides = regexp.MustCompile(`node 0 has (\d+) MiB`)

// write has the workload run under a policy: until its memory is there, then for a time in which
// pages may be moved, then for the time that counts, which the mark after this one ends. It prints
// how much of the workload's memory node 0 has.
func (p tieringPolicy) write(s *strings.Builder, workload string, settle, counts,
	mark int) {
	fmt.Fprintf(s, "echo %d >/proc/sys/kernel/numa_balancing\necho %d "+
		">/sys/kernel/mm/numa/demotion_enabled\n", p.balancing, p.balancing/2)
	fmt.Fprintf(s, "begin '%s' %s\nsleep %d\nhas_built\nresides\nmark %d\nsleep %d\nmark %d\nkill -9 $server "+
		"$client\nwait $server $client\nrm -f /tmp/redis\n",
		workload, p.command, settle, mark, counts, mark+1)
}

// tieringScript runs the workload under one policy after the other. Mark 11+2i ends what counts of
// the i-th policy.
func tieringScript(workload string) string {
	var s strings.Builder
	s.WriteString(tieringPreamble)
	for i, p := range tieringPolicies {
		settle := 2
		if p.balancing != 0 || p.name == "follow" {
			settle = 45
		}
		if strings.Contains(workload, "change") {
			settle += 60
		}
		p.write(&s, workload, settle, 4, 10+2*i)
	}
	return s.String()
}
