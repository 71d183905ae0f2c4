package main

import "testing"

func TestNearestSetting(t *testing.T) {
	for name, want := range map[string]string{
		"TA_FAST_SOFT":      "TA_FAST_SOFT",
		"TA_FAST_SOTF":      "TA_FAST_SOFT",
		"TA_FASTSOFT":       "TA_FAST_SOFT",
		"TA_NUMA_NODES":     "",
		"TA_NORMAL_HARDCAP": "TA_NORMAL_HARD",
		"TA_RULE":           "TA_RULES",
		"TA_NODES_FAST":     "TA_NODE_FAST",
		"TA_LOGFILE":        "TA_LOG_FILE",
		"TA_ON_SOFT_CAP":    "TA_ON_SOFTCAP",
		"TA_LIBRARY_PATH":   "",
		"TA_CUDA":           "TA_CUDA",
		"TA_CUDA_SOTF":      "TA_CUDA_SOFT",
		"CUDA_VISIBLE":      "",
		"TA_PRINTER":        "",
		"TA_TEST_LIB":       "",
		"TA_":               "",
	} {
		if got := nearestSetting(name, settingNames()); got != want {
			t.Errorf("%s is taken for %q, not %q", name, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1},
		{"abc", "ab", 1},
		{"kitten", "sitting", 3}, {"ca", "abc", 3}, {"abcd", "badc", 2},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d edits, not %d", c.a, c.b, got, c.want)
		}
		if there, back := edits(c.a, c.b), edits(c.b, c.a); there != back {
			t.Errorf("%q to %q: %d edits there, %d back", c.a, c.b, there, back)
		}
	}
}
