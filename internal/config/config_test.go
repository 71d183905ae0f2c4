package config

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	long := strings.Repeat("d/", PathMax/2)
	for _, c := range []struct {
		env  string // entries separated by spaces
		want outcome
	}{
		{"", defaults()},
		{"TA_DISABLE=1 TA_INTERPOSE=0 TA_STRICT=1", with(func(o *outcome) {
			o.disable, o.interpose, o.strict = true, false, true
		})},
		{"TA_DISABLE=1 TA_DISABLE=0", with(func(o *outcome) { o.disable = true })},
		{"TA_DISABLE= TA_DISABLE=1", defaults()},
		{"TA_DISABLE TA_DISABL=1 TA_DISABLED=1 XTA_DISABLE=1 T TA TA_ = =TA_DISABLE=1",
			defaults()},
		{"TA_LOG=off", with(func(o *outcome) { o.log = LogOff })},
		{"TA_LOG=debug", with(func(o *outcome) { o.log = LogDebug })},
		{"TA_LOG=WARN", with(func(o *outcome) { o.log = LogWarn })},
		{"TA_LOG= TA_PURGE_DELAY= TA_STATS_FILE= TA_LOG_FILE= TA_STRICT=", defaults()},
		{"TA_PURGE_DELAY=0", with(func(o *outcome) { o.purgeDelay = 0 })},
		{"TA_PURGE_DELAY=00s", with(func(o *outcome) { o.purgeDelay = 0 })},
		{"TA_PURGE_DELAY=7ns", with(func(o *outcome) { o.purgeDelay = 7 })},
		{"TA_PURGE_DELAY=7us", with(func(o *outcome) { o.purgeDelay = 7e3 })},
		{"TA_PURGE_DELAY=0010ms", with(func(o *outcome) { o.purgeDelay = 10e6 })},
		{"TA_PURGE_DELAY=3600s", with(func(o *outcome) { o.purgeDelay = 3600e9 })},
		{"TA_STATS_FILE=/t/%e.%p%%.json TA_LOG_FILE=%x", with(func(o *outcome) {
			o.statsFile, o.logFile = "/t/%e.%p%%.json", "%x"
		})},
		{"TA_ONLY=redis-server,,python3*,", defaults()},
		{"TA_ONLY=* TA_DISABLE=1", with(func(o *outcome) { o.disable = true })},
		{"TA_STATS_LIVE=1",
			with(func(o *outcome) { o.statsLive = "/dev/shm/tieralloc.%p" })},
		{"TA_STATS_LIVE=0", defaults()},
		{"TA_STATS_LIVE=/t/%%%p", with(func(o *outcome) { o.statsLive = "/t/%%%p" })},
		{"TA_SECURE=1", with(func(o *outcome) { o.secure = true })},
		{"TA_SECURE=0", defaults()},
		{"TA_SECURE=1,dealloc_type_mismatch=warn",
			with(func(o *outcome) { o.secure, o.secureWarn = true, 1 })},
		{"TA_SECURE=1,delete_size_mismatch=warn,dealloc_type_mismatch=abort",
			with(func(o *outcome) { o.secure, o.secureWarn = true, 2 })},
		{"TA_USE_LIBNUMA=0 TA_BACKGROUND=1 TA_MIGRATE_BW=0", with(func(o *outcome) {
			o.libnuma, o.background, o.migrateBW = false, true, 0
		})},
		{"TA_NUMA_BALANCING=0", with(func(o *outcome) { o.balancing = BalanceNever })},
		{"TA_NUMA_BALANCING=1", with(func(o *outcome) { o.balancing = BalanceAlways })},
		{"TA_NUMA_BALANCING=AUTO", defaults()},
		{"TA_SLOW_BACKEND=memory", defaults()},
		{"TA_SLOW_BACKEND=Swap", with(func(o *outcome) {
			o.slowSwap, o.onSoftcap = true, SoftcapFollow
		})},
		{"TA_SLOW_BACKEND=swap TA_ON_SOFTCAP=warn", with(func(o *outcome) {
			o.slowSwap, o.onSoftcap = true, SoftcapWarn
		})},
		{"TA_ON_SOFTCAP=demote TA_ON_HARDCAP=fail TA_DEFAULT_HINT=prefer_fast TA_THROTTLE=sleep",
			with(func(o *outcome) {
				o.onSoftcap, o.onHardcap, o.hint, o.sleep = SoftcapDemote, HardcapFail,
					HintPreferFast,
					true
			})},
		{"TA_ON_SOFTCAP=Warn TA_ON_HARDCAP=ROUTE_SLOW TA_DEFAULT_HINT=HOT TA_THROTTLE=Account",
			with(func(o *outcome) {
				o.onSoftcap, o.hint = SoftcapWarn, HintHot
			})},
		{"TA_FAST_SOFT=1 TA_FAST_HARD=1K TA_NORMAL_SOFT=2m TA_NORMAL_HARD=3G TA_SLOW_SOFT=64T " +
			"TA_SLOW_HARD=70368744177664",
			with(func(o *outcome) {
				o.tiers[0].Soft, o.tiers[0].Hard = 1, 1<<10
				o.tiers[1].Soft, o.tiers[1].Hard = 2<<20, 3<<30
				o.tiers[2].Soft, o.tiers[2].Hard = 1<<46, 1<<46
			})},
		{"TA_FAST_SOFT=1% TA_FAST_HARD=80% TA_SLOW_HARD=100% TA_NORMAL_SOFT=1G TA_NORMAL_HARD=1%",
			with(func(o *outcome) {
				o.tiers[0].SoftPart, o.tiers[0].HardPart, o.tiers[2].HardPart = 1, 80, 100
				o.tiers[1].Soft, o.tiers[1].HardPart = 1<<30, 1
			})},
		{"TA_FAST_BW=1K TA_FAST_BURST=1 TA_NORMAL_BW=0 TA_NORMAL_LAT=1s TA_SLOW_LAT=0 " +
			"TA_SLOW_BURST=64K TA_SLOW_BW=10g",
			with(func(o *outcome) {
				o.tiers[0].BW, o.tiers[0].Burst = 1024, 1
				o.tiers[1].Lat = 1e9
				o.tiers[2].BW, o.tiers[2].Burst = 10<<30, 64<<10
			})},
		{"TA_MODEL=off", defaults()},
		{"TA_MODEL=CXL", with(func(o *outcome) {
			o.model = ModelCXL
			for i, bw := range []uint64{50 << 30, 20 << 30, 5 << 30} {
				o.tiers[i].BW, o.tiers[i].Lat = bw, []uint64{2e3, 8e3, 40e3}[i]
			}
		})},
		{"TA_FAST_BW=0 TA_FAST_LAT=1us TA_MODEL=cxl TA_NORMAL_LAT=0 TA_SLOW_BURST=1M TA_SLOW_BW=",
			with(func(o *outcome) {
				o.model = ModelCXL
				o.tiers[0].Lat = 1e3
				o.tiers[1].BW = 20 << 30
				o.tiers[2].BW, o.tiers[2].Lat, o.tiers[2].Burst = 5<<30, 40e3, 1<<20
			})},
		{"TA_NODE_FAST=0,2-3 TA_NODE_NORMAL=interleave:63,0-1 TA_NODE_SLOW=Weighted:0-63",
			with(func(o *outcome) {
				o.tiers[0].Nodes = 0b1101
				o.tiers[1].Nodes, o.tiers[1].Spread = 1<<63|3, SpreadInterleave
				o.tiers[2].Nodes, o.tiers[2].Spread = 1<<64-1, SpreadWeighted
			})},
		{"TA_HUGEPAGES=thp", with(func(o *outcome) {
			for i := range o.tiers {
				o.tiers[i].HugePages = HugeThp
			}
		})},
		{"TA_HUGEPAGES=slow:off,FAST:1g", with(func(o *outcome) {
			o.tiers[0].HugePages, o.tiers[2].HugePages = Huge1G, HugeOff
		})},
		{"TA_STATS_FILE=" + long + " TA_LOG_FILE=" + long, with(func(o *outcome) {
			o.statsFile, o.logFile = long, long
		})},
	} {
		entries := strings.Split(c.env, " ")
		if got := run(t, entries); !got.equal(c.want) {
			t.Errorf("%.100s:\n got %+v\nwant %+v", c.env, got, c.want)
		}
		if got := reference(entries); !got.equal(c.want) {
			t.Errorf("the reference on %.100s:\n got %+v\nwant %+v", c.env, got, c.want)
		}
	}
}

