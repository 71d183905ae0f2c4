package config

import (
	"strings"
	"syscall"
	"testing"
	"tieralloc/internal/raw"
	"unsafe"
)

// TestBadValues holds the messages to their wording, and shows that a bad value
// leaves the default, whatever a good one after it says.
func TestBadValues(t *testing.T) {
	const (
		delay = `": expected a time such as 250ms (units ns, us, ms, s), 0 to 3600s; using 250ms`
		file  = `": expected a path of at most 4000 bytes in which % begins %p (process id),` +
			` %e (program name), %r (rank), %h (host name) or %%; using no file`
		logFile = `": expected a path of at most 4000 bytes; using standard error`
		live    = `": expected 0, 1, or an absolute path of at most 4000 bytes with %p (process ` +
			`id) in it,` +
			` in which % begins %p (process id), %e (program name),` +
			` %r (rank), %h (host name) or %%; using 0`
		size = `": expected 1 byte or more, up to 64T (an integer, or one with K, M, G or T); ` +
			`using `
		capped = `": expected 1 byte or more, up to 64T (an integer, or one with K, M, G or T) ` +
			`or 1% to 100% of the tier's memory; using `
		rate  = `": expected bytes per second: 0 (no limit), or 1K to 64T; using `
		lat   = `": expected a time such as 300ns (units ns, us, ms, s), 0 to 1s; using 0`
		nodes = `": expected nodes from 0 to 63, each once, such as 0,2-3, interleave:0,1 or ` +
			`weighted:0,1; using nodes found automatically`
		secured = `": expected 0, 1, or 1 and checks that only warn, as in ` +
			`1,dealloc_type_mismatch=warn` +
			` (checks dealloc_type_mismatch and delete_size_mismatch; abort or warn); using 0`
		huge = `": expected auto, off, thp, 2M or 1G, or these by tier, as in fast:2M,slow:off; ` +
			`using auto`
		hint = `": expected hot, warm, cold, pin_fast or prefer_fast; using warm`
	)
	long := strings.Repeat("x", PathMax+1)
	for _, c := range []struct{ entry, want string }{
		{"TA_DISABLE=2", `TA_DISABLE="2": expected 0 or 1; using 0`},
		{"TA_INTERPOSE=no", `TA_INTERPOSE="no": expected 0 or 1; using 1`},
		{"TA_STRICT=01", `TA_STRICT="01": expected 0 or 1; using 0`},
		{"TA_LOG=warning", `TA_LOG="warning": expected off, error, warn, info or debug; using off`},
		{"TA_PURGE_DELAY=10x", `TA_PURGE_DELAY="10x` + delay},
		{"TA_PURGE_DELAY=10", `TA_PURGE_DELAY="10` + delay},
		{"TA_PURGE_DELAY=ms", `TA_PURGE_DELAY="ms` + delay},
		{"TA_PURGE_DELAY=-1s", `TA_PURGE_DELAY="-1s` + delay},
		{"TA_PURGE_DELAY= 1s", `TA_PURGE_DELAY=" 1s` + delay},
		{"TA_PURGE_DELAY=1.5s", `TA_PURGE_DELAY="1.5s` + delay},
		{"TA_PURGE_DELAY=3601s", `TA_PURGE_DELAY="3601s` + delay},
		{"TA_PURGE_DELAY=3600000000001ns", `TA_PURGE_DELAY="3600000000001ns` + delay},
		{"TA_PURGE_DELAY=18446744073709551616ns", `TA_PURGE_DELAY="18446744073709551616ns` + delay},
		{"TA_PURGE_DELAY=1s\n\x1b[0m\x80", `TA_PURGE_DELAY="1s??[0m?` + delay},
		{"TA_STATS_FILE=a%q", `TA_STATS_FILE="a%q` + file},
		{"TA_STATS_FILE=a%", `TA_STATS_FILE="a%` + file},
		{"TA_STATS_FILE=%%%", `TA_STATS_FILE="%%%` + file},
		{"TA_STATS_FILE=" + long, `TA_STATS_FILE="` + long[:shownMax] + `...` + file},
		{"TA_STATS_LIVE=2", `TA_STATS_LIVE="2` + live},
		{"TA_STATS_LIVE=on", `TA_STATS_LIVE="on` + live},
		{"TA_STATS_LIVE=x/%p", `TA_STATS_LIVE="x/%p` + live},
		{"TA_STATS_LIVE=/x/%e", `TA_STATS_LIVE="/x/%e` + live},
		{"TA_STATS_LIVE=/x/%%p", `TA_STATS_LIVE="/x/%%p` + live},
		{"TA_STATS_LIVE=/x/%p%", `TA_STATS_LIVE="/x/%p%` + live},
		{"TA_STATS_LIVE=/x/%p%s", `TA_STATS_LIVE="/x/%p%s` + live},
		{"TA_STATS_LIVE=/%p" + long, `TA_STATS_LIVE="/%p` + long[:shownMax-3] + `...` + live},
		{"TA_FAST_SOFT=0", `TA_FAST_SOFT="0` + capped + `no soft cap`},
		{"TA_NORMAL_SOFT=1GB", `TA_NORMAL_SOFT="1GB` + capped + `no soft cap`},
		{"TA_SLOW_SOFT=1GiB", `TA_SLOW_SOFT="1GiB` + capped + `no soft cap`},
		{"TA_FAST_HARD=lots", `TA_FAST_HARD="lots` + capped + `no hard cap`},
		{"TA_NORMAL_HARD=K", `TA_NORMAL_HARD="K` + capped + `no hard cap`},
		{"TA_SLOW_HARD=65T", `TA_SLOW_HARD="65T` + capped + `no hard cap`},
		{"TA_SLOW_HARD=70368744177665", `TA_SLOW_HARD="70368744177665` + capped + `no hard cap`},
		{"TA_SLOW_HARD=1 G", `TA_SLOW_HARD="1 G` + capped + `no hard cap`},
		{"TA_SLOW_HARD=1.5G", `TA_SLOW_HARD="1.5G` + capped + `no hard cap`},
		{"TA_SLOW_HARD=-1", `TA_SLOW_HARD="-1` + capped + `no hard cap`},
		{"TA_SLOW_HARD=0x10", `TA_SLOW_HARD="0x10` + capped + `no hard cap`},
		{"TA_SLOW_HARD=18446744073709551617",
			`TA_SLOW_HARD="18446744073709551617` + capped + `no hard cap`},
		{"TA_SLOW_HARD=0%", `TA_SLOW_HARD="0%` + capped + `no hard cap`},
		{"TA_SLOW_HARD=101%", `TA_SLOW_HARD="101%` + capped + `no hard cap`},
		{"TA_SLOW_SOFT=%", `TA_SLOW_SOFT="%` + capped + `no soft cap`},
		{"TA_SLOW_SOFT=1K%", `TA_SLOW_SOFT="1K%` + capped + `no soft cap`},
		{"TA_FAST_BURST=5%", `TA_FAST_BURST="5%` + size +
			`64K or 10ms of the bandwidth, the larger`},
		{"TA_FAST_BW=1023", `TA_FAST_BW="1023` + rate + `no limit`},
		{"TA_NORMAL_BW=fast", `TA_NORMAL_BW="fast` + rate + `no limit`},
		{"TA_MIGRATE_BW=1", `TA_MIGRATE_BW="1` + rate + `1G`},
		{"TA_FAST_BURST=0", `TA_FAST_BURST="0` + size + `64K or 10ms of the bandwidth, the larger`},
		{"TA_SLOW_LAT=1001ms", `TA_SLOW_LAT="1001ms` + lat},
		{"TA_SLOW_LAT=5", `TA_SLOW_LAT="5` + lat},
		{"TA_NODE_FAST=64", `TA_NODE_FAST="64` + nodes},
		{"TA_NODE_NORMAL=1-0", `TA_NODE_NORMAL="1-0` + nodes},
		{"TA_NODE_SLOW=0,,1", `TA_NODE_SLOW="0,,1` + nodes},
		{"TA_NODE_SLOW=0,1,", `TA_NODE_SLOW="0,1,` + nodes},
		{"TA_NODE_SLOW=0,1,0", `TA_NODE_SLOW="0,1,0` + nodes},
		{"TA_NODE_SLOW=0-2,1-3", `TA_NODE_SLOW="0-2,1-3` + nodes},
		{"TA_NODE_SLOW=-1", `TA_NODE_SLOW="-1` + nodes},
		{"TA_NODE_SLOW=0-1-2", `TA_NODE_SLOW="0-1-2` + nodes},
		{"TA_NODE_SLOW=0, 1", `TA_NODE_SLOW="0, 1` + nodes},
		{"TA_NODE_SLOW=bind:0", `TA_NODE_SLOW="bind:0` + nodes},
		{"TA_NODE_SLOW=interleave:", `TA_NODE_SLOW="interleave:` + nodes},
		{"TA_NODE_SLOW=18446744073709551616", `TA_NODE_SLOW="18446744073709551616` + nodes},
		{"TA_HUGEPAGES=2MB", `TA_HUGEPAGES="2MB` + huge},
		{"TA_HUGEPAGES=fast", `TA_HUGEPAGES="fast` + huge},
		{"TA_HUGEPAGES=fast:", `TA_HUGEPAGES="fast:` + huge},
		{"TA_HUGEPAGES=quick:2M", `TA_HUGEPAGES="quick:2M` + huge},
		{"TA_HUGEPAGES=fast:2M,fast:2M", `TA_HUGEPAGES="fast:2M,fast:2M` + huge},
		{"TA_HUGEPAGES=2M,slow:off", `TA_HUGEPAGES="2M,slow:off` + huge},
		{"TA_HUGEPAGES=fast:2M,", `TA_HUGEPAGES="fast:2M,` + huge},
		{"TA_ON_SOFTCAP=fail",
			`TA_ON_SOFTCAP="fail": expected reroute, warn, demote or follow; using reroute`},
		{"TA_ON_HARDCAP=spill",
			`TA_ON_HARDCAP="spill": expected route_slow or fail; using route_slow`},
		{"TA_SLOW_BACKEND=zram",
			`TA_SLOW_BACKEND="zram": expected memory or swap; using memory`},
		{"TA_DEFAULT_HINT=tepid", `TA_DEFAULT_HINT="tepid` + hint},
		{"TA_DEFAULT_HINT=fast", `TA_DEFAULT_HINT="fast` + hint},
		{"TA_MODEL=hbm", `TA_MODEL="hbm": expected off, or cxl (50, 20 and 5 GiB/s, 2, 8 and ` +
			`40us); using off`},
		{"TA_THROTTLE=1", `TA_THROTTLE="1": expected account or sleep; using account`},
		{"TA_SECURE=2", `TA_SECURE="2` + secured},
		{"TA_SECURE=on", `TA_SECURE="on` + secured},
		{"TA_SECURE=1,", `TA_SECURE="1,` + secured},
		{"TA_SECURE=0,delete_size_mismatch=warn",
			`TA_SECURE="0,delete_size_mismatch=warn` + secured},
		{"TA_SECURE=1,overflow=warn", `TA_SECURE="1,overflow=warn` + secured},
		{"TA_SECURE=1,delete_size_mismatch", `TA_SECURE="1,delete_size_mismatch` + secured},
		{"TA_SECURE=1,delete_size_mismatch=off", `TA_SECURE="1,delete_size_mismatch=off` + secured},
		{"TA_SECURE=1,delete_size_mismatch=warn,delete_size_mismatch=warn",
			`TA_SECURE="1,delete_size_mismatch=warn,delete_size_mismatch=warn` + secured},
		{"TA_BACKGROUND=yes", `TA_BACKGROUND="yes": expected 0 or 1; using 0`},
		{"TA_NUMA_BALANCING=2", `TA_NUMA_BALANCING="2": expected auto, 0 or 1; using auto`},
		{"TA_NUMA_BALANCING=01", `TA_NUMA_BALANCING="01": expected auto, 0 or 1; using auto`},
		{"TA_USE_LIBNUMA=no", `TA_USE_LIBNUMA="no": expected 0 or 1; using 1`},
		{"TA_LOG_FILE=" + long, `TA_LOG_FILE="` + long[:shownMax] + `...` + logFile},
	} {
		name, _, _ := strings.Cut(c.entry, "=")
		entries := []string{c.entry, name + "=1"}
		want := defaults()
		want.lines = []string{"tieralloc: " + c.want}
		if got := run(t, entries); !got.equal(want) {
			t.Errorf("%.100q:\n got %+v\nwant %+v", c.entry, got, want)
		}
		if got := reference(entries); !got.equal(want) {
			t.Errorf("the reference on %.100q:\n got %+v\nwant %+v", c.entry, got, want)
		}
	}
}

