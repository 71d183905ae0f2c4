package main

import (
	"slices"
	"strings"
	"testing"
)

// TestIdleSettings names for each environment the variables that do nothing.
func TestIdleSettings(t *testing.T) {
	for _, c := range []struct{ env, idle string }{
		{"", ""},
		{"TA_MIGRATE_BW=1G", "TA_MIGRATE_BW"},
		{"TA_MIGRATE_BW=1G TA_ON_SOFTCAP=demote", "TA_ON_SOFTCAP TA_MIGRATE_BW"},
		{"TA_MIGRATE_BW=1G TA_ON_SOFTCAP=demote TA_NORMAL_SOFT=1M TA_BACKGROUND=1", ""},
		{"TA_BACKGROUND=1 TA_NORMAL_SOFT=1M", "TA_BACKGROUND"},
		{"TA_ON_SOFTCAP=follow TA_NORMAL_HARD=1G TA_MIGRATE_BW=1G TA_BACKGROUND=1", ""},
		{"TA_ON_SOFTCAP=follow TA_MIGRATE_BW=1G", "TA_ON_SOFTCAP TA_MIGRATE_BW"},
		{"TA_ON_SOFTCAP=follow TA_NORMAL_SOFT=1G TA_NUMA_BALANCING=1", "TA_ON_SOFTCAP"},
		{"TA_BACKGROUND=0 TA_NORMAL_SOFT=1M", ""},
		{"TA_SLOW_BACKEND=swap TA_USE_LIBNUMA=0", "TA_SLOW_BACKEND"},
		{"TA_SLOW_BACKEND=swap TA_ON_SOFTCAP=warn TA_NORMAL_SOFT=1G TA_USE_LIBNUMA=0",
			"TA_SLOW_BACKEND"},
		{"TA_SLOW_BACKEND=memory", ""},
		{"TA_NUMA_BALANCING=1 TA_USE_LIBNUMA=0", "TA_NUMA_BALANCING"},
		{"TA_NUMA_BALANCING=1", ""},
		{"TA_ON_HARDCAP=fail", "TA_ON_HARDCAP"},
		{"TA_ON_HARDCAP=fail TA_NORMAL_HARD=1G", ""},
		{"TA_THROTTLE=sleep", "TA_THROTTLE"},
		{"TA_THROTTLE=sleep TA_NORMAL_LAT=1us", ""},
		{"TA_GROUP=g TA_GROUP_MIN=1M", "TA_GROUP TA_GROUP_MIN"},
		{"TA_GROUP_MIN=1M TA_NORMAL_HARD=1G", "TA_GROUP_MIN"},
		{"TA_GROUP=g TA_GROUP_MIN=1M TA_NORMAL_HARD=1G", ""},
		{"TA_GROUP=g TA_CUDA_PROPORTION=0.5", ""},
		{"TA_LOG_FILE=/tmp/x", "TA_LOG_FILE"},
		{"TA_LOG_FILE=/tmp/x TA_LOG=info", ""},
		{"TA_INTERPOSE=0 TA_DEFAULT_HINT=hot TA_RULES=size>1:hot", "TA_RULES TA_DEFAULT_HINT"},
		{"TA_DISABLE=1 TA_FAST_SOFT=1M", "all"},
		// FAST gets nothing unless somebody is sent there.
		{"TA_FAST_HARD=1M TA_NODE_FAST=0", "TA_FAST_HARD TA_NODE_FAST"},
		{"TA_FAST_HARD=1M TA_DEFAULT_HINT=hot", ""},
		{"TA_FAST_HARD=1M TA_RULES=size>1M:prefer_fast", ""},
		{"TA_RULES=size>1M:cold;size>2M:cold", "TA_RULES"},
		{"TA_RULES=size>2M:cold;size>1M:cold;thread=io-*:warm", ""},
		{"TA_RULES=thread=*:cold;thread=a:hot;thread=sixteencharacter:hot",
			"TA_RULES TA_RULES TA_RULES"},
		{"TA_RULES=thread=fifteen-letters*:cold;thread=sixteencharacter:hot", "TA_RULES"},
		{"TA_RULES=thread=sixteen*character:cold TA_INTERPOSE=0", "TA_RULES"},
		// SLOW also gets what NORMAL has no room for.
		{"TA_SLOW_HARD=1M", "TA_SLOW_HARD"},
		{"TA_SLOW_HARD=1M TA_NORMAL_HARD=1M", ""},
		{"TA_SLOW_HARD=1M TA_NORMAL_HARD=1M TA_ON_HARDCAP=fail", "TA_SLOW_HARD"},
		{"TA_SLOW_HARD=1M TA_NORMAL_SOFT=1M", ""},
		{"TA_SLOW_HARD=1M TA_NORMAL_SOFT=1M TA_ON_SOFTCAP=warn", "TA_SLOW_HARD"},
		{"TA_SLOW_SOFT=1M TA_RULES=size>1M:cold", "TA_SLOW_SOFT"},
		{"TA_SLOW_SOFT=1M TA_RULES=size>1M:cold TA_ON_SOFTCAP=warn", ""},
		{"TA_NORMAL_LAT=1us TA_DEFAULT_HINT=cold", "TA_NORMAL_LAT"},
		{"TA_THROTTLE=sleep TA_CUDA_BW=1G", ""},
		{"TA_THROTTLE=sleep TA_CUDA_BW=1G TA_CUDA=0", "TA_THROTTLE TA_CUDA_BW"},
		{"TA_INTERPOSE=0 TA_DEFAULT_HINT=cold TA_CUDA_ON_HARDCAP=spill", ""},
		{"TA_CUDA=0 TA_CUDA_SOFT=1G TA_CUDA_LEAKS=1", "TA_CUDA_SOFT TA_CUDA_LEAKS"},
		{"TA_CUDA=1 TA_CUDA_SOFT=1G TA_CUDA_HARD=2G TA_CUDA_ZERO=1 TA_CUDA_TRACE=/t/x " +
			"TA_CUDA_LAT=1us", ""},
		{"TA_CUDA_PROPORTION=100%", "TA_CUDA_PROPORTION"},
		{"TA_CUDA_PROPORTION=0.99", ""},
		{"TA_CUDA_CACHE_LIMIT=2G TA_CUDA_HARD=1G", "TA_CUDA_CACHE_LIMIT"},
		{"TA_CUDA_CACHE_LIMIT=1G TA_CUDA_HARD=2G TA_CUDA_WARMUP=1M:1", ""},
		{"TA_CUDA_CACHE_LIMIT=0 TA_CUDA_WARMUP=1M:1", "TA_CUDA_WARMUP"},
		{"TA_CUDA_EXPANDABLE=1 TA_CUDA_MANAGED=1", "TA_CUDA_EXPANDABLE"},
		{"TA_CUDA_EXPANDABLE=1", ""},
		{"TA_CUDA_LEAKS=1", "TA_CUDA_LEAKS"},
		{"TA_CUDA_LEAKS=0", ""},
		{"TA_CUDA_LEAKS=1 TA_STATS_FILE=/t/x", ""},
		{"TA_DISABLE=1 TA_CUDA_LEAKS=1", "all"},
	} {
		env := environ(strings.Fields(c.env))
		check := checked(t, env...)
		var names []string
		for _, line := range idleSettings(env, check) {
			name, why, _ := strings.Cut(strings.Replace(line, "all others", "all", 1), ": ")
			if why == "" {
				t.Errorf("%s: no reason in %q", c.env, line)
			}
			names = append(names, name)
		}
		if want := strings.Fields(c.idle); !slices.Equal(names, want) {
			t.Errorf("%s: %q without effect, not %q", c.env, names, want)
		}
	}
}

