package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--rounds 0", "--rounds 0: 1 to 1000"},
		{"--rounds 1001", "--rounds 1001"},
		{"--rounds x", `"x"`},
		{"--threads 0", "--threads 0: 1 to 1024"},
		{"--threads 1025", "--threads 1025"},
		{"--nothing", "nothing"},
		{"--scaling 1,2,2", "rising"},
		{"--scaling 0", "1 to 1024"},
		{"--scaling 1,,2", "1 to 1024"},
		{"--scaling 1025", "1 to 1024"},
		{"--scaling 1,2 --chart x", "--chart"},
		{"pairs", `"pairs": only flags`},
	} {
		if _, err := parse(strings.Fields(c.args)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.args, err, c.want)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	for args, rounds := range map[string]int{"": 5, "--quick": 3, "--quick --rounds 7": 7,
		"--rounds 1": 1} {
		if o, err := parse(strings.Fields(args)); err != nil || o.rounds != rounds ||
			o.threads < 2 || o.peers != "installed" {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
}

func TestChosen(t *testing.T) {
	for only, want := range map[string]string{"^sh": "sh6, sh8, shell",
		"alloctest-n|^gcc$": "alloctest-n, gcc", "": names(workloads)} {
		list, err := options{only: only}.chosen()
		if err != nil || names(list) != want {
			t.Errorf("%q: %s, %v", only, names(list), err)
		}
	}
	for _, only := range []string{"(", "no such workload"} {
		if _, err := (options{only: only}).chosen(); err == nil ||
			!strings.Contains(err.Error(), only) {
			t.Errorf("%q: %v", only, err)
		}
	}
}

// withPeers sets a folder of peers in which only these libraries are.
func withPeers(t *testing.T, libraries ...string) string {
	old := peersDir
	peersDir = t.TempDir()
	t.Cleanup(func() { peersDir = old })
	for _, l := range libraries {
		if err := os.WriteFile(filepath.Join(peersDir, l), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return peersDir
}

func TestPeers(t *testing.T) {
	dir := withPeers(t, "libjemalloc.so.2")
	file := filepath.Join(dir, "libjemalloc.so.2")
	for list, want := range map[string][]string{
		"none":                               {},
		"installed":                          {"jemalloc"},
		"jemalloc":                           {"jemalloc"},
		"installed,x=" + file:                {"jemalloc", "x"},
		"x=" + file + ":TA_SECURE=1:B=,none": {"x"},
	} {
		all, err := parsePeers(list)
		got := []string{}
		for _, c := range all {
			got = append(got, c.name)
			if c.library != file {
				t.Errorf("%q: %s", list, c.library)
			}
			if strings.Contains(list, "SECURE") &&
				!slices.Equal(c.env, []string{"TA_SECURE=1", "B="}) {
				t.Errorf("%q: %q", list, c.env)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
	for list, want := range map[string]string{
		"":                         `"": installed`,
		"snmalloc":                 `"snmalloc": installed, fetch, none, mimalloc`,
		"mimalloc":                 "libmimalloc2.0",
		"jemalloc,jemalloc":        `two of "jemalloc"`,
		"glibc=" + file:            `two of "glibc"`,
		"tieralloc=" + file:        `two of "tieralloc"`,
		"x=":                       "NAME=PATH",
		"=" + file:                 "NAME=PATH",
		"x=" + dir:                 "not a file",
		"x=" + dir + "/none.so":    "no such file",
		"x=" + file + ":TA_SECURE": `"TA_SECURE": VAR=VALUE`,
		"x=" + file + ":":          `"": VAR=VALUE`,
		"x=" + file + ":=1":        `"=1": VAR=VALUE`,
	} {
		if _, err := parsePeers(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", list, err, want)
		}
	}
}

// What cannot be fetched is named; what is there is not asked for.
func TestFetch(t *testing.T) {
	withPeers(t, "libmimalloc.so.2")
	t.Setenv("PATH", t.TempDir())
	_, err := parsePeers("fetch")
	if err == nil || !strings.Contains(err.Error(), "libjemalloc2 libtcmalloc-minimal4") ||
		strings.Contains(err.Error(), "libmimalloc") {
		t.Error(err)
	}
	withPeers(t, "libmimalloc.so.2", "libjemalloc.so.2", "libtcmalloc_minimal.so.4")
	if all, err := parsePeers("fetch"); err != nil || len(all) != 3 {
		t.Error(all, err)
	}
}

// The whole command, and mistakes that must not wait for its end.
func TestRun(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "build"), 0o700); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	args := []string{"--quick", "--rounds", "1", "--peers", "none", "--only", "^(barnes|sh8)$",
		"--root", root}
	if err := run(t.Context(), args, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "not built") {
		t.Error(err)
	}
	if err := os.Symlink(testlib.Lib(t), filepath.Join(root, "build",
		"libtieralloc.so")); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), append(args, "--chart", root), io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "--chart") {
		t.Error(err)
	}
	chart := filepath.Join(root, "chart.svg")
	var out strings.Builder
	if err := run(t.Context(), append(args, "--chart", chart), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{machine(), "1 rounds", "One round tells nothing",
		"25% of the work", "barnes", "sh8", "geometric mean, time", "Peak of resident memory"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if text, err := os.ReadFile(chart); err != nil || !strings.HasPrefix(string(text), "<svg") {
		t.Errorf("%v, %.20q", err, text)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
