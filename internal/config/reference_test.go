package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reference is Parse written plainly, in ordinary Go.
func reference(entries []string) outcome {
	o := defaults()
	seen, excluded := map[string]string{}, false
	for _, entry := range entries {
		name, val, ok := strings.Cut(entry, "=")
		if _, met := seen[name]; !ok || met {
			continue
		}
		seen[name] = val
		if val == "" {
			continue
		}
		if name == "TA_RULES" {
			o.referRules(val)
		} else if accepts, using, ok := o.refer(name, val); !ok {
			o.complain(name, val, accepts, using)
			excluded = excluded || name == "TA_ONLY"
		}
	}
	o.disable = o.disable || excluded
	if o.slowSwap && seen["TA_ON_SOFTCAP"] == "" {
		o.onSoftcap = SoftcapFollow
	}
	if o.model == ModelCXL {
		for i, t := range tierNames {
			if seen["TA_"+t+"_BW"] == "" {
				o.tiers[i].BW = []uint64{50, 20, 5}[i] << 30
			}
			if seen["TA_"+t+"_LAT"] == "" {
				o.tiers[i].Lat = []uint64{2, 8, 40}[i] * 1000
			}
		}
	}
	for i, t := range tierNames {
		o.reconcile(seen, "TA_"+t, &o.tiers[i])
	}
	caps := Tier{Soft: o.cuda.soft, Hard: o.cuda.hard}
	o.reconcile(seen, "TA_CUDA", &caps)
	o.cuda.soft = caps.Soft
	return o
}

func (o *outcome) complain(name, val, accepts, using string) {
	o.lines = append(o.lines, fmt.Sprintf("tieralloc: %s=\"%s\": expected %s; using %s", name,
		shown(val, 160), accepts, using))
}

func (o *outcome) reconcile(env map[string]string, name string, t *Tier) {
	pair := func(a, relation, b, using string) {
		line := fmt.Sprintf("tieralloc: %s=\"%s\": expected %s%s", a, shown(env[a], 80), relation,
			b)
		if env[b] != "" {
			line += fmt.Sprintf("=\"%s\"", shown(env[b], 80))
		}
		o.lines = append(o.lines, line+"; using "+using)
	}
	if t.Soft > t.Hard && t.Hard > 0 || t.SoftPart > t.HardPart && t.HardPart > 0 {
		pair(name+"_SOFT", "at most ", name+"_HARD", "no soft cap")
		t.Soft, t.SoftPart = 0, 0
	}
	if t.Burst > 0 && t.BW == 0 {
		pair(name+"_BURST", "a limit in ", name+"_BW", "no burst")
		t.Burst = 0
	}
}

