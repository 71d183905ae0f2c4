package tiers_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// bad is a configuration with one mistake in it.
type bad struct {
	env     string // variables with blanks between
	name    string // the variable of the line
	value   string // what the line shows of it
	accepts string // a part of what the line says is accepted
}

var badSettings = []bad{
	{"TA_FAST_SOFT=2G TA_FAST_HARD=1G", "TA_FAST_SOFT", "2G", `at most TA_FAST_HARD="1G"`},
	{"TA_SLOW_HARD=1023 TA_SLOW_SOFT=1K", "TA_SLOW_SOFT", "1K", `at most TA_SLOW_HARD="1023"`},
	{"TA_NORMAL_BURST=1M", "TA_NORMAL_BURST", "1M", "TA_NORMAL_BW"},
	{"TA_FAST_HARD=10X", "TA_FAST_HARD", "10X", "K, M, G or T"},
	{"TA_FAST_HARD=-1", "TA_FAST_HARD", "-1", "K, M, G or T"},
	{"TA_NORMAL_SOFT=1.5G", "TA_NORMAL_SOFT", "1.5G", "an integer"},
	{"TA_NORMAL_HARD=0", "TA_NORMAL_HARD", "0", "1 byte or more"},
	{"TA_SLOW_SOFT=65T", "TA_SLOW_SOFT", "65T", "64T"},
	{"TA_SLOW_SOFT=99999999999999999999", "TA_SLOW_SOFT", "99999999999999999999", "64T"},
	{"TA_SLOW_SOFT=M", "TA_SLOW_SOFT", "M", "64T"},
	{"TA_FAST_BW=5", "TA_FAST_BW", "5", "bytes per second"},
	{"TA_FAST_BW=fast", "TA_FAST_BW", "fast", "bytes per second"},
	{"TA_FAST_LAT=5", "TA_FAST_LAT", "5", "ns, us, ms, s"},
	{"TA_SLOW_LAT=2s", "TA_SLOW_LAT", "2s", "1s"},
	{"TA_MIGRATE_BW=-3", "TA_MIGRATE_BW", "-3", "bytes per second"},
	{"TA_ON_SOFTCAP=stop", "TA_ON_SOFTCAP", "stop", "reroute, warn, demote or follow"},
	{"TA_ON_HARDCAP=route", "TA_ON_HARDCAP", "route", "route_slow or fail"},
	{"TA_SLOW_BACKEND=disk", "TA_SLOW_BACKEND", "disk", "memory or swap"},
	{"TA_DEFAULT_HINT=lukewarm", "TA_DEFAULT_HINT", "lukewarm",
		"hot, warm, cold, pin_fast or prefer_fast"},
	{"TA_THROTTLE=nap", "TA_THROTTLE", "nap", "account or sleep"},
	{"TA_BACKGROUND=yes", "TA_BACKGROUND", "yes", "0 or 1"},
	{"TA_SECURE=2", "TA_SECURE", "2", "0, 1, or 1"},
	{"TA_SECURE=1,overflow=warn", "TA_SECURE", "1,overflow=warn", "dealloc_type_mismatch"},
	{"TA_NUMA_BALANCING=yes", "TA_NUMA_BALANCING", "yes", "auto, 0 or 1"},
	{"TA_USE_LIBNUMA=2", "TA_USE_LIBNUMA", "2", "0 or 1"},
	{"TA_HUGEPAGES=4M", "TA_HUGEPAGES", "4M", "off, thp, 2M or 1G"},
	{"TA_HUGEPAGES=medium:thp", "TA_HUGEPAGES", "medium:thp", "fast:2M"},
	{"TA_HUGEPAGES=fast:thp,fast:off", "TA_HUGEPAGES", "fast:thp,fast:off", "fast:2M"},
	{"TA_NODE_FAST=64", "TA_NODE_FAST", "64", "0 to 63"},
	{"TA_NODE_FAST=zero", "TA_NODE_FAST", "zero", "0,2-3"},
	{"TA_NODE_SLOW=3-2", "TA_NODE_SLOW", "3-2", "0,2-3"},
	{"TA_NODE_SLOW=striped:0", "TA_NODE_SLOW", "striped:0", "interleave:0,1"},
	{"TA_USE_LIBNUMA=1 TA_NODE_NORMAL=63", "TA_NODE_NORMAL", "63", "node 63 does not exist"},
	{"TA_NODE_FAST=0 TA_USE_LIBNUMA=0", "TA_NODE_FAST", "0", "TA_USE_LIBNUMA=0"},
	{"TA_STATS_LIVE=relative/%p", "TA_STATS_LIVE", "relative/%p", "absolute path"},
	{"TA_STATS_LIVE=/tmp/all", "TA_STATS_LIVE", "/tmp/all", "%p"},
	{"TA_STATS_LIVE=/tmp/%x%p", "TA_STATS_LIVE", "/tmp/%x%p", "%e"},
	{"TA_RULES=size>=1M:tepid", "TA_RULES", "size>=1M:tepid",
		`unknown hint "tepid": expected hot, warm, cold`},
	{"TA_RULES=colour=red:cold", "TA_RULES", "colour=red:cold", `"colour=red": expected size>=N`},
	{"TA_RULES=size>=big:cold", "TA_RULES", "size>=big:cold",
		`bad size "size>=big": expected 1 to 64T`},
	{"TA_RULES=size>=1M", "TA_RULES", "size>=1M", "missing hint"},
	{"TA_RULES=size>=2M,size<1M:cold", "TA_RULES", "size>=2M,size<1M:cold", "no size fits"},
	{"TA_RULES=thread=a,thread=b:cold", "TA_RULES", "thread=a,thread=b:cold", "at most once"},
	{"TA_RULES=lib=/usr/lib/libc.so:cold", "TA_RULES", "lib=/usr/lib/libc.so:cold",
		"without its folders"},
	{"TA_RULES=program=:cold", "TA_RULES", "program=:cold", "empty pattern"},
	{"TA_RULES=size>=1M:hot;thread:cold", "TA_RULES", "thread:cold", "unknown condition"},
}