// TestCUDARemarks names for each environment what the remarks begin with.
func TestCUDARemarks(t *testing.T) {
	for _, c := range []struct {
		env   string
		words []string
	}{
		{"", nil},
		{"TA_CUDA_ON_HARDCAP=spill", []string{"TA_CUDA_ON_HARDCAP=spill without"}},
		{"TA_CUDA_ON_HARDCAP=spill TA_CUDA_PROPORTION=1",
			[]string{"TA_CUDA_ON_HARDCAP=spill without"}},
		{"TA_CUDA_ON_HARDCAP=spill TA_CUDA_PROPORTION=0.5", nil},
		{"TA_CUDA_ON_HARDCAP=spill TA_CUDA_HARD=1G", nil},
		{"TA_CUDA_ON_HARDCAP=spill TA_CUDA=0", nil},
		{"TA_CUDA_ON_HARDCAP=spill TA_CUDA_MANAGED=1",
			[]string{"TA_CUDA_MANAGED=1: device memory has no IPC handles"}},
		{"TA_CUDA_MANAGED=0", nil},
		{"TA_CUDA_MANAGED=1 TA_CUDA=0", nil},
		{"TA_CUDA_ON_HARDCAP=spill TA_DISABLE=1", nil},
		{"TA_CUDA_HARD=1G TA_CUDA_PROPORTION=0.5", []string{"TA_CUDA_HARD and TA_CUDA_PROPORTION"}},
		{"TA_CUDA_SOFT=1G TA_CUDA_PROPORTION=0.5", []string{"TA_CUDA_SOFT above"}},
		{"TA_CUDA_REUSE=event TA_CUDA_SUBALLOC=all",
			[]string{"TA_CUDA_REUSE=event", "TA_CUDA_SUBALLOC=all"}},
		{"TA_CUDA_WARMUP=1M:10,2M:3 TA_CUDA_CACHE_LIMIT=16M", nil},
		{"TA_CUDA_WARMUP=1M:10,2M:3 TA_CUDA_CACHE_LIMIT=16777215",
			[]string{"TA_CUDA_WARMUP asks for 16 MiB, and TA_CUDA_CACHE_LIMIT"}},
		{"TA_CUDA_WARMUP=64T:1000000 TA_CUDA_HARD=1G",
			[]string{"TA_CUDA_WARMUP asks for 16 EiB, and TA_CUDA_HARD"}},
	} {
		check := checked(t, strings.Fields(c.env)...)
		got := cudaRemarks(check.settings)
		for i, line := range got {
			if i >= len(c.words) || !strings.HasPrefix(line, c.words[i]) {
				t.Errorf("%s: %q", c.env, line)
			}
		}
		if len(got) != len(c.words) {
			t.Errorf("%s: %q", c.env, got)
		}
	}
}
