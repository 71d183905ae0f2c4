package tiers_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// linked are the flags for a program that is linked with the library, and for one that is written against
// TierAlloc's header.
func linked(t *testing.T) (link, compat []string) {
	t.Helper()
	dir := filepath.Dir(testlib.Lib(t))
	link = []string{"-L" + dir, "-ltieralloc", "-Wl,-rpath," + dir}
	headers := filepath.Join(testlib.Root(), "interpose")
	return link, append([]string{"-I" + headers, "-include", "tieralloc_compat.h"}, link...)
}

// TestUpstream: a program written against TierAlloc's header compiles with ours and does what its document
// says, linked with the library or with it preloaded.
func TestUpstream(t *testing.T) {
	_, flags := linked(t)
	for _, source := range []string{"upstream.c", "upstreamcxx.cc"} {
		c := cmd([]string{"TA_MODEL=cxl"}, compile(t, source, append(flags, "-Wextra", "-Wno-unused-function")...))
		for _, c.Preload = range []bool{false, true} {
			r := testlib.Run(t, c)
			clean(t, r)
			lines := strings.Split(r.Stdout, "\n")
			if lines[0] != "tieralloc-ok" || lines[1] != "2000 40000" {
				t.Errorf("%s: it prints %q", source, lines[:2])
			}
			var stats map[string][3]uint64
			if err := json.Unmarshal([]byte(lines[2]), &stats); err != nil || len(stats) != 6 || stats["simulated_wait_ns"][2] < 40000 {
				t.Errorf("%s: %v in %s", source, err, lines[2])
			}
		}
	}
}

// TestOldBinary: what was built with TierAlloc's own header finds its numbers mean the same, and is told once
// what does not.
func TestOldBinary(t *testing.T) {
	flags, _ := linked(t)
	r := testlib.Run(t, testlib.Cmd{Args: []string{compile(t, "oldbinary.c", flags...)}, Env: withEnv(quiet, "TA_MODEL=cxl")})
	if r.Status != 0 || r.Stdout != "tieralloc-ok\n1 0 1 2 0 0 40000\n" {
		t.Errorf("status %d: %s", r.Status, r.Stdout)
	}
	const told = "tieralloc: the program was built with TierAlloc's own header, in which ta_tier_of and ta_get_stats are called" +
		" otherwise; build it with tieralloc_compat.h\n"
	if r.Stderr != told {
		t.Errorf("it says %q", r.Stderr)
	}
}
