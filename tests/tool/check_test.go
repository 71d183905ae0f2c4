package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/config"
)

// TestCheckDefaults: all variables are shown when that is asked for, and else those that are
// set.
func TestCheckDefaults(t *testing.T) {
	if r := ctl(t, nil, "check"); r.Status != 0 ||
		!strings.HasPrefix(r.Stdout, "settings:\n  none is set; ") ||
		strings.Contains(r.Stdout, "TA_") {
		t.Errorf("%+v", r)
	}
	r := ctl(t, nil, "check", "--all")
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	for i := uintptr(0); ; i++ {
		name, _, fallback, ok := config.Describe(i)
		if !ok {
			break
		}
		line := ""
		for l := range strings.Lines(r.Stdout) {
			if l = squeeze(l); strings.HasPrefix(l, name+" ") {
				line = l
			}
		}
		if !strings.HasPrefix(line, name+" "+squeeze(fallback)+" default ") {
			t.Errorf("%s: %q", name, line)
		}
	}
	says(t, r.Stdout, "tiers on this machine:")
	if strings.Contains(r.Stdout, "mistake") || strings.Contains(r.Stdout, "without effect") ||
		strings.Contains(r.Stdout, "rules:") {
		t.Errorf("%s", r.Stdout)
	}
}

// TestCheckOrder: findings come first, then what is set by groups, and nothing else.
func TestCheckOrder(t *testing.T) {
	r := ctl(t, []string{"TA_SLOW_BW=1G", "TA_CUDA_HARD=1G", "TA_NODE_FAST=far", "TA_FOO=1",
		"TA_CUDA_MANAGED=1", "TA_STRICT=1", "TA_LOG_FILE=/x"}, "check")
	at := 0
	for _, title := range []string{"1 mistake:", "without effect:", "worth knowing:",
		"unknown to the library, and ignored:",
		"settings:", "settings of FAST:", "settings of SLOW:", "settings of CUDA:",
		"tiers on this machine:"} {
		i := strings.Index("\n"+r.Stdout, "\n"+title+"\n")
		if i < at || title == "1 mistake:" && i != 0 {
			t.Errorf("%s is not in its place", title)
		}
		at = max(at, i)
	}
	if r.Status != 78 || strings.Contains(r.Stdout, "  default  ") ||
		strings.Contains(r.Stdout, "NORMAL:") {
		t.Errorf("%+v", r)
	}
}

func TestCheckExplains(t *testing.T) {
	r := ctl(t, []string{"TA_FAST_SOFT=96M", "TA_MIGRATE_BW=2G",
		"TA_RULES=size>=64M:cold; thread=io-*,size>=1M:cold; size>=65M:hot", "TA_LIBRARY_PATH=x"},
		"check")
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	text := squeeze(r.Stdout)
	says(t, text,
		"TA_FAST_SOFT 96M set soft cap of FAST",
		"1. size from 64 MiB: cold, to SLOW",
		"2. size from 1 MiB, thread io-*: cold, to SLOW",
		"3. size from 65 MiB: hot, to FAST (never reached: rule 1 comes first)",
		"sizes that the rules keep off the fast path in all other threads: none",
		"sizes that the rules keep off the fast path in threads io-*: 983041 B to 4 MiB",
		"without effect:", "TA_MIGRATE_BW: nothing is moved without TA_ON_SOFTCAP=demote",
		"unknown to the library, and ignored:", "TA_LIBRARY_PATH")
}

// TestCheckCUDA: the variables of CUDA are explained as the others are.
func TestCheckCUDA(t *testing.T) {
	r := ctl(t, []string{"TA_CUDA_HARD=8G", "TA_CUDA_PROPORTION=25%", "TA_CUDA_WARMUP=4K:50,64K:20",
		"TA_CUDA_CACHE_LIMIT=1M", "TA_CUDA_LEAKS=1"}, "check")
	if r.Status != 0 {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stdout), "TA_CUDA_HARD 8G set hard cap of each device",
		"without effect:", "TA_CUDA_LEAKS: there is no report without TA_STATS_FILE",
		"worth knowing:",
		"TA_CUDA_HARD and TA_CUDA_PROPORTION: on each device the smaller of the two holds",
		"TA_CUDA_WARMUP asks for 1.4 MiB, and TA_CUDA_CACHE_LIMIT keeps 1.0 MiB")
	if r := ctl(t, []string{"TA_CUDA_ON_HARDCAP=spill"}, "check"); !strings.Contains(r.Stdout,
		"TA_CUDA_ON_HARDCAP=spill without") {
		t.Errorf("%+v", r)
	}
}

