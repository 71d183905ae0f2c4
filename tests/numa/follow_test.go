package numa

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestFollow: without a hint the hot half of a program's memory finds its way to the fast node,
// under a cap that holds.
func TestFollow(t *testing.T) {
	t.Parallel()
	const follow = "TA_ON_SOFTCAP=follow "
	g := guest{nodes: "256/1/100/50000 384/0/400/6000", words: "transparent_hugepage=never",
		files: []string{testlib.Lib(t) + "=/guest/libtieralloc.so", program(t, "plain"),
			program(t, "hotset"), program(t, "torture", "-pthread"),
			program(t, "churn", "-pthread"),
			program(t, "room", "-ldl"), program(t, "refuse"),
			testlib.Tool(t)}}
	g.checks = []check{
		followed("blocks under a hard cap", follow+"TA_NORMAL_HARD=56M", "48 1000 90", 56),
		followed("blocks under a soft cap", follow+"TA_NORMAL_SOFT=56M TA_NORMAL_HARD=72M",
			"48 1000 90", 72),
		followed("parts of a block", follow+"TA_NORMAL_HARD=56M", "48 1000 90 one", 56),
		{name: "all sizes", env: follow + "TA_NORMAL_HARD=60M TA_NORMAL_SOFT=48M",
			script: "/guest/torture 120 30", judge: func(t *testing.T, r *results) {
				most := r.numbers(t, "most")[0][0]
				if most > 60*mib || most < 30*mib {
					t.Errorf("%s were on node 0", kib(most))
				}
			}},
		{name: "churn", env: follow + "TA_NORMAL_HARD=32M TA_NORMAL_SOFT=24M",
			script: "/guest/churn 0 1 600", judge: churnFollowed},
		{name: "room between samples", env: follow + "TA_NORMAL_HARD=48M TA_PURGE_DELAY=0",
			script: "/guest/room 15", judge: func(t *testing.T, r *results) {
				if t.Log(r.stdout); r.numbers(t, "moved")[0][0] == 0 {
					t.Error("nothing moved up between two samples")
				}
			}},
		{name: "heat map", env: follow + "TA_NORMAL_HARD=56M TA_STATS_LIVE=/guest/live.%p",
			script: heatScript, judge: drawn},
		{name: "no cap", env: follow, script: "/guest/plain " + blocks, judge: neverFollowed,
			stderr: "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: no tier has both a cap " +
				"(TA_NORMAL_SOFT, TA_NORMAL_HARD and so on) and slower memory\n"},
		{name: "the kernel moves it", env: follow + "TA_NORMAL_HARD=56M TA_NUMA_BALANCING=1",
			script: "/guest/plain " + blocks, judge: neverFollowed,
			stderr: "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: with " +
				"TA_NUMA_BALANCING=1 the kernel moves this memory\n"},
		{name: "a kernel that moves nothing", env: follow + "TA_NORMAL_HARD=56M TA_NUMA_BALANCING=1",
			plain: true, script: "/guest/refuse -flag /bin/env LD_PRELOAD=/guest/libtieralloc.so " +
				"/guest/plain " + blocks + "; /guest/refuse -flag /guest/tierallocctl check | " +
				`sed -n 's/.*\(TA_NUMA_BALANCING="1"\).*; the library uses: /\1 is /p'`,
			judge: says(`TA_NUMA_BALANCING="1" is 0`), stderr: unmoved},
		{name: "one kind of memory", env: follow + "TA_NORMAL_HARD=56M TA_USE_LIBNUMA=0",
			script: "/guest/plain " + blocks, judge: neverFollowed,
			stderr: "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: the tiers are " +
				"simulated, there is one kind of memory only\n"},
	}
	g.run(t)
}

// unmoved is what a process says on a kernel before 6.12.
const unmoved = `tieralloc: TA_NUMA_BALANCING="1": expected auto or 0, for this kernel moves no ` +
	"memory with a policy (Linux 6.12 does); using 0\n"

// churnFollowed: while threads allocate and free, and memory moves down, node 0 has never more than
// the cap.
func churnFollowed(t *testing.T, r *results) {
	const limit = 32 * mib
	s := r.stats(t, "churn.json")
	var most, last int64
	if _, err := fmt.Sscanf(r.stdout, "most %d last %d\n", &most, &last); err != nil {
		t.Fatalf("%v:\n%s", err, r.stdout)
	}
	if peak := s.Tiers["normal"].Peak; peak > limit || most > limit || most < limit/2 {
		t.Errorf("%s charged, %s on node 0", kib(peak), kib(most))
	}
	f := s.Following
	if f == nil || f.Samples < 2 || f.DownSoft.Bytes+f.DownColder.Bytes == 0 {
		t.Errorf("nothing was followed: %+v", f)
	}
	t.Logf("%s charged, %s on node 0, %+v", kib(s.Tiers["normal"].Peak), kib(most), f)
}