// TestContradictions: what one variable says against another is dropped, whichever
// comes first, and the others stay.
func TestContradictions(t *testing.T) {
	long := strings.Repeat("0", 90) + "9K"
	for _, c := range []struct {
		env  string
		want outcome
	}{
		{"TA_FAST_SOFT=2G TA_FAST_HARD=1G", with(func(o *outcome) {
			o.tiers[0].Hard = 1 << 30
			o.lines = []string{`tieralloc: TA_FAST_SOFT="2G": expected at most ` +
				`TA_FAST_HARD="1G"; using no soft cap`}
		})},
		{"TA_SLOW_HARD=4095 TA_NORMAL_SOFT=1G TA_SLOW_SOFT=4K TA_SLOW_SOFT=1",
			with(func(o *outcome) {
				o.tiers[1].Soft, o.tiers[2].Hard = 1<<30, 4095
				o.lines = []string{`tieralloc: TA_SLOW_SOFT="4K": expected at most ` +
					`TA_SLOW_HARD="4095"; using no soft cap`}
			})},
		{"TA_FAST_SOFT=1G TA_FAST_HARD=1G", with(func(o *outcome) {
			o.tiers[0].Soft,
				o.tiers[0].Hard = 1<<30, 1<<30
		})},
		{"TA_FAST_SOFT=2G TA_FAST_HARD=x", with(func(o *outcome) {
			o.tiers[0].Soft = 2 << 30
			o.lines = []string{`tieralloc: TA_FAST_HARD="x": expected 1 byte or more, up to 64T ` +
				`(an integer, or one with` +
				` K, M, G or T) or 1% to 100% of the tier's memory; using no hard cap`}
		})},
		{"TA_NORMAL_BURST=1M TA_FAST_BW=1M", with(func(o *outcome) {
			o.tiers[0].BW = 1 << 20
			o.lines = []string{`tieralloc: TA_NORMAL_BURST="1M": expected a limit in ` +
				`TA_NORMAL_BW; using no burst`}
		})},
		{"TA_NORMAL_BURST=1M TA_NORMAL_BW=0", with(func(o *outcome) {
			o.lines = []string{`tieralloc: TA_NORMAL_BURST="1M": expected a limit in ` +
				`TA_NORMAL_BW="0"; using no burst`}
		})},
		{"TA_SLOW_BURST=1 TA_FAST_BURST=1 TA_SLOW_HARD=1 TA_SLOW_SOFT=2", with(func(o *outcome) {
			o.tiers[2].Hard = 1
			o.lines = []string{`tieralloc: TA_FAST_BURST="1": expected a limit in TA_FAST_BW; ` +
				`using no burst`,
				`tieralloc: TA_SLOW_SOFT="2": expected at most TA_SLOW_HARD="1"; using no soft cap`,
				`tieralloc: TA_SLOW_BURST="1": expected a limit in TA_SLOW_BW; using no burst`}
		})},
		{"TA_NORMAL_SOFT=" + long + " TA_NORMAL_HARD=" + strings.Repeat("0", 80) + "1",
			with(func(o *outcome) {
				o.tiers[1].Hard = 1
				o.lines = []string{`tieralloc: TA_NORMAL_SOFT="` + long[:80] +
					`...": expected at most TA_NORMAL_HARD="` + long[:80] +
					`..."; using no soft cap`}
			})},
	} {
		entries := strings.Split(c.env, " ")
		if got := run(t, entries); !got.equal(c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.env, got, c.want)
		}
		if got := reference(entries); !got.equal(c.want) {
			t.Errorf("the reference on %s:\n got %+v\nwant %+v", c.env, got, c.want)
		}
	}
}