var (
	tierNames       = []string{"FAST", "NORMAL", "SLOW"}
	timePattern     = regexp.MustCompile(`^([0-9]+)(ns|us|ms|s)$`)
	sizePattern     = regexp.MustCompile(`^([0-9]+)([kKmMgGtT]?)$`)
	zeroPattern     = regexp.MustCompile(`^0+$`)
	templatePattern = regexp.MustCompile(`^(?s:[^%]|%[perh%])*$`)
	livePattern     = regexp.MustCompile(`^/(?s:[^%]|%[erh%])*%p(?s:[^%]|%[perh%])*$`)
	nodePattern     = regexp.MustCompile(`^([0-9]+)(?:-([0-9]+))?$`)
	units           = map[string]uint64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
	shifts          = map[string]uint{"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
	levels          = map[string]uint32{"off": 0, "error": 1, "warn": 2, "info": 3, "debug": 4}
	balances        = map[string]uint32{"auto": 0, "0": 1, "1": 2}
	softcaps        = map[string]uint32{"reroute": 0, "warn": 1, "demote": 2}
	hardcaps        = map[string]uint32{"route_slow": 0, "fail": 1}
	hints           = map[string]uint32{"hot": 0, "warm": 1, "cold": 2, "pin_fast": 3,
		"prefer_fast": 4}
	huges     = map[string]uint32{"auto": 0, "off": 1, "thp": 2, "2m": 3, "1g": 4}
	switches  = map[string]bool{"0": false, "1": true}
	throttles = map[string]bool{"account": false, "sleep": true}
)

const (
	sizes   = "1 byte or more, up to 64T (an integer, or one with K, M, G or T)"
	caps    = sizes + " or 1% to 100% of the tier's memory"
	rates   = "bytes per second: 0 (no limit), or 1K to 64T"
	lats    = "a time such as 300ns (units ns, us, ms, s), 0 to 1s"
	pathMsg = "a path of at most 4000 bytes"
	tmplMsg = pathMsg + " in which % begins " + tmplSeq
	tmplSeq = "%p (process id), %e (program name), %r (rank), %h (host name) or %%"
)

// store puts a good value in its place.
func store[T any](dst *T, v T, ok bool) bool {
	if ok {
		*dst = v
	}
	return ok
}

func choose[T any](dst *T, words map[string]T, val string) bool {
	v, ok := words[val]
	return store(dst, v, ok)
}

// refer stores one good value; for a bad one it returns the words of the message.
func (o *outcome) refer(name, val string) (accepts, using string, ok bool) {
	word := asciiLower(val)
	for i, t := range tierNames {
		if what, found := strings.CutPrefix(name, "TA_"+t+"_"); found && what != "BACKEND" {
			return o.tiers[i].refer(what, val)
		}
		if name == "TA_NODE_"+t {
			return "nodes from 0 to 63, each once, such as 0,2-3, interleave:0,1 or weighted:0,1",
				"nodes found automatically",
				o.tiers[i].referNodes(val)
		}
	}
	if what, found := strings.CutPrefix(name, "TA_CUDA"); found {
		return o.cuda.refer(what, val)
	}
	for n, s := range map[string]*bool{"TA_DISABLE": &o.disable, "TA_INTERPOSE": &o.interpose,
		"TA_STRICT":      &o.strict,
		"TA_USE_LIBNUMA": &o.libnuma, "TA_BACKGROUND": &o.background} {
		if n == name {
			using = "0"
			if name == "TA_INTERPOSE" || name == "TA_USE_LIBNUMA" {
				using = "1"
			}
			return "0 or 1", using, choose(s, switches, val)
		}
	}
	switch name {
	case "TA_ONLY":
		return "names of programs such as redis-server,python3*, without folders," +
			" * only at a name's end", "no program", isNameList(val)
	case "TA_LOG":
		return "off, error, warn, info or debug", "off", choose(&o.log, levels, word)
	case "TA_NUMA_BALANCING":
		return "auto, 0 or 1", "auto", choose(&o.balancing, balances, word)
	case "TA_ON_SOFTCAP":
		return "reroute, warn, demote or follow", "reroute", choose(&o.onSoftcap, softcaps, word)
	case "TA_ON_HARDCAP":
		return "route_slow or fail", "route_slow", choose(&o.onHardcap, hardcaps, word)
	case "TA_SLOW_BACKEND":
		return "memory or swap", "memory", choose(&o.slowSwap,
			map[string]bool{"memory": false, "swap": true}, word)
	case "TA_DEFAULT_HINT":
		return "hot, warm, cold, pin_fast or prefer_fast", "warm", choose(&o.hint, hints, word)
	case "TA_THROTTLE":
		return "account or sleep", "account", choose(&o.sleep, throttles, word)
	case "TA_MODEL":
		return "off, or cxl (50, 20 and 5 GiB/s, 2, 8 and 40us)", "off",
			choose(&o.model, map[string]uint32{"off": ModelOff, "cxl": ModelCXL}, word)
	case "TA_HUGEPAGES":
		return "auto, off, thp, 2M or 1G, or these by tier, as in fast:2M,slow:off",
			"auto", o.referHuge(word)
	case "TA_SECURE":
		return "0, 1, or 1 and checks that only warn, as in 1,dealloc_type_mismatch=warn" +
				" (checks dealloc_type_mismatch and delete_size_mismatch; abort or warn)", "0",
			o.referSecure(word)
	case "TA_MIGRATE_BW":
		bw, good := referRate(val)
		return rates, "1G", store(&o.migrateBW, bw, good)
	case "TA_PURGE_DELAY":
		d, good := referTime(val, 3600e9)
		return "a time such as 250ms (units ns, us, ms, s), 0 to 3600s", "250ms",
			store(&o.purgeDelay, d, good)
	case "TA_LOG_FILE":
		return pathMsg, "standard error", store(&o.logFile, val, len(val) <= 4000)
	case "TA_STATS_FILE":
		return tmplMsg, "no file", store(&o.statsFile, val, isTemplate(val))
	case "TA_STATS_LIVE":
		path := map[string]string{"0": "", "1": "/dev/shm/tieralloc.%p"}
		if livePattern.MatchString(latin(val)) && len(val) <= 4000 {
			path[val] = val
		}
		return "0, 1, or an absolute path of at most 4000 bytes with %p (process id) in it, in " +
			"which % begins " +
			tmplSeq, "0", choose(&o.statsLive, path, val)
	}
	return "", "", true
}

func (t *Tier) refer(what, val string) (accepts, using string, ok bool) {
	size, isSize := referSize(val)
	switch what {
	case "SOFT":
		return caps, "no soft cap", referPart(&t.SoftPart, val) || store(&t.Soft, size, isSize)
	case "HARD":
		return caps, "no hard cap", referPart(&t.HardPart, val) || store(&t.Hard, size, isSize)
	case "BURST":
		return sizes, "64K or 10ms of the bandwidth, the larger", store(&t.Burst, size, isSize)
	case "BW":
		bw, good := referRate(val)
		return rates, "no limit", store(&t.BW, bw, good)
	case "LAT":
		d, good := referTime(val, 1e9)
		return lats, "0", store(&t.Lat, d, good)
	}
	return "", "", true
}

func (t *Tier) referNodes(val string) bool {
	spread, list := SpreadPrefer, val
	if how, rest, found := strings.Cut(val, ":"); found {
		switch list = rest; asciiLower(how) {
		case "interleave":
			spread = SpreadInterleave
		case "weighted":
			spread = SpreadWeighted
		default:
			return false
		}
	}
	var nodes uint64
	for _, part := range strings.Split(list, ",") {
		m := nodePattern.FindStringSubmatch(part)
		if m == nil {
			return false
		}
		if m[2] == "" {
			m[2] = m[1]
		}
		first, err1 := strconv.ParseUint(m[1], 10, 64)
		last, err2 := strconv.ParseUint(m[2], 10, 64)
		if err1 != nil || err2 != nil || first > last || last > 63 {
			return false
		}
		for n := first; n <= last; n++ {
			if nodes>>n&1 != 0 {
				return false
			}
			nodes |= 1 << n
		}
	}
	t.Nodes, t.Spread = nodes, spread
	return true
}

func (o *outcome) referHuge(word string) bool {
	var set [3]uint32
	if all, ok := huges[word]; ok {
		set = [3]uint32{all, all, all}
	} else {
		for _, part := range strings.Split(word, ",") {
			name, what, _ := strings.Cut(part, ":")
			i := map[string]int{"fast": 1, "normal": 2, "slow": 3}[name] - 1
			huge := huges[what]
			if i < 0 || huge == 0 || set[i] != 0 {
				return false
			}
			set[i] = huge
		}
	}
	for i := range set {
		o.tiers[i].HugePages = set[i]
	}
	return true
}

func (o *outcome) referSecure(word string) bool {
	parts := strings.Split(word, ",")
	on, ok := switches[parts[0]]
	if !ok || !on && len(parts) > 1 {
		return false
	}
	said := map[string]string{}
	for _, part := range parts[1:] {
		check, what, _ := strings.Cut(part, "=")
		known := check == "dealloc_type_mismatch" || check == "delete_size_mismatch"
		if !known || what != "abort" && what != "warn" || said[check] != "" {
			return false
		}
		said[check] = what
	}
	o.secure, o.secureWarn = on, 0
	if said["dealloc_type_mismatch"] == "warn" {
		o.secureWarn |= 1
	}
	if said["delete_size_mismatch"] == "warn" {
		o.secureWarn |= 2
	}
	return true
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"TA_FAST_SOFT=9%\nTA_FAST_HARD=8%", "TA_SLOW_HARD=080%",
		"", "TA_STRICT=1", "TA_STRICT=\nTA_STRICT=1", "TA_DISABLE=1\nTA_DISABLE=0\nTA_INTERPOSE=0",
		"TA_LOG=info\nTA_LOG_FILE=/tmp/l", "TA_STATS_FILE=/tmp/%e.%p%%", "TA_STATS_FILE=%q",
		"TA_STATS_FILE=%",
		"TA_PURGE_DELAY=250ms", "TA_PURGE_DELAY=3600s\nTA_PURGE_DELAY=x",
		"TA_PURGE_DELAY=3600000001us",
		"TA_PURGE_DELAY=0", "TA_PURGE_DELAY=99999999999999999999ns", "TA_PURGE_DELAY=1\x80\x1b",
		"TA_\nTA\nT\n=\nTA_LOG",
		"TA_LOG_FILE=" + strings.Repeat("x", 4001), "TA_LOG=" + strings.Repeat("%", 161),
		"TA_FAST_SOFT=2G\nTA_FAST_HARD=1G\nTA_SLOW_BURST=4k\nTA_SLOW_BW=0",
		"TA_NORMAL_HARD=64T\nTA_NORMAL_SOFT=65536g",
		"TA_FAST_SOFT=0\nTA_FAST_HARD=1KB\nTA_FAST_BW=1023\nTA_FAST_LAT=1001ms\nTA_FAST_BURST=",
		"TA_SLOW_LAT=300ns",
		"TA_MODEL=Cxl\nTA_FAST_BW=1G\nTA_SLOW_LAT=0\nTA_NORMAL_BURST=1",
		"TA_FAST_BW=x\nTA_FAST_LAT=\nTA_MODEL=cxl", "TA_MODEL=1",
		"TA_NODE_FAST=0,2-3\nTA_NODE_NORMAL=interleave:63\nTA_NODE_SLOW=WEIGHTED:0-63,5",
		"TA_NODE_FAST=3-2\nTA_NODE_SLOW=64",
		"TA_NODE_FAST=0,\nTA_NODE_NORMAL=:1\nTA_NODE_SLOW=1-", "TA_HUGEPAGES=2m",
		"TA_HUGEPAGES=fast:1G,slow:OFF", "TA_HUGEPAGES=AUTO", "TA_HUGEPAGES=fast:auto,fast:auto",
		"TA_HUGEPAGES=fast:2M,fast:2M", "TA_HUGEPAGES=fast:2M,", "TA_HUGEPAGES=fast:2M:",
		"TA_HUGEPAGES=:2M",
		"TA_STATS_LIVE=1", "TA_STATS_LIVE=0", "TA_STATS_LIVE=/x/%p", "TA_STATS_LIVE=/x/%%p",
		"TA_STATS_LIVE=x%p",
		"TA_ON_SOFTCAP=Demote\nTA_ON_HARDCAP=FAIL\nTA_DEFAULT_HINT=hot\n" +
			"TA_THROTTLE=Sleep\nTA_BACKGROUND=1\nTA_SECURE=1",
		"TA_SECURE=1,dealloc_type_mismatch=warn,Delete_Size_Mismatch=ABORT",
		"TA_SECURE=1,delete_size_mismatch=warn,",
		"TA_MIGRATE_BW=0\nTA_USE_LIBNUMA=0", "TA_NUMA_BALANCING=Auto", "TA_NUMA_BALANCING=0",
		"TA_SLOW_BACKEND=Swap", "TA_SLOW_BACKEND=swap\nTA_ON_SOFTCAP=Warn",
		"TA_SLOW_BACKEND=swap\nTA_ON_SOFTCAP=x", "TA_SLOW_BACKEND=zram", "TA_SLOW_BACKEND=memory",
		"TA_NUMA_BALANCING=2", "TA_MIGRATE_BW=5\nTA_USE_LIBNUMA=2",
		"TA_ONLY=a*, b,,c \nTA_DISABLE=0", "TA_ONLY=a/b\nTA_ONLY=c", "TA_ONLY=a*b", "TA_ONLY= ,",
		"TA_RULES=size>=64M:cold",
		"TA_RULES= Size = 4k - 1M , lib = libtorch*;:hot; ;thread=io-*:COLD;",
		"TA_CUDA=0\nTA_CUDA_REUSE=event\nTA_CUDA_SUBALLOC=ALL\n" +
			"TA_CUDA_ON_HARDCAP=Spill\nTA_CUDA_ZERO=1\nTA_CUDA_LEAKS=1\nTA_CUDA_EXPANDABLE=0\n" +
			"TA_CUDA_ASYNC=HEAP", "TA_CUDA_ASYNC=x",
		"TA_CUDA_SOFT=2G\nTA_CUDA_HARD=1G\nTA_CUDA_BW=1G\nTA_CUDA_LAT=5us\nTA_CUDA_TRACE=/t/%p.%e",
		"TA_CUDA_TRACE=%x", "TA_CUDA_SNAPSHOT=s.%p", "TA_CUDA_SPILL_HARD=2G",
		"TA_CUDA_PROPORTION=0.25\nTA_CUDA_SEGMENT_SIZE=22M\nTA_CUDA_CACHE_LIMIT=0",
		"TA_CUDA_PROPORTION=12.5%",
		"TA_CUDA_PROPORTION=1.0000000001\nTA_CUDA_SEGMENT_SIZE=21M",
		"TA_CUDA_PROPORTION=.000007629\nTA_CUDA_SEGMENT_SIZE=65g",
		"TA_CUDA_PROPORTION=100.%", "TA_CUDA_PROPORTION=.", "TA_CUDA_PROPORTION=%",
		"TA_CUDA_PROPORTION=00.00000763",
		"TA_CUDA_WARMUP=4K:50,64K:20,1M:10", "TA_CUDA_WARMUP=4K:50,", "TA_CUDA_WARMUP=4K:1:1",
		"TA_CUDA_WARMUP=4K",
		"TA_CUDA_WARMUP=" + strings.Repeat("1:1,", 15) + "64T:1000000",
		"TA_CUDA_WARMUP=" + strings.Repeat("1:1,", 16) + "2:2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries := strings.Split(strings.ReplaceAll(text, "\x00", ""), "\n")
		got, want := run(t, entries), reference(entries)
		if !got.equal(want) {
			t.Errorf("%q:\n got %+v\nwant %+v", entries, got, want)
		}
	})
}
