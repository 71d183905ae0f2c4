package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistakes are settings that are refused, and what must be said of them.
var mistakes = []struct {
	env   string // NAME=VALUE, blanks between
	words []string
}{
	{"TA_FAST_SOFT=2M TA_FAST_HARD=1M", []string{`TA_FAST_SOFT="2M"`, `at most TA_FAST_HARD="1M"`}},
	{"TA_FAST_SOFT=12Q", []string{`TA_FAST_SOFT="12Q"`, "K, M, G or T"}},
	{"TA_NORMAL_HARD=-1", []string{`TA_NORMAL_HARD="-1"`, "K, M, G or T"}},
	{"TA_SLOW_HARD=1.5G", []string{`TA_SLOW_HARD="1.5G"`, "K, M, G or T"}},
	{"TA_SLOW_HARD=0", []string{`TA_SLOW_HARD="0"`, "1 byte or more"}},
	{"TA_SLOW_BW=10", []string{`TA_SLOW_BW="10"`, "bytes per second"}},
	{"TA_SLOW_LAT=5", []string{`TA_SLOW_LAT="5"`, "300ns"}},
	{"TA_SLOW_BURST=1M", []string{`TA_SLOW_BURST="1M"`, "TA_SLOW_BW"}},
	{"TA_DEFAULT_HINT=lukewarm", []string{`TA_DEFAULT_HINT="lukewarm"`,
		"hot, warm, cold, pin_fast or prefer_fast"}},
	{"TA_RULES=size>=64M:lukewarm", []string{"TA_RULES", "unknown hint", "lukewarm",
		"hot, warm, cold, pin_fast or prefer_fast"}},
	{"TA_RULES=colour=red:hot", []string{"TA_RULES", "unknown condition", "colour=red",
		"thread=GLOB"}},
	{"TA_RULES=size>=x:hot", []string{"TA_RULES", "bad size"}},
	{"TA_RULES=size>=1M", []string{"TA_RULES", "missing hint"}},
	{"TA_RULES=lib=:hot", []string{"TA_RULES", "empty pattern"}},
	{"TA_HUGEPAGES=medium:2M", []string{`TA_HUGEPAGES="medium:2M"`, "fast:2M"}},
	{"TA_HUGEPAGES=4M", []string{`TA_HUGEPAGES="4M"`, "2M or 1G"}},
	{"TA_NODE_SLOW=62", []string{`TA_NODE_SLOW="62"`, "node 62 does not exist"}},
	{"TA_NODE_SLOW=far", []string{`TA_NODE_SLOW="far"`, "0,2-3"}},
	{"TA_ON_SOFTCAP=explode", []string{`TA_ON_SOFTCAP="explode"`, "reroute, warn, demote or follow"}},
	{"TA_SLOW_BACKEND=zram", []string{`TA_SLOW_BACKEND="zram"`, "memory or swap"}},
	{"TA_ON_HARDCAP=demote", []string{`TA_ON_HARDCAP="demote"`, "route_slow or fail"}},
	{"TA_THROTTLE=yes", []string{`TA_THROTTLE="yes"`, "account or sleep"}},
	{"TA_STATS_LIVE=yes", []string{`TA_STATS_LIVE="yes"`, "%p"}},
	{"TA_BACKGROUND=yes", []string{`TA_BACKGROUND="yes"`, "0 or 1"}},
	{"TA_CUDA=2", []string{`TA_CUDA="2"`, "0 or 1"}},
	{"TA_CUDA_PROPORTION=1.5", []string{`TA_CUDA_PROPORTION="1.5"`, "0.25 or 25%", "up to 1"}},
	{"TA_CUDA_PROPORTION=-25%", []string{`TA_CUDA_PROPORTION="-25%"`, "above 0"}},
	{"TA_CUDA_SOFT=2G TA_CUDA_HARD=1G", []string{`TA_CUDA_SOFT="2G"`, `at most TA_CUDA_HARD="1G"`}},
	{"TA_CUDA_HARD=8GB", []string{`TA_CUDA_HARD="8GB"`, "K, M, G or T"}},
	{"TA_CUDA_SEGMENT_SIZE=3M", []string{`TA_CUDA_SEGMENT_SIZE="3M"`, "steps of 2M"}},
	{"TA_CUDA_CACHE_LIMIT=all", []string{`TA_CUDA_CACHE_LIMIT="all"`, "keep nothing"}},
	{"TA_CUDA_WARMUP=4K", []string{`TA_CUDA_WARMUP="4K"`, "4K:50,64K:20,1M:10"}},
	{"TA_CUDA_REUSE=never", []string{`TA_CUDA_REUSE="never"`, "sync or event"}},
	{"TA_CUDA_SUBALLOC=large", []string{`TA_CUDA_SUBALLOC="large"`, "small or all"}},
	{"TA_CUDA_ON_HARDCAP=route_slow", []string{`TA_CUDA_ON_HARDCAP="route_slow"`, "fail or spill"}},
	{"TA_CUDA_LAT=5", []string{`TA_CUDA_LAT="5"`, "300ns"}},
	{"TA_CUDA_TRACE=/t/%q", []string{`TA_CUDA_TRACE="/t/%q"`, "%p (process id)"}},
	{"TA_CUDA_REUES=event", []string{"TA_CUDA_REUES", "did you mean TA_CUDA_REUSE?"}},
	{"TA_FAST_SOTF=1M", []string{"TA_FAST_SOTF", "did you mean TA_FAST_SOFT?"}},
}

// TestRunRefuses: nothing is started, and the mistake is named, whether it is in the
// environment or a flag.
func TestRunRefuses(t *testing.T) {
	for _, m := range mistakes {
		mark := filepath.Join(t.TempDir(), "started")
		r := run(t, strings.Fields(m.env), "touch", mark)
		if r.Status != 78 || r.Stdout != "" || strings.Count(r.Stderr, "\n") != 2 {
			t.Errorf("%s: %+v", m.env, r)
		}
		says(t, r.Stderr, append([]string{"touch was not started: 1 mistake"}, m.words...)...)
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%s: the command was started", m.env)
		}
	}
	mark := filepath.Join(t.TempDir(), "started")
	r := run(t, []string{"TA_THROTTLE=yes", "TA_SLOW_SOFT=x"}, "--fast-soft", "2M", "--fast-hard",
		"1M", "--slow-soft", "3M",
		"--rules", "size>1:a;size>2:b", "--node-fast=62", "touch", mark)
	if r.Status != 78 || strings.Count(r.Stderr, "\n") != 6 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "5 mistakes", "--fast-soft: TA_FAST_SOFT", "--node-fast: TA_NODE_FAST",
		"\n  TA_THROTTLE")
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command was started")
	}
}

// TestCheckFinds: the same mistakes, and what holds in spite of them.
func TestCheckFinds(t *testing.T) {
	for _, m := range mistakes {
		r := ctl(t, strings.Fields(m.env), "check")
		if r.Status != 78 || r.Stderr != "" {
			t.Errorf("%s: status %d, %q", m.env, r.Status, r.Stderr)
		}
		says(t, r.Stdout, append([]string{"1 mistake:"}, m.words...)...)
		if !strings.Contains(r.Stdout, "did you mean") {
			says(t, r.Stdout, "the library uses: ")
		}
	}
}
