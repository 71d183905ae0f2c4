package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

func shell(text string) job { return job{args: []string{"/bin/sh", "-c", text}} }

// What goes wrong with a program is an error that says so.
func TestOnceErrors(t *testing.T) {
	p := small(1)
	own := shell("echo sum 1; echo what 2")
	own.own = true
	silent := shell("exit 0")
	silent.own = true
	for _, c := range []struct {
		j       job
		library string
		want    string
	}{
		{shell("echo why >&2; exit 3"), "", "status 3: why"},
		{shell("kill -SEGV $$"), "", "segmentation fault"},
		{shell("echo 'tieralloc: TA_X' >&2"), "", "TA_X"},
		{shell("exit 0"), "/nonexistent/lib.so", "cannot be preloaded"},
		{job{args: []string{"/nonexistent/program"}}, "", "no such file"},
		{job{args: []string{"/bin/true"}, stdin: "/nonexistent/input"}, "", "no such file"},
		{own, "", `"what 2"`},
		{silent, "", "no sum"},
	} {
		_, err := p.once(t.Context(), c.j, contender{library: c.library})
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) {
			t.Errorf("%q under %q: %v, not %q", c.j.args, c.library, err, c.want)
		}
	}
}

// A program that hangs is ended with all that it started.
func TestLimit(t *testing.T) {
	old := limit
	limit = 300 * time.Millisecond
	defer func() { limit = old }()
	p := small(1)
	file := filepath.Join(t.TempDir(), "pid")
	_, err := p.once(t.Context(), shell("sleep 100 & echo $! >"+file+"; wait"), glibc())
	if err == nil || !strings.Contains(err.Error(), "did not end within") {
		t.Fatal(err)
	}
	ends(t, file)
}

// ends waits for the end of the process whose number is in the file.
func ends(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for try := 0; syscall.Kill(pid, 0) == nil; try++ {
		// Where nothing reaps orphans it stays, as a dead one.
		if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) +
			"/stat"); strings.Contains(string(stat), ") Z ") {
			break
		}
		if try == 100 {
			t.Fatalf("process %d goes on", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	p := small(1)
	if _, err := p.turns(ctx, "", shell("sleep 100"), []contender{glibc()}, 1); err == nil ||
		!strings.Contains(err.Error(), "context canceled") {
		t.Fatal(err)
	}
}

// The peak is the program's own, not what this process or the launcher had.
func TestPeak(t *testing.T) {
	ballast := make([]byte, 200<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	p := small(1)
	little, err := p.once(t.Context(), job{args: []string{"/bin/true"}}, glibc())
	if err != nil {
		t.Fatal(err)
	}
	much, err := p.once(t.Context(), job{args: []string{"/bin/dd", "if=/dev/zero", "of=/dev/null",
		"bs=50M", "count=1", "status=none"}}, glibc())
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(ballast)
	if little.peak <= 0 || little.peak > 10<<10 || much.peak < 50<<10 || much.peak > 70<<10 {
		t.Errorf("/bin/true: %v KiB, dd with 50 MiB: %v KiB", little.peak, much.peak)
	}
}

// The library that is kept is the same, and stays when its file is replaced.
func TestKeep(t *testing.T) {
	p := small(1)
	file := filepath.Join(t.TempDir(), "kept.so")
	want := strings.Repeat("library", 10_000)
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	kept, err := p.keep(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != want {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := p.keep("/nonexistent.so"); err == nil {
		t.Error("it kept what is not there")
	}
}

// Variables that decide how an allocator works come from the contender alone, and its
// library is the one that is preloaded.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"TA_DISABLE", "MALLOC_CONF", "MIMALLOC_VERBOSE", "LD_PRELOAD",
		"GLIBC_TUNABLES", "PYTHONMALLOC"} {
		t.Setenv(name, "/nonexistent")
	}
	p := small(1)
	j := shell(`env | grep -E '^(TA_|MALLOC|MIMALLOC|LD_|GLIBC_|PYTHON)' | sort | tr '\n' ' '`)
	c := tieralloc(t)
	c.env = []string{"TA_DEFAULT_HINT=cold"}
	if _, err := p.once(t.Context(), j, c); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "output"))
	if want := "LD_PRELOAD=" + testlib.Lib(t) + " TA_DEFAULT_HINT=cold "; err != nil ||
		string(text) != want {
		t.Errorf("%q, %v; not %q", text, err, want)
	}
}

// Another checksum than glibc's takes the contender out of the row, and out of no other.
func TestChecksum(t *testing.T) {
	p := small(1)
	one, err := p.turns(t.Context(), "w", shell("echo $TA_DEFAULT_HINT"), []contender{glibc(),
		{name: "tieralloc", library: testlib.Lib(t), env: []string{"TA_DEFAULT_HINT=cold"}},
		tieralloc(t)}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(one.failed[1], "checksum") || one.samples[1] != nil ||
		one.failed[2] != "" || len(one.samples[2]) != 2 || len(one.samples[0]) != 2 {
		t.Errorf("%+v", one)
	}
	r := results{all: []contender{glibc(), tieralloc(t), {name: "x"}}, rows: []row{one}, rounds: 2}
	if err := r.verdict(); err == nil || !strings.Contains(err.Error(),
		"w: tieralloc failed: the checksum") {
		t.Error(err)
	}
}