// TestLongestLine shows that the lines for the longest values are complete: a
// raw.Line drops what passes its size.
func TestLongestLine(t *testing.T) {
	room := int(unsafe.Sizeof(raw.Line{})) - 9
	for i := uintptr(0); i < varCount; i++ {
		v := &variables[i]
		n := len(`tieralloc: ="...": expected ; using `) + len(v.name) + shownMax + len(v.accepts) +
			len(v.fallback)
		if n > room {
			t.Errorf("%s: a line of %d bytes, room for %d", v.name, n, room)
		}
	}
	for f := badCondition; f <= tooLong; f++ {
		what, accepts := f.words()
		n := len(`tieralloc: TA_RULES="...":  "...": expected ; using `) + ruleMax + partMax +
			len(what) + len(accepts) + len(noRules)
		if n > room {
			t.Errorf("%s: a line of %d bytes, room for %d", what, n, room)
		}
	}
}

// TestStandardError shows that Parse complains on descriptor 2, one write a line.
func TestStandardError(t *testing.T) {
	var fds [2]int
	// Each read of a socket of this kind returns what one write sent.
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fds[0])
	env := newEnviron(t, []string{"TA_LOG=x", "TA_STRICT=1", "TA_DISABLE=x"})
	defer env.clobber()
	saved, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	s := new(Settings)
	if err := syscall.Dup2(fds[1], 2); err != nil {
		t.Fatal(err)
	}
	bad := Parse(s, env.addr())
	if err := syscall.Dup2(saved, 2); err != nil {
		t.Fatal(err)
	}
	syscall.Close(saved)
	syscall.Close(fds[1])
	var got []string
	buf := make([]byte, 4096)
	for {
		n, err := syscall.Read(fds[0], buf)
		if err != nil || n == 0 {
			break
		}
		got = append(got, string(buf[:n]))
	}
	want := "tieralloc: TA_LOG=\"x\": expected off, error, warn, info or debug; using off\n|" +
		"tieralloc: TA_DISABLE=\"x\": expected 0 or 1; using 0\n"
	if bad != 2 || !s.Strict || strings.Join(got, "|") != want {
		t.Errorf("%d bad, strict %v, %q", bad, s.Strict, got)
	}
}