func TestParseNoEnvironment(t *testing.T) {
	s := new(Settings)
	if bad := Parse(s, 0); bad != 0 || !s.Interpose || s.PurgeDelay != DefaultPurgeDelay {
		t.Errorf("%d bad, %v, %d", bad, s.Interpose, s.PurgeDelay)
	}
}

// TestEveryDefault: a bad value of each variable says that what is in force without
// it is used, and nothing else changes.
func TestEveryDefault(t *testing.T) {
	names := map[string]bool{}
	for i := uintptr(0); ; i++ {
		name, accepts, fallback, ok := Describe(i)
		if !ok {
			if i != varCount {
				t.Errorf("%d variables are described", i)
			}
			break
		}
		if names[name] || !strings.HasPrefix(name, prefix) || accepts == "" || fallback == "" {
			t.Errorf("%d: %q, %q, %q", i, name, accepts, fallback)
		}
		names[name] = true
		bad := strings.Repeat("x", PathMax+1)
		got := run(t, []string{name + "=" + bad})
		if name == "TA_ONLY" { // TestBadOnly
			continue
		}
		if len(got.lines) != 1 || !strings.HasPrefix(got.lines[0], "tieralloc: "+name+"=") ||
			!strings.HasSuffix(got.lines[0], "; using "+fallback) {
			t.Errorf("%s: %q", name, got.lines)
		}
		got.lines = nil
		if !got.equal(defaults()) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, _, _, ok := Describe(^uintptr(0)); ok {
		t.Error("there is a last variable")
	}
}