// TestCheckSecure: checks that only warn are explained.
func TestCheckSecure(t *testing.T) {
	r := ctl(t, []string{"TA_SECURE=1,delete_size_mismatch=warn"}, "check")
	if r.Status != 0 || strings.Contains(r.Stdout, "dealloc_type_mismatch") {
		t.Errorf("%+v", r)
	}
	says(t, squeeze(r.Stdout), "TA_SECURE 1,delete_size_mismatch=warn set 1: hardened heap",
		"worth knowing:",
		"TA_SECURE: memory freed with a wrong size (delete_size_mismatch) is a line on standard "+
			"error")
}

// TestCheckTerminalSafe: what is in the environment does not play with the terminal.
func TestCheckTerminalSafe(t *testing.T) {
	r := ctl(t, []string{"TA_LOG_FILE=/tmp/\x1b[31mred", "TA_\x1b[31m=1", "TA_LOG=\x1b[31m"},
		"check")
	if strings.Contains(r.Stdout, "\x1b") {
		t.Errorf("%q", r.Stdout)
	}
}

// withMemory are the nodes of this machine that have memory.
func withMemory(t *testing.T) []string {
	t.Helper()
	var nodes []string
	files, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*/meminfo")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(squeeze(string(text)), "MemTotal: 0 kB") {
			nodes = append(nodes, strings.TrimPrefix(filepath.Base(filepath.Dir(f)), "node"))
		}
	}
	slices.Sort(nodes)
	return nodes
}

func TestTopology(t *testing.T) {
	nodes := withMemory(t)
	r := ctl(t, []string{"TA_USE_LIBNUMA=0", "TA_FAST_SOFT=x"}, "topology") // no matter
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	says(t, r.Stdout, "node", "CPUs", "memory", "free", "latency", "bandwidth", "distance",
		"tiers:")
	for _, n := range nodes {
		if !strings.Contains(r.Stdout, "\n"+n+" ") {
			t.Errorf("node %s is missing in\n%s", n, r.Stdout)
		}
	}
	if len(nodes) < 2 {
		says(t, r.Stdout, "one node: the tiers are simulated")
		if strings.Contains(r.Stdout, "export") {
			t.Errorf("%s", r.Stdout)
		}
		return
	}
	// What it proposes must be accepted.
	var env []string
	for line := range strings.Lines(r.Stdout) {
		if e, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
			env = append(env, e)
		}
	}
	if r := ctl(t, env, "check"); r.Status != 0 {
		t.Errorf("%q: %+v", env, r)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"chekc"}, {"check", "x"}, {"topology", "x"}, {"gpu", "x"},
		{"top", "x"}, {"top", "--interval", "1ms"},
		{"heat"}, {"heat", "1", "2"}, {"heat", "1", "--interval", "1ms"},
		{"top", "--interval", "fast"}, {"stats", "1", "2"}, {"stats", "--prune", "1"},
		{"stats", "--prune", "--watch"}, {"stats", "--watch", "--interval", "0"},
		{"stats", "--jsno"}, {"run", "--live", "--no-live", "true"}} {
		r := ctl(t, nil, args...)
		if r.Status != 2 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "tierallocctl: ") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for _, args := range [][]string{{"--help"}, {"help", "run"}, {"run", "--help"},
		{"stats", "--help"}, {"top", "--help"}, {"heat", "--help"}, {"check", "--help"}, {"topology", "--help"},
		{"gpu", "--help"}} {
		if r := ctl(t, nil, args...); r.Status != 0 || r.Stderr != "" ||
			!strings.Contains(r.Stdout, "Usage:") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
