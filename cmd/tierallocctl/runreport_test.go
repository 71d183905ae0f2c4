package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

func TestExpand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "50% *odd[x]?")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"7.ls.json", "7.a.b.json", "77.ls.json", "%7.x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"%p.%e.json": {"7.a.b.json", "7.ls.json"},
		"%p.ls.json": {"7.ls.json"},
		"%%%p.%e":    {"%7.x"},
		"%p.%r.%h":   {"7.a.b.json", "7.ls.json"},
		"%e":         {"%7.x", "7.a.b.json", "7.ls.json", "77.ls.json"},
		"none.%p":    nil,
	} {
		var got []string
		for _, path := range expand(escapeTemplate(dir)+"/"+pattern, "7") {
			got = append(got, filepath.Base(path))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", pattern, got, want)
		}
	}
}

// TestFind: a report counts if it is of the command's process, not of an earlier one
// with its number.
func TestFind(t *testing.T) {
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(0, 1700000000123456789) // the fixture's
	dir := t.TempDir()
	l := &runReport{pattern: dir + "/%p.%e"}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("4242.broken", "{")
	put("4242.other", strings.Replace(string(text), "4242", "4243", 1))
	if _, r, _ := l.find(ending{pid: 4242, started: start}); r != nil {
		t.Error("a report of another process, or none, was taken")
	}
	put("4242.trainer", string(text))
	if _, r, path := l.find(ending{pid: 4242, started: start}); r == nil ||
		filepath.Base(path) != "4242.trainer" {
		t.Error("the report was not found")
	}
	if _, r, _ := l.find(ending{pid: 4242, started: start.Add(1)}); r != nil {
		t.Error("an older report was taken")
	}
}

func TestNewRunReport(t *testing.T) {
	l, err := newRunReport(environ{"TA_STATS_FILE=x.%p"})
	dir, _ := os.Getwd()
	if v, _ := l.env.get("TA_STATS_FILE"); err != nil || l.dir != "" || l.pattern != dir+"/x.%p" ||
		v != l.pattern {
		t.Errorf("%+v, %v", l, err)
	}
	l.close(ending{})
	l, err = newRunReport(nil)
	if err != nil || !strings.HasPrefix(l.pattern, l.dir) {
		t.Fatalf("%+v, %v", l, err)
	}
	if err := os.WriteFile(l.dir+"/1.x.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := l.others(""); n != 1 {
		t.Errorf("%d other reports", n)
	}
	l.close(ending{})
	if _, err := os.Stat(l.dir); !os.IsNotExist(err) {
		t.Error("the folder is still there")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := newRunReport(nil); err == nil {
		t.Error("no folder could be made, and nothing is said")
	}
}

func TestCanCreate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"": true, file: true, filepath.Join(dir, "new"): true, "new": true,
		dir: false, filepath.Join(dir, "none", "new"): false, filepath.Join(file, "new"): false,
		testlib.Null(t): false,
	} {
		if err := canCreate(path); (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestPagePaths: the words and templates of TA_STATS_LIVE.
func TestPagePaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "5.prog")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string][]string{
		"": nil, "0": nil, "/none/%p": nil, dir + "/%p.%e": {path}, dir + "/%p": nil,
	} {
		if got := pagePaths(environ{"TA_STATS_LIVE=" + value}, strconv.Itoa(5)); !slices.Equal(got,
			want) {
			t.Errorf("%s: %q", value, got)
		}
	}
	if got := pagePaths(environ{"TA_STATS_LIVE=" + dir + "/%p.%e"}, "*"); !slices.Equal(got,
		[]string{path}) {
		t.Errorf("of any process: %q", got)
	}
}