// heatScript draws the heat of hotset.c until a hot block went up and is seen in the fast tier.
const heatScript = `/guest/hotset 48 1000 101 >sets &
for i in $(seq 300); do
	sleep 1
	/guest/tierallocctl heat --once $! >map 2>why && grep -q '|.*@^@ ' map && break
done
/guest/tierallocctl heat --svg picture.svg $!
kill $!
cat map`

// drawn: the map has a hot line that went up and the moves with their causes, and so has the
// picture.
func drawn(t *testing.T, r *results) {
	picture := r.read(t, "picture.svg")
	for text, words := range map[string]string{r.stdout: `\|.*@\^@ (?s:.*)SLOW +NORMAL +hotter\n`,
		picture: `(?s)url\(#tier2\).*>hotter<`} {
		if !regexp.MustCompile(words).MatchString(text) {
			t.Errorf("%q is not in\n%s\n%s", words, text, r.read(t, "why"))
		}
	}
	t.Logf("\n%s", r.stdout)
}

// followed is a run of hotset.c that ends with 90% of the hot set on node 0, and with no more than
// capMiB of the heap there.
func followed(name, env, args string, capMiB int64) check {
	return check{name: name, env: env, script: "/guest/hotset " + args,
		judge: func(t *testing.T, r *results) {
			first, hot := r.numbers(t, "first")[0], r.numbers(t, "hot")[0]
			cold := r.numbers(t, "cold")[0]
			all := hot[0] + hot[1]
			t.Logf("hot pages %v, at first %v; cold %v", hot, first, cold)
			if hot[0]*100 < all*90 || first[0]*100 >= all*90 {
				t.Errorf("less than 90%% of the hot set are on node 0:\n%s", r.stdout)
			}
			if there := (hot[0] + cold[0]) * 4096; there > capMiB*mib {
				t.Errorf("%s are on node 0", kib(there))
			}
			if strings.Contains(r.stdout, "by age") {
				t.Error(r.stdout)
			}
			gained := (hot[0] - first[0]) * 4096
			left := (r.numbers(t, "coldfirst")[0][0] - cold[0]) * 4096
			reported(t, r.stats(t, "hotset.json"), all*4096, gained, left)
		}}
}

// reported holds the report of a process with a hot set of so many bytes to what the process saw:
// node 0 gained so many hot bytes, and so many cold ones left it.
func reported(t *testing.T, s *stats, set, gained, left int64) {
	f := s.Following
	if f == nil {
		t.Fatal("the report does not say that the process follows")
	}
	var moved, hot int64
	for name, tier := range s.Tiers {
		moved += tier.Migrations.Moved * 4096
		hot += tier.Hot
		t.Logf("%s: hot %s, cold %s", name, kib(tier.Hot), kib(tier.Cold))
	}
	t.Logf("%+v; gained %s, left %s", *f, kib(gained), kib(left))
	up, down := f.UpRoom.Bytes+f.UpHotter.Bytes, f.DownColder.Bytes+f.DownSoft.Bytes
	// At the end of the process one move may be under way. It is counted last.
	const one = 2 * mib
	uncounted := moved - up - down
	if up < gained-one || down < left-one || uncounted < 0 ||
		uncounted > one && f.Refused.Regions == 0 {
		t.Errorf("up %s, down %s of %s that moved", kib(up), kib(down), kib(moved))
	}
	if f.Source != "referenced_bits" || f.Samples < 2 || f.Regions == 0 || f.ThreadNs <= 0 {
		t.Errorf("%+v", *f)
	}
	if hot < set/4*3 || hot > set/4*5 {
		t.Errorf("%s were found hot", kib(hot))
	}
}

// neverFollowed: the report of a process that does not follow has nothing of it.
func neverFollowed(t *testing.T, r *results) {
	s := r.stats(t, "plain.json")
	if s.Following != nil {
		t.Errorf("%+v", *s.Following)
	}
	for name, tier := range s.Tiers {
		if tier.Hot != 0 || tier.Cold != 0 {
			t.Errorf("%s: %s hot, %s cold", name, kib(tier.Hot), kib(tier.Cold))
		}
	}
}
