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
		{"TA_BACKGROUND=0 TA_NORMAL_SOFT=1M", ""},
		{"TA_ON_HARDCAP=fail", "TA_ON_HARDCAP"},
		{"TA_ON_HARDCAP=fail TA_NORMAL_HARD=1G", ""},
		{"TA_THROTTLE=sleep", "TA_THROTTLE"},
		{"TA_THROTTLE=sleep TA_NORMAL_LAT=1us", ""},
		{"TA_LOG_FILE=/tmp/x", "TA_LOG_FILE"},
		{"TA_LOG_FILE=/tmp/x TA_LOG=info", ""},
		{"TA_INTERPOSE=0 TA_DEFAULT_HINT=hot TA_RULES=size>1:hot", "TA_RULES TA_DEFAULT_HINT"},
		{"TA_DISABLE=1 TA_FAST_SOFT=1M", "all"},
		// FAST gets nothing unless somebody is sent there.
		{"TA_FAST_HARD=1M TA_NODE_FAST=0", "TA_FAST_HARD TA_NODE_FAST"},
		{"TA_FAST_HARD=1M TA_DEFAULT_HINT=hot", ""},
		{"TA_FAST_HARD=1M TA_RULES=size>1M:prefer_fast", ""},
		// SLOW also gets what NORMAL has no room for.
		{"TA_SLOW_HARD=1M", "TA_SLOW_HARD"},
		{"TA_SLOW_HARD=1M TA_NORMAL_HARD=1M", ""},
		{"TA_SLOW_HARD=1M TA_NORMAL_HARD=1M TA_ON_HARDCAP=fail", "TA_SLOW_HARD"},
		{"TA_SLOW_HARD=1M TA_NORMAL_SOFT=1M", ""},
		{"TA_SLOW_HARD=1M TA_NORMAL_SOFT=1M TA_ON_SOFTCAP=warn", "TA_SLOW_HARD"},
		{"TA_SLOW_SOFT=1M TA_RULES=size>1M:cold", "TA_SLOW_SOFT"},
		{"TA_SLOW_SOFT=1M TA_RULES=size>1M:cold TA_ON_SOFTCAP=warn", ""},
		{"TA_NORMAL_LAT=1us TA_DEFAULT_HINT=cold", "TA_NORMAL_LAT"},
	} {
		env := environ(strings.Fields(c.env))
		v := judged(t, env...)
		var names []string
		for _, line := range idleSettings(env, v.settings) {
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
