package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// blocks208 is the count of blocks of the one class that ends.c uses; the loader
// and libc have a few of their own.
func (r report) blocks208() (live, allocated, freed int64) {
	for _, c := range r.Heap.Classes {
		if c.Size == 208 {
			return c.Live, c.TotalAlloc, c.TotalFreed
		}
	}
	return 0, 0, 0
}

func TestEnds(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "ends.c")
	for _, c := range []struct {
		way    string
		status int
		files  int
		env    string
	}{
		{"return", 0, 1, ""}, {"exit", 7, 1, ""}, {"quick_exit", 7, 1, ""}, {"_exit", 7, 1, ""},
		{"_Exit", 7, 1, ""}, {"thread", 7, 1, ""}, {"handler", 7, 1, ""}, {"abort", 134, 0, ""},
		{"stray", 7, 1, ""},
		{"pthread_exit", 0, 1, ""}, {"detached", 0, 1, ""},
		// the control plane's threads do not keep the process
		{"pthread_exit", 0, 1, "TA_BACKGROUND=1"}, {"detached", 0, 1, "TA_BACKGROUND=1"},
		{"pthread_exit", 0, 1, "TA_LOG=error"}, {"detached", 0, 1, "TA_LOG=error"},
	} {
		t.Run(strings.TrimSpace(c.way+" "+c.env), func(t *testing.T) {
			dir := t.TempDir()
			r := preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "%e.json"), c.env},
				prog, c.way)
			files := statsFiles(t, dir)
			if r.Status != c.status || r.Stdout+r.Stderr != "" || len(files) != c.files {
				t.Fatalf("%+v, files %q", r, files)
			}
			if c.files == 0 {
				return
			}
			got := readReport(t, filepath.Join(dir, "ends.json"))
			if live, _, _ := got.blocks208(); live < 100 || live > 110 || got.Program != "ends" {
				t.Errorf("%q has %d blocks", got.Program, live)
			}
		})
	}
	t.Run("busy", func(t *testing.T) {
		for range 10 {
			file := filepath.Join(t.TempDir(), "stats")
			if r := preloaded(t, []string{"TA_STATS_FILE=" + file}, prog, "busy"); r.Status != 7 ||
				r.Stderr != "" {
				t.Fatalf("%+v", r)
			}
			validReport(t, file)
		}
	})
	t.Run("exec", func(t *testing.T) {
		dir := t.TempDir()
		r := preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "%e")}, prog, "exec")
		if files := statsFiles(t, dir); r.Status != 7 || r.Stderr != "" ||
			!slices.Equal(files, []string{"sh"}) {
			t.Errorf("%+v, files %q", r, files)
		}
	})
}

// pids reads "who pid" lines.
func pids(out string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(out) {
		who, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
		m[who] = pid
	}
	return m
}

// TestForkedReports: each process of a family has a file, and counts from its own
// beginning. What is live includes what it was born with.
func TestForkedReports(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "ends.c")
	for _, name := range []string{"%p", "fixed"} {
		t.Run(strings.Trim(name, "%"), func(t *testing.T) { // the folder takes the test's name
			dir := t.TempDir()
			r := preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, name)}, prog, "fork")
			clean(t, r)
			if files := statsFiles(t, dir); len(files) != 3 {
				t.Fatalf("files %q", files)
			}
			for who, want := range map[string]struct{ live, allocated, freed int64 }{
				"parent": {101, 101, 0}, "child": {151, 50, 0}, "grandchild": {175, 25, 1},
			} {
				pid := pids(r.Stdout)[who]
				file := pid
				if name == "fixed" {
					file = "fixed." + pid
					if who == "parent" {
						file = "fixed"
					}
				}
				got := readReport(t, filepath.Join(dir, file))
				live, allocated, freed := got.blocks208()
				if fmt.Sprint(got.Pid) != pid || live-want.live != 0 ||
					allocated != want.allocated || freed != want.freed {
					t.Errorf("%s: pid %d, %d live, %d allocated, %d freed; want %+v", who, got.Pid,
						live, allocated, freed, want)
				}
			}
		})
	}
	t.Run("_Fork", func(t *testing.T) {
		dir := t.TempDir()
		r := preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "%p")}, prog, "_Fork")
		clean(t, r)
		got := readReport(t, filepath.Join(dir, pids(r.Stdout)["child"]))
		if live, allocated, _ := got.blocks208(); live != 1100 || allocated > 1000 ||
			allocated < 900 {
			// it may notice late that it was forked
			t.Errorf("%d live, %d allocated", live, allocated)
		}
	})
	t.Run("vfork", func(t *testing.T) {
		dir := t.TempDir()
		r := preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "%p")}, prog, "vfork")
		if files := statsFiles(t, dir); r.Status != 137 || len(files) != 0 {
			t.Errorf("%+v, files %q", r, files)
		}
	})
}

