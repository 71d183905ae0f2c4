package tiers_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// linked are the flags for a program that is linked with the library, and for one that is written
// against TierAlloc's header.
func linked(t *testing.T) (link, compat []string) {
	t.Helper()
	dir := filepath.Dir(testlib.Lib(t))
	link = []string{"-L" + dir, "-ltieralloc", "-Wl,-rpath," + dir}
	headers := filepath.Join(testlib.Root(), "interpose")
	return link, append([]string{"-I" + headers, "-include", "tieralloc_compat.h"}, link...)
}

// TestUpstream: a program written against TierAlloc's header compiles with ours and does what its
// document says, linked with the library or with it preloaded.
func TestUpstream(t *testing.T) {
	_, flags := linked(t)
	for _, source := range []string{"upstream.c", "upstreamcxx.cc"} {
		c := cmd([]string{"TA_MODEL=cxl"}, compile(t, source,
			append(flags, "-Wextra", "-Wno-unused-function")...))
		for _, c.Preload = range []bool{false, true} {
			r := testlib.Run(t, c)
			clean(t, r)
			lines := strings.Split(r.Stdout, "\n")
			if lines[0] != "tieralloc-ok" || lines[1] != "2000 40000" {
				t.Errorf("%s: it prints %q", source, lines[:2])
			}
			var stats map[string][3]uint64
			if err := json.Unmarshal([]byte(lines[2]), &stats); err != nil || len(stats) != 6 ||
				stats["simulated_wait_ns"][2] < 40000 {
				t.Errorf("%s: %v in %s", source, err, lines[2])
			}
		}
	}
}

// TestComingFrom: the programs of docs/coming-from.md, before and after, do the same.
func TestComingFrom(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testlib.Root(), "docs", "coming-from.md"))
	if err != nil {
		t.Fatal(err)
	}
	link, compat := linked(t)
	after := append(link, "-I"+filepath.Join(testlib.Root(), "interpose"))
	wants := []string{"tieralloc-ok: tier 2\n", "tier 2\n"}
	for i, flags := range [][]string{compat, after} {
		_, rest, _ := strings.Cut(string(page), "```c\n")
		text, more, found := strings.Cut(rest, "```\n")
		page = []byte(more)
		source := filepath.Join(t.TempDir(), "roll.c")
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil || !found {
			t.Fatal(err, found)
		}
		program := strings.TrimSuffix(source, ".c")
		if out, err := exec.Command("gcc", append([]string{"-Wall", "-o", program, source},
			flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		r := testlib.Run(t, testlib.Cmd{Args: []string{program}, Env: quiet})
		clean(t, r)
		if r.Stdout != wants[i] {
			t.Errorf("it prints %q", r.Stdout)
		}
	}
}

// TestOldBinary: what was built with TierAlloc's own header finds its numbers mean the same, and is
// told once what does not.
func TestOldBinary(t *testing.T) {
	flags, _ := linked(t)
	r := testlib.Run(t, testlib.Cmd{Args: []string{compile(t, "oldbinary.c", flags...)},
		Env: withEnv(quiet, "TA_MODEL=cxl")})
	if r.Status != 0 || r.Stdout != "tieralloc-ok\n1 0 1 2 0 0 40000\n" {
		t.Errorf("status %d: %s", r.Status, r.Stdout)
	}
	const told = "tieralloc: the program was built with TierAlloc's own header, whose " +
		"ta_tier_of and ta_get_stats have other" +
		" parameters; build it with tieralloc_compat.h\n"
	if r.Stderr != told {
		t.Errorf("it says %q", r.Stderr)
	}
}
