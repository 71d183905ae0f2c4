package main

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"

	"tieralloc/internal/config"
	"tieralloc/numa/plan"
	"tieralloc/tiers"
)

// idleSettings lists the variables that are set and have no effect, each with the reason.
func idleSettings(env environ, c *configCheck) []string {
	s, account := c.settings, c.places.Accounts()
	if s.Disable {
		return []string{"all others: TA_DISABLE=1"}
	}
	var lines []string
	note := func(idle bool, name, why string) {
		if _, set := env.get(name); set && idle {
			lines = append(lines, name+": "+why)
		}
	}
	soft, hard, throttled := uint64(0), uint64(0), uint64(0)
	for i := range config.TierCount {
		soft |= s.Tiers[i].Soft
		hard |= s.Tiers[i].Hard
		throttled |= s.Tiers[i].BW | s.Tiers[i].Lat
	}
	if s.CUDA.Enable {
		throttled |= s.CUDA.BW | s.CUDA.Lat
	}
	demote := s.OnSoftcap == config.SoftcapDemote
	follow := s.Follows() && soft|hard != 0
	swapless := plan.SwapUnused(s, c.places)
	pages := s.SlowSwap && swapless == ""
	note(s.SlowSwap && !pages, "TA_SLOW_BACKEND", "swap is not used: "+swapless)
	note(s.OnSoftcap == config.SoftcapFollow && !s.Follows() && !pages, "TA_ON_SOFTCAP",
		"with TA_NUMA_BALANCING=1 the kernel moves this memory")
	note(s.Follows() && soft|hard == 0, "TA_ON_SOFTCAP",
		"no tier has a cap (TA_NORMAL_SOFT, TA_NORMAL_HARD and so on)")
	note(s.OnSoftcap != config.SoftcapFollow && soft == 0, "TA_ON_SOFTCAP",
		"no tier has a soft cap (TA_FAST_SOFT, TA_NORMAL_SOFT)")
	note(hard == 0, "TA_ON_HARDCAP", "no tier has a hard cap (TA_FAST_HARD and so on)")
	still := !follow && (!demote || soft == 0)
	note(still, "TA_MIGRATE_BW", nothingMoves)
	note(s.Background && still, "TA_BACKGROUND", nothingMoves)
	note(!s.UseLibnuma, "TA_NUMA_BALANCING", "no memory has a policy with TA_USE_LIBNUMA=0")
	note(throttled == 0, "TA_THROTTLE", "no tier is throttled (TA_SLOW_BW, TA_SLOW_LAT and so on)")
	capped := soft|hard|s.CUDA.Soft|s.CUDA.Hard|s.CUDA.Proportion != 0
	note(!capped, "TA_GROUP", "neither a tier nor a device has a cap (TA_NORMAL_HARD, "+
		"TA_CUDA_HARD and so on); tierallocctl group lists the processes all the same")
	note(!s.Grouped || !capped, "TA_GROUP_MIN", "it is a part of the caps of a group (TA_GROUP)")
	note(s.Log == config.LogOff, "TA_LOG_FILE", "there is no log without TA_LOG")
	note(!s.Interpose, "TA_RULES", "with TA_INTERPOSE=0 malloc goes to libc")
	note(!s.Interpose && !(s.CUDA.Enable && s.CUDA.Spill), "TA_DEFAULT_HINT",
		"with TA_INTERPOSE=0 malloc goes to libc")
	for tier, name := range tierNames {
		_, lower := lowerTier(account, int(account[tier]))
		note(s.OnSoftcap != config.SoftcapWarn && !lower && !pages, prefix+name+"_SOFT",
			"no tier is slower: memory above it stays, and is counted")
	}
	if _, set := env.get("TA_RULES"); set && s.Interpose {
		lines = append(lines, idleRules(&s.Rules)...)
	}
	lines = append(lines, unusedTiers(env, s, account)...)
	idleCUDA(&s.CUDA, s.Reports || s.Live, note)
	return lines
}