// TestStatsFile: mode 0600 whatever the mask, never through a link, names with
// every escape, and one line when it cannot be written.
func TestStatsFile(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "ends.c")
	for _, mask := range []string{"000", "077", "777"} {
		file := filepath.Join(t.TempDir(), "stats")
		r := preloaded(t, []string{"TA_STATS_FILE=" + file}, "sh", "-c",
			"umask "+mask+`; exec "$0" exit`, prog)
		info, err := os.Stat(file)
		want := os.FileMode(0o600)
		if mask == "777" {
			want = 0
		}
		if err != nil || r.Status != 7 || r.Stderr != "" || info.Mode() != want {
			t.Errorf("umask %s: %+v, %v, %v", mask, r, info, err)
		}
	}
	t.Run("link", func(t *testing.T) {
		dir := t.TempDir()
		target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
		if err := os.WriteFile(target, []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		r := preloaded(t, []string{"TA_STATS_FILE=" + link}, prog, "exit")
		if text, err := os.ReadFile(target); err != nil || string(text) != "precious" ||
			r.Status != 7 {
			t.Errorf("%+v; the target holds %q, %v", r, text, err)
		}
		if info, err := os.Lstat(link); err != nil || r.Stderr == "" && !info.Mode().IsRegular() {
			t.Errorf("no line and no file: %v, %v", info, err)
		}
	})
	t.Run("escapes", func(t *testing.T) {
		dir := t.TempDir()
		r := preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "100%%.%e.%p.%e")}, prog,
			"exit")
		files := statsFiles(t, dir)
		if len(files) != 1 || r.Status != 7 {
			t.Fatalf("%+v, files %q", r, files)
		}
		got := readReport(t, filepath.Join(dir, files[0]))
		if want := fmt.Sprintf("100%%.ends.%d.ends", got.Pid); files[0] != want {
			t.Errorf("%q, want %q", files[0], want)
		}
	})
	t.Run("relative", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "100%")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		r := testlib.Run(t, testlib.Cmd{Args: []string{prog, "stray"}, Dir: dir, Preload: true,
			Env: append(append([]string{}, quiet...), "TA_STATS_FILE=rel.json")})
		if r.Status != 7 {
			t.Errorf("%+v", r)
		}
		readReport(t, filepath.Join(dir, "rel.json"))
	})
	t.Run("unwritable", func(t *testing.T) {
		dir, null := t.TempDir(), testlib.Null(t)
		for _, file := range []string{"/no/such/folder/f", dir, prog + "/f", null, "/dev/full",
			"/proc/x",
			filepath.Join(dir, strings.Repeat("n", 256))} {
			for _, way := range []string{"exit", "_exit", "quick_exit"} {
				r := preloaded(t, []string{"TA_STATS_FILE=" + file}, prog, way)
				if r.Status != 7 || r.Stdout != "" ||
					!oneLine(r.Stderr, "TA_STATS_FILE", clipName(file)) {
					t.Errorf("%s: %+v", file, r)
				}
			}
		}
		if files := statsFiles(t, dir); len(files) != 0 {
			t.Errorf("left behind: %q", files)
		}
		if info, err := os.Stat(null); err != nil || info.Mode().IsRegular() {
			t.Error("a device was replaced")
		}
	})
}

func clipName(s string) string { return s[:min(len(s), 150)] }
