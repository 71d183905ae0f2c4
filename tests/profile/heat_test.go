package profile

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// heat runs hotcold.c with one or two call sites and returns its profile.
func heat(t *testing.T, program, sites string) taken {
	t.Helper()
	file := filepath.Join(t.TempDir(), "heat.pb")
	res := testlib.Run(t, testlib.Cmd{Args: []string{program, sites, "15"}, Preload: true,
		Env: []string{"TA_PROFILE=" + file, "TA_PROFILE_HEAT=1", "TA_PROFILE_RATE=64K"}})
	if strings.Contains(res.Stderr, "nothing measures heat here") {
		t.Skip(res.Stderr)
	}
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("ended with %d, standard error %q", res.Status, res.Stderr)
	}
	return read(t, file)
}

// advise runs the tool on the profile.
func advise(t *testing.T, p taken, flags ...string) testlib.Result {
	t.Helper()
	return testlib.Run(t, testlib.Cmd{Args: append([]string{tool(t), "advise", p.file},
		flags...)})
}

// TestAdvise: the profile tells whose memory is used, and the rules that the tool makes of it place
// the blocks of a later run.
func TestAdvise(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "hotcold.c")
	p := heat(t, program, "2")
	touches, bytes := p.sums(t, "touches", ""), p.sums(t, "heat_space", "")
	if touches["wrapper"] == 0 {
		t.Fatalf("no touches: %v", touches)
	}
	byHot, byCold := p.sums(t, "touches", "hot_"), p.sums(t, "touches", "cold_")
	if hot, cold := byHot["hot_site"], byCold["cold_site"]; hot < 4*cold {
		t.Errorf("%.0f touches of hot memory, %.0f of cold", hot, cold)
	}
	const all = (256 + 768) * 64 << 10
	if b := bytes["wrapper"]; b < all*3/4 || b > all*5/4 {
		t.Errorf("the heat of %.0f bytes is known, of %d", b, all)
	}
	r := advise(t, p, "--fast", "17M")
	if r.Status != 0 || strings.Count(r.Stdout, "\n") != 2 ||
		!strings.Contains(r.Stderr, "hot_site") || !strings.Contains(r.Stderr, "<- these rules") {
		t.Fatalf("advise ended with %d, printed %q and %s", r.Status, r.Stdout, r.Stderr)
	}
	again := testlib.Run(t, testlib.Cmd{Args: []string{program, "2", "0"}, Preload: true,
		Env: []string{"TA_RULES=" + r.Stdout}})
	if want := "hot 256 0 0\ncold 0 0 768\n"; again.Stdout != want || again.Stderr != "" {
		t.Errorf("with %s printed %q, %q, not %q", r.Stdout, again.Stdout, again.Stderr, want)
	}
}

// TestAdviseOneSite: where sites do not tell hot from cold memory, the tool says so and writes no
// rules.
func TestAdviseOneSite(t *testing.T) {
	t.Parallel()
	p := heat(t, testlib.CC(t, "hotcold.c"), "1")
	for _, flags := range [][]string{{"--fast", "20M"}, {"--fast", "64M"}, nil} {
		r := advise(t, p, flags...)
		if r.Status != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, "no rules: ") {
			t.Errorf("advise %q ended with %d, printed %q and %s", flags, r.Status, r.Stdout,
				r.Stderr)
		}
	}
	if r := advise(t, p, "--fast", "20M"); !strings.Contains(r.Stderr, "call sites do not tell") {
		t.Errorf("it says %s", r.Stderr)
	}
}

// TestAdviseRefuses: what advise cannot use.
func TestAdviseRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plain.pb")
	testlib.Run(t, testlib.Cmd{Args: []string{"true"}, Preload: true,
		Env: []string{"TA_PROFILE=" + file, "TA_PROFILE_RATE=1K"}})
	for flags, want := range map[string]string{
		file:                "the profile has no heat: TA_PROFILE_HEAT=1",
		"/none":             "/none: no such file",
		file + " --fast 8Q": "--fast 8Q: expected a size such as 512M or 8G",
		file + " --fast 0":  "--fast 0: expected a size",
	} {
		r := testlib.Run(t, testlib.Cmd{Args: append([]string{tool(t), "advise"},
			strings.Fields(flags)...)})
		if r.Status == 0 || r.Stdout != "" || !strings.Contains(r.Stderr, want) {
			t.Errorf("%s: ended with %d, %s", flags, r.Status, fmt.Sprint(r.Stdout, r.Stderr))
		}
	}
}

func tool(t *testing.T) string { return filepath.Join(filepath.Dir(testlib.Lib(t)), "tierallocctl") }