// isLine reports whether text is exactly one line that holds the words.
func isLine(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n") &&
		strings.HasPrefix(text, "tieralloc: ")
}

// TestBadInput: a mistake is one line that names the variable, shows the value and
// says what is accepted and what is used instead. The program runs; with TA_STRICT=1
// it does not.
func TestBadInput(t *testing.T) {
	driver := compile(t, "driver.c")
	if _, err := os.Stat("/sys/devices/system/node/node63"); err == nil {
		t.Skip("the machine has 64 nodes")
	}
	for _, b := range badSettings {
		t.Run(b.env, func(t *testing.T) {
			c := cmd(strings.Fields(b.env), driver)
			c.Stdin = "new a 5 hot 1000\nnew b 2 malloc 5M"
			r := testlib.Run(t, c)
			if r.Status != 0 || r.Stdout != "fast*5\nnormal*2\n" {
				t.Errorf("status %d, %q", r.Status, r.Stdout)
			}
			if !isLine(r.Stderr, b.name+`="`+b.value+`"`, "expected ", b.accepts, "; using ") {
				t.Errorf("complaint %q", r.Stderr)
			}
			line := r.Stderr
			c.Env = append(c.Env, "TA_STRICT=1")
			if r := testlib.Run(t, c); r.Status != 78 || r.Stdout != "" || r.Stderr != line {
				t.Errorf("strict: %+v", r)
			}
		})
	}
}

// TestBadInputTogether: several mistakes are as many lines, what is right holds, and a
// value cannot play with the terminal or pass the length of a line.
func TestBadInputTogether(t *testing.T) {
	driver := compile(t, "driver.c")
	run := func(env ...string) testlib.Result {
		c := cmd(env, driver)
		c.Stdin = "new a 2 hot 6M\nnew b 1 malloc 500"
		return testlib.Run(t, c)
	}
	r := run("TA_FAST_HARD=7M", "TA_FAST_SOFT=8M", "TA_RULES=size>=1M:hot;size:cold;size>1:warmer",
		"TA_DEFAULT_HINT=", "TA_THROTTLE=no")
	if r.Status != 0 || r.Stdout != "fast*1 normal*1\nnormal*1\n" ||
		strings.Count(r.Stderr, "\n") != 4 {
		t.Errorf("%+v", r)
	}
	r = run("TA_DEFAULT_HINT=\x1b[31mred\n\x07", "TA_RULES="+strings.Repeat("x", 5000))
	lines := strings.SplitAfter(r.Stderr, "\n")
	if r.Status != 0 || len(lines) != 3 || strings.ContainsAny(r.Stderr, "\x1b\x07") ||
		!strings.Contains(lines[0], `"?[31mred??"`) ||
		len(lines[1]) > 1000 || !strings.Contains(lines[1], `..."`) {
		t.Errorf("%+v", r)
	}
	if r := run("TA_FAST_COLOUR=red", "TA_MEDIUM_HARD=5", "TA_FAST_HARD="); r.Stderr != "" ||
		r.Status != 0 {
		t.Errorf("variables that are not ours: %+v", r)
	}
	// A value that occurs in the accepted forms in upper case is accepted, too.
	p := play(t, []string{"TA_DEFAULT_HINT=Cold", "TA_ON_SOFTCAP=WARN", "TA_FAST_HARD=1g",
		"TA_RULES=SIZE>=1m:HOT"}, "new a 1 malloc 5 => slow*1\nnew b 1 malloc 1M => fast*1")
	if p.exit.Tiers.Fast.Hard != 1<<30 || p.exit.Policy.OnSoftcap != "warn" {
		t.Errorf("policy %+v", p.exit.Policy)
	}
}

// TestOneNode: on a machine with one node, to name it changes nothing.
func TestOneNode(t *testing.T) {
	if severalNodes() {
		t.Skip("the machine has several nodes")
	}
	for _, value := range []string{"0", "0-0", "interleave:0", "weighted:0"} {
		p := play(t, []string{"TA_NODE_FAST=" + value, "TA_NODE_SLOW=" + value},
			fmt.Sprintf("new a 2 hot 6M => fast*2\nnew b 2 cold %d => slow*2", 100))
		if p.exit.Backend != "simulated" {
			t.Errorf("%s: the backend is %s", value, p.exit.Backend)
		}
	}
}
