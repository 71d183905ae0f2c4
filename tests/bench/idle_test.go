package bench

import (
	"slices"
	"testing"
)

// idle are tiers that are set up and have nothing to do: caps far above any use, the
// hint that holds anyway, no rule and no throttle.
var idle = []string{
	"TA_FAST_SOFT=1T", "TA_FAST_HARD=2T", "TA_NORMAL_SOFT=1T", "TA_NORMAL_HARD=2T",
	"TA_SLOW_SOFT=1T", "TA_SLOW_HARD=2T",
	"TA_DEFAULT_HINT=warm", "TA_ON_HARDCAP=route_slow",
}

// idlers are the library without variables, with idle tiers, with such that would demote,
// and once more without: how far that is from 1 tells what a ratio of this run is worth.
func idlers(b *testing.B) []allocator {
	return []allocator{
		with(b, "unset"),
		with(b, "idle", idle...),
		with(b, "idle, demote", slices.Concat(idle, []string{"TA_ON_SOFTCAP=demote"})...),
		with(b, "unset again"),
	}
}

// BenchmarkTiersIdle is what idle tiers cost a pair. The goal is a ratio within 3% of 1.
func BenchmarkTiersIdle(b *testing.B) {
	var cases []string
	for _, mode := range []string{"lifo", "fifo", "random"} {
		for _, size := range []string{"16", "1024", "65536", "1048576"} {
			cases = append(cases, mode+"/"+size)
		}
	}
	contest{idlers(b), "ns", 15, 3}.pairs(b, cases)
}

// BenchmarkTiersIdleInstructions is the same free of noise, where the slow paths have a
// share in it.
func BenchmarkTiersIdleInstructions(b *testing.B) {
	all := idlers(b)[:3]
	contest{all, "instructions", 1, 3}.instructions(b,
		[]string{"lifo/16", "lifo/65536", "fifo/1024", "fifo/65536", "fifo/1048576",
			"random/1048576"})
}

// BenchmarkTiersIdleStartup is what reading the variables costs a process.
func BenchmarkTiersIdleStartup(b *testing.B) { startup(b, idlers(b)) }
