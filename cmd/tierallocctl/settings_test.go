package main

import (
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/config"
)

// TestSettingDocs: each variable of the library is explained, nothing else is, and each example is
// a value that the library takes.
func TestSettingDocs(t *testing.T) {
	names := settingNames()
	for _, name := range names {
		d := docOf(name)
		if d.text == "" || d.placeholder == "" || !strings.HasPrefix(name, prefix) {
			t.Errorf("%s is not explained", name)
		}
		env := environ{name + "=" + strings.Trim(d.example, "'")}
		if tier, ok := strings.CutSuffix(name, "_BURST"); ok {
			env = env.with(tier+"_BW", "1G") // a burst is of a bandwidth
		}
		env.vector(func(envp uintptr) {
			if config.Parse(&parsed, envp) != 0 || d.example == "" {
				t.Errorf("%s: the example is no good value", env)
			}
		})
	}
	for name := range settingDocs {
		if !slices.Contains(names, name) {
			t.Errorf("%s is explained, and the library does not know it", name)
		}
	}
}

// TestFlagNames: those that documents and scripts rely on.
func TestFlagNames(t *testing.T) {
	flags := runCommand().Flags()
	for _, name := range strings.Fields(`default-hint rules fast-soft fast-hard fast-bw fast-lat fast-burst normal-soft
		slow-hard node-fast node-slow on-softcap on-hardcap throttle hugepages migrate-bw
		background purge-delay log stats-file live use-libnuma library quiet json cuda
		cuda-hard cuda-proportion cuda-on-hardcap cuda-reuse cuda-warmup`) {
		if flags.Lookup(name) == nil {
			t.Errorf("there is no --%s", name)
		}
	}
}

func TestApplySettingFlags(t *testing.T) {
	cmd := runCommand()
	if err := cmd.Flags().Parse([]string{"--fast-soft", "1G", "--live", "--background=0",
		"--rules="}); err != nil {
		t.Fatal(err)
	}
	env, given := applySettingFlags(cmd.Flags(),
		environ{"HOME=/", "TA_FAST_SOFT=2G", "TA_RULES=size>1:hot", "TA_SLOW_SOFT=1"})
	want := environ{"HOME=/", "TA_SLOW_SOFT=1", "TA_STATS_LIVE=1", "TA_BACKGROUND=0",
		"TA_FAST_SOFT=1G"}
	if !slices.Equal(env, want) {
		t.Errorf("%q\nnot\n%q", env, want)
	}
	if len(given) != 4 || given["TA_STATS_LIVE"] != "--live" || given["TA_RULES"] != "--rules" {
		t.Errorf("given: %v", given)
	}
}

// TestCommandsOwnFlags: what follows the command is left to it.
func TestCommandsOwnFlags(t *testing.T) {
	for _, args := range [][]string{{"--quiet", "--", "ls", "--json"},
		{"--quiet", "ls", "--json"}} {
		cmd := runCommand()
		if err := cmd.Flags().Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := cmd.Flags().Args(); !slices.Equal(got, []string{"ls", "--json"}) {
			t.Errorf("%q: the command is %q", args, got)
		}
	}
}