const nothingMoves = "nothing is moved without TA_ON_SOFTCAP=demote or follow, and a cap"

// secureRemarks lists the checks of the hardened heap that do not end the program.
func secureRemarks(s *config.Settings) []string {
	if s.Disable || !s.Secure {
		return nil
	}
	var lines []string
	add := func(check uint32, text string) {
		if s.SecureWarn>>check&1 != 0 {
			lines = append(lines,
				"TA_SECURE: "+text+" is a line on standard error; other damage ends the program")
		}
	}
	add(config.CheckDeallocType,
		"memory of new, new[] or malloc freed by another family's function (dealloc_type_mismatch)")
	add(config.CheckDeleteSize, "memory freed with a wrong size (delete_size_mismatch)")
	return lines
}

// unusedTiers lists settings of tiers that unmodified programs never use.
func unusedTiers(env environ, s *config.Settings, account [4]uintptr) []string {
	used := usedTiers(s, account)
	var lines []string
	for i := range config.TierCount {
		// Tiers on the same nodes share their settings.
		if slices.ContainsFunc(used, func(tier int) bool { return account[tier] == account[i] }) {
			continue
		}
		for _, name := range tierVariables(i) {
			if _, set := env.get(name); set {
				lines = append(lines,
					fmt.Sprintf("%s: no rule and no default hint sends anything to %s, but "+
						"--default-hint %s (TA_DEFAULT_HINT) would;"+
						" only programs that call ta_alloc, ta_move, ta_set_hint or "+
						"ta_set_default_hint use it", name, tierNames[i], hintTo[i]))
			}
		}
	}
	return lines
}

// hintTo has for each tier the hint that sends requests there, and lets them overflow.
var hintTo = [config.TierCount]string{
	config.TierFast: "prefer_fast", config.TierNormal: "warm", config.TierSlow: "cold"}

// warnIdle tells the user of run about settings of the environment and of flags that have no
// effect. Settings of the file for the whole system are not meant for one program.
func warnIdle(w io.Writer, env environ, c *configCheck, flags map[string]string) {
	if c.settings.Disable {
		return
	}
	for _, line := range idleSettings(env, c) {
		name, why, _ := strings.Cut(line, ": ")
		if flag := flags[name]; flag != "" {
			name = flag
		}
		complain(w, fmt.Errorf("%s has no effect: %s", name, why))
	}
}

// usedTiers lists the tiers that hints lead to: their homes, and the slower tiers that a cap sends
// memory to.
func usedTiers(s *config.Settings, account [4]uintptr) []int {
	var homes [config.TierCount]bool
	homes[tiers.Home(uintptr(s.DefaultHint))] = true
	for i := range s.Rules.Count {
		homes[tiers.Home(uintptr(s.Rules.Rule[i].Hint))] = true
	}
	var used []int
	for i := range homes {
		if !homes[i] {
			continue
		}
		used = append(used, i)
		t := &s.Tiers[i]
		overflows := t.Hard != 0 && s.OnHardcap == config.HardcapRouteSlow ||
			t.Soft != 0 && s.OnSoftcap != config.SoftcapWarn
		if lower, ok := lowerTier(account, i); ok && overflows {
			homes[lower] = true
		}
	}
	return used
}

// lowerTier returns the next slower tier on other nodes, if there is one.
func lowerTier(account [4]uintptr, tier int) (lower int, ok bool) {
	for lower = tier + 1; lower < int(config.TierCount); lower++ {
		if account[lower] != account[tier] {
			return lower, true
		}
	}
	return 0, false
}

// tierVariables returns the names of a tier's own variables.
func tierVariables(tier uint32) []string {
	name := tierNames[tier]
	var list []string
	for _, what := range []string{"SOFT", "HARD", "BW", "BURST", "LAT"} {
		list = append(list, prefix+name+"_"+what)
	}
	return append(list, prefix+"NODE_"+name)
}

