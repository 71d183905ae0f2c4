package main

import (
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/config"
)

func checked(t *testing.T, env ...string) *configCheck {
	t.Helper()
	got, err := checkConfig(env)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCheckGood(t *testing.T) {
	got := checked(t, "TA_FAST_SOFT=1M", "TA_FAST_HARD=2M", "TA_RULES=size>=64M:cold",
		"TA_STATS_LIVE=1", "PATH=/bin", "TA_LIBRARY_PATH=x")
	if len(got.mistakes) != 0 {
		t.Errorf("%+v", got.mistakes)
	}
	if got.settings.Tiers[config.TierFast].Soft != 1<<20 || got.settings.Rules.Count != 1 {
		t.Error("the settings were not read")
	}
	if !slices.Equal(got.strange, []string{"TA_LIBRARY_PATH"}) {
		t.Errorf("strange: %q", got.strange)
	}
	if got = checked(t); len(got.mistakes) != 0 || got.settings.Rules.Count != 0 {
		t.Errorf("the empty environment has %+v", got.mistakes)
	}
}

// TestCheckBad: one mistake each, which names the variable, the value and what is
// accepted.
func TestCheckBad(t *testing.T) {
	for _, c := range []struct {
		env   string
		name  string
		words []string
	}{
		{"TA_FAST_SOFT=2M TA_FAST_HARD=1M", "TA_FAST_SOFT",
			[]string{`"2M"`, "at most TA_FAST_HARD"}},
		{"TA_SLOW_SOFT=12Q", "TA_SLOW_SOFT", []string{`"12Q"`, "K, M, G or T"}},
		{"TA_DEFAULT_HINT=lukewarm", "TA_DEFAULT_HINT", []string{`"lukewarm"`, "prefer_fast"}},
		{"TA_RULES=size>=64M:lukewarm", "TA_RULES",
			[]string{"lukewarm", "unknown hint", "prefer_fast"}},
		{"TA_RULES=colour=red:hot", "TA_RULES", []string{"colour=red", "thread=GLOB"}},
		{"TA_HUGEPAGES=medium:2M", "TA_HUGEPAGES", []string{`"medium:2M"`, "fast:2M"}},
		{"TA_NODE_SLOW=61", "TA_NODE_SLOW", []string{`"61"`, "node 61 does not exist"}},
		{"TA_NODE_SLOW=x", "TA_NODE_SLOW", []string{`"x"`, "0,2-3"}},
		{"TA_USE_LIBNUMA=0 TA_NODE_SLOW=0", "TA_NODE_SLOW", []string{"TA_USE_LIBNUMA=0"}},
		{"TA_ON_SOFTCAP=explode", "TA_ON_SOFTCAP", []string{`"explode"`, "demote"}},
		{"TA_SECURE=1,overflow=warn", "TA_SECURE",
			[]string{`"1,overflow=warn"`, "dealloc_type_mismatch=warn", "delete_size_mismatch"}},
		{"TA_SLOW_BURST=1M", "TA_SLOW_BURST", []string{`"1M"`, "TA_SLOW_BW"}},
		{"TA_FAST_SOTF=1M", "TA_FAST_SOTF", []string{"did you mean TA_FAST_SOFT?"}},
	} {
		got := checked(t, strings.Fields(c.env)...)
		if len(got.mistakes) != 1 || got.mistakes[0].name != c.name {
			t.Errorf("%s: %+v", c.env, got.mistakes)
			continue
		}
		m := got.mistakes[0]
		for _, w := range c.words {
			if !strings.Contains(m.text, w) {
				t.Errorf("%s: %q does not say %q", c.env, m.text, w)
			}
		}
		if strings.Contains(m.text, "using") || strings.Contains(m.text, "\n") ||
			strings.HasPrefix(m.text, "tieralloc") {
			t.Errorf("%s: %q", c.env, m.text)
		}
	}
	if got := checked(t, "TA_FAST_SOFT=x", "TA_SLOW_SOFT=y",
		"TA_RULES=a;b"); len(got.mistakes) != 4 {
		t.Errorf("not each mistake is told: %+v", got.mistakes)
	}
}

func TestParseMistake(t *testing.T) {
	for _, c := range []struct {
		line string
		want mistake
	}{
		{"tieralloc: TA_X=\"1\": expected 2; using 3\n",
			mistake{"TA_X", `TA_X="1": expected 2`, "3"}},
		{"tieralloc: TA_X=\"; using 9\": expected 2; using 3\n",
			mistake{"TA_X", `TA_X="; using 9": expected 2`, "3"}},
		{"tieralloc: TA_X=\"1\": expected 2\n", mistake{"TA_X", `TA_X="1": expected 2`, ""}},
		{"", mistake{}},
	} {
		if got := parseMistake(c.line); got != c.want {
			t.Errorf("%q: %+v, not %+v", c.line, got, c.want)
		}
	}
}
