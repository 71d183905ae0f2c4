package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestEvery: with TA_PROFILE_EVERY a process that is killed leaves a profile, and no other file.
func TestEvery(t *testing.T) {
	program := testlib.CC(t, "every.c", "-O1")
	for _, c := range []struct {
		every string
		least int // bytes, of 256 MiB; a write that takes long puts off the next
	}{{"1M", 1 << 20}, {"64M", 60 << 20}, {"0", 0}, {"1G", 0}} {
		dir := t.TempDir()
		file := filepath.Join(dir, "heap.pb")
		res := testlib.Run(t, testlib.Cmd{Args: []string{program, "kill"}, Preload: true,
			Env: []string{"TA_PROFILE=" + file, "TA_PROFILE_RATE=64K",
				"TA_PROFILE_EVERY=" + c.every}})
		if res.Status == 0 || res.Stderr != "" {
			t.Fatalf("%s: %+v", c.every, res)
		}
		if c.least == 0 {
			testlib.OnlyFiles(t, dir)
			continue
		}
		testlib.OnlyFiles(t, dir, "heap.pb")
		p := read(t, file)
		total := int64(0)
		for _, s := range p.Sample {
			total += s.Value[p.value(t, "alloc_space")]
		}
		if total < int64(c.least) || total > 300<<20 {
			t.Errorf("%s: %d bytes allocated", c.every, total)
		}
	}
}

// TestEveryStorm writes profiles all the time, in all places that allocate: signal handlers, threads,
// forked children.
func TestEveryStorm(t *testing.T) {
	program := testlib.CC(t, "storm.cc", "-O2", "-pthread", "-ldl")
	plugin := testlib.CC(t, "plugin.c", "-O2", "-shared", "-fPIC")
	dir := t.TempDir()
	res := testlib.Run(t, testlib.Cmd{Args: []string{program, "2", plugin}, Preload: true,
		Env: []string{"TA_PROFILE=" + dir + "/heap.%p.pb", "TA_PROFILE_RATE=1K",
			"TA_PROFILE_EVERY=1M", "TA_STATS_LIVE=" + dir + "/%p.page", "TA_BACKGROUND=1"}})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("%+v", res)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		switch {
		case strings.HasSuffix(file, ".pb"):
			read(t, file)
		case !strings.HasSuffix(file, ".page"):
			t.Errorf("%s was left behind", file)
		}
	}
}

// TestEveryFails: where the file cannot be written any more one line says so, and the program runs
// on.
func TestEveryFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	res := testlib.Run(t, testlib.Cmd{Args: []string{testlib.CC(t, "every.c", "-O1"), dir},
		Preload: true, Env: []string{"TA_PROFILE=" + dir + "/heap.pb", "TA_PROFILE_EVERY=1M"}})
	// Once for TA_PROFILE_EVERY, and once at exit.
	if res.Status != 0 || strings.Count(res.Stderr, "cannot write TA_PROFILE") != 2 {
		t.Errorf("%+v", res)
	}
}