// idleCUDA notes those of the variables of CUDA. reports says that there are reports.
func idleCUDA(c *config.CUDA, reports bool, note func(idle bool, name, why string)) {
	if !c.Enable {
		for _, name := range settingNames() {
			note(cudaOnly(name), name, "TA_CUDA=0 lets all CUDA calls pass")
		}
		return
	}
	note(c.Proportion == config.ProportionOne, "TA_CUDA_PROPORTION",
		"all of the device's memory is no cap")
	note(c.Hard != 0 && c.CacheLimit >= c.Hard, "TA_CUDA_CACHE_LIMIT",
		"TA_CUDA_HARD allows no more, cached or not")
	note(c.Managed && c.Expandable, "TA_CUDA_EXPANDABLE",
		"with TA_CUDA_MANAGED=1 segments do not grow")
	note(c.CacheLimit == 0, "TA_CUDA_WARMUP", "with TA_CUDA_CACHE_LIMIT=0 nothing is kept ready")
	note(c.Leaks && !reports, "TA_CUDA_LEAKS",
		"there is no report without TA_STATS_FILE, which tierallocctl run sets")
}

// cudaOnly reports whether a variable is for CUDA and is not TA_CUDA itself.
func cudaOnly(name string) bool { return strings.HasPrefix(name, prefix+"CUDA_") }

// cudaRemarks lists side effects of CUDA settings that are easily overlooked.
func cudaRemarks(s *config.Settings) []string {
	c := &s.CUDA
	if s.Disable || !c.Enable {
		return nil
	}
	var lines []string
	add := func(when bool, text string) {
		if when {
			lines = append(lines, text)
		}
	}
	caps := c.Hard != 0 || c.Proportion != 0 && c.Proportion != config.ProportionOne
	add(c.Spill && !caps &&
		!c.Managed, "TA_CUDA_ON_HARDCAP=spill without TA_CUDA_HARD or TA_CUDA_PROPORTION: host "+
		"memory is taken only"+
		" when the driver has none left, and other programs on the device may have used it up")
	add(c.Hard != 0 && c.Proportion != 0 && c.Proportion != config.ProportionOne,
		"TA_CUDA_HARD and TA_CUDA_PROPORTION: on each device the smaller of the two holds")
	add(c.Soft != 0 && c.Proportion != 0,
		"TA_CUDA_SOFT above TA_CUDA_PROPORTION of a device has no effect on that device")
	add(c.ReuseEvent, "TA_CUDA_REUSE=event: cudaFree does not wait for the device as the "+
		"driver's does; a program that"+
		" reads results right after it must synchronise")
	add(c.SuballocAll, "TA_CUDA_SUBALLOC=all: IPC handles and GPUDirect registrations name whole "+
		"segments")
	add(c.Managed, "TA_CUDA_MANAGED=1: device memory has no IPC handles, and pages of it lie on "+
		"the device only once they were touched there")
	if ready := warmBytes(c); ready > 0 {
		add(c.CacheLimit != 0 && c.CacheLimit != config.NoLimit &&
			ready > c.CacheLimit, "TA_CUDA_WARMUP asks for "+size(ready)+
			", and TA_CUDA_CACHE_LIMIT keeps "+size(c.CacheLimit))
		add(c.Hard != 0 &&
			ready > c.Hard,
			"TA_CUDA_WARMUP asks for "+size(ready)+", and TA_CUDA_HARD allows "+size(c.Hard))
	}
	return lines
}

// warmBytes returns the bytes of a warm-up, or the largest number if they are more.
func warmBytes(c *config.CUDA) (sum uint64) {
	for _, w := range c.Warmup[:c.Warmups] {
		over, more := bits.Mul64(w.Bytes, w.Count)
		var carry uint64
		if sum, carry = bits.Add64(sum, more, 0); over+carry != 0 {
			return math.MaxUint64
		}
	}
	return sum
}
