package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestPurgeDelay: with 0 freed memory goes back at once, with a short delay after it, with a long
// one not yet. Of spans more than the reserve goes at once whatever the short delay.
func TestPurgeDelay(t *testing.T) {
	prog := testlib.CC(t, "settings.c")
	for _, c := range []struct {
		delay       string
		now, paused bool
	}{
		{"0", true, true}, {"30ms", false, true}, {"3600s", false, false},
	} {
		const reserve = 4 << 10
		for _, name := range []string{"huge", "spans"} {
			t.Run(name+"/"+c.delay, func(t *testing.T) {
				r := preloaded(t, []string{"TA_PURGE_DELAY=" + c.delay}, prog, name)
				clean(t, r)
				var now, took, paused int
				if _, err := fmt.Sscan(r.Stdout, &now, &took, &paused); err != nil {
					t.Fatal(err, r.Stdout)
				}
				// A heap may keep some MiB of empty pages for a while.
				most := 5 << 10
				if name == "spans" && !c.now {
					most = 12<<10 - reserve/4 // a span is a slice larger than its block
				}
				// On a busy machine a short delay may be over at once.
				early := !c.now && (c.delay != "30ms" || took < 25)
				if c.now && now <= most || early && now > most || (paused > 7<<10) != c.paused {
					t.Errorf("%d KiB at once, in %d ms, %d after a pause", now, took, paused)
				}
			})
		}
	}
}

// TestPurgeOfCurrentPages: what a heap has kept for its next allocations grows old,
// too.
func TestPurgeOfCurrentPages(t *testing.T) {
	prog := testlib.CC(t, "settings.c")
	r := preloaded(t, []string{"TA_PURGE_DELAY=30ms"}, prog, "classes")
	clean(t, r)
	if n, err := strconv.Atoi(strings.TrimSpace(r.Stdout)); err != nil || n < 24<<10 {
		t.Errorf("of 48 MiB freed half a second ago %d KiB are given back, %v", n, err)
	}
}

// TestBadSettings: one line for each bad value, named and shown, and the default
// is in force; under TA_STRICT=1 the process ends before main.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "settings.c")
	for _, bad := range []string{"TA_DISABLE=yes", "TA_INTERPOSE=2", "TA_STATS_FILE=/tmp/%z",
		"TA_PURGE_DELAY=10",
		"TA_PURGE_DELAY=-1s", "TA_LOG=loud"} {
		name, value, _ := strings.Cut(bad, "=")
		r := preloaded(t, []string{bad}, prog, "work")
		if r.Status != 0 || r.Stdout != "done\n" ||
			!oneLine(r.Stderr, name, value, "expected", "using") {
			t.Errorf("%s: %+v", bad, r)
		}
		r = preloaded(t, []string{bad, "TA_STRICT=1"}, prog, "work")
		if r.Status != 78 || r.Stdout != "" || !oneLine(r.Stderr, name, value) {
			t.Errorf("%s, strict: %+v", bad, r)
		}
	}
	r := preloaded(t, []string{"TA_PURGE_DELAY=x", "TA_DISABLE=x"}, prog, "work")
	if r.Status != 0 || strings.Count(r.Stderr, "\n") != 2 {
		t.Errorf("two bad values: %+v", r)
	}
	clean(t, preloaded(t, []string{"TA_STRICT=1", "TA_PURGE_DELAY=1ms", "TA_UNHEARD_OF=1"}, prog,
		"work"))
}

// TestStrictStatsFile: a report that cannot be written is a bad setting under TA_STRICT=1.
func TestStrictStatsFile(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "settings.c")
	dir := t.TempDir()
	for _, path := range []string{"/no/such/folder/x", dir, prog + "/x",
		"/" + strings.Repeat("x", 300) + "/y"} {
		r := preloaded(t, []string{"TA_STATS_FILE=" + path}, prog, "work")
		if r.Status != 0 || r.Stdout != "done\n" || !oneLine(r.Stderr, "TA_STATS_FILE", path) {
			t.Errorf("%s: %+v", path, r)
		}
		r = preloaded(t, []string{"TA_STATS_FILE=" + path, "TA_STRICT=1"}, prog, "work")
		if r.Status != 78 || r.Stdout != "" || !oneLine(r.Stderr, "TA_STATS_FILE", path) {
			t.Errorf("%s, strict: %+v", path, r)
		}
	}
	for _, name := range []string{"x", "%p", "%" + "%"} {
		clean(t, preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, name), "TA_STRICT=1"},
			prog, "work"))
	}
}

// TestUnwritableName: the line about a file that cannot be written names that file, not a template.
func TestUnwritableName(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"TA_STATS_FILE": "", "TA_PROFILE": "",
		"TA_CUDA_SNAPSHOT": "TA_CUDA=1"} {
		// the shell has the process's number before the program does
		r := testlib.Run(t, testlib.Cmd{Args: []string{"sh", "-c",
			`echo $$; LD_PRELOAD=$LIBRARY exec /bin/true`},
			Env: append(append([]string{}, quiet...), "LIBRARY="+testlib.Lib(t),
				name+"=/no/such/folder/x%p.%e.%r.%"+"%", more)})
		pid := strings.TrimSpace(r.Stdout)
		want := "tieralloc: cannot write " + name + " /no/such/folder/x" + pid + ".true.none.%: "
		if r.Status != 0 || !oneLine(r.Stderr, want) {
			t.Errorf("%+v: not %q", r, want)
		}
	}
}

// TestLongName: a file whose name is too long only where it is absolute and each % is replaced is
// not written. A line says so, and under TA_STRICT=1 the process ends.
func TestLongName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	prog := filepath.Join(dir, strings.Repeat("x", 200))
	if err := os.Symlink(testlib.CC(t, "settings.c"), prog); err != nil {
		t.Fatal(err)
	}
	deep := dir
	for len(deep) < 2000 {
		deep = filepath.Join(deep, strings.Repeat("d", 200))
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, dir, using string }{
		{"TA_STATS_FILE", dir + "/%p" + strings.Repeat("%e", 20), "", "no file"},
		{"TA_STATS_FILE", strings.Repeat("x/", 1200), deep, "no file"},
		{"TA_PROFILE", dir + "/%p" + strings.Repeat("%e", 20), "", "no file"},
		{"TA_PROFILE", strings.Repeat("x/", 1200) + "%p", deep, "no file"},
		{"TA_CUDA_SNAPSHOT", dir + "/%p" + strings.Repeat("%e", 20), "", "no file"},
		{"TA_CUDA_TRACE", dir + "/%p" + strings.Repeat("%e", 20), "", "no file"},
		{"TA_STATS_LIVE", dir + "/%p" + strings.Repeat("%e", 20), "", "0"},
	} {
		shown := c.value
		if len(shown) > 160 {
			shown = shown[:160] + "..."
		}
		want := fmt.Sprintf("tieralloc: %s=%q: expected a path that has at most 4000 bytes when it"+
			" is absolute and each %% is replaced; using %s\n", c.name, shown, c.using)
		for strict, status := range map[string]int{"0": 0, "1": 78} {
			r := testlib.Run(t, testlib.Cmd{Args: []string{prog, "work"}, Dir: c.dir, Preload: true,
				Env: append(append([]string{}, quiet...), c.name+"="+c.value,
					"TA_STRICT="+strict)})
			if r.Status != status || (r.Stdout == "done\n") != (status == 0) || r.Stderr != want {
				t.Errorf("TA_STRICT=%s: %+v, not %d and %q", strict, r, status, want)
			}
		}
	}
	testlib.OnlyFiles(t, dir, strings.Repeat("d", 200), filepath.Base(prog))
}

// TestUnwritableLongName: the line about a file that cannot be written says why, however long its
// name is.
func TestUnwritableLongName(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "settings.c")
	name := "/no/such" + strings.Repeat("/folder", 500)
	for _, variable := range []string{"TA_STATS_FILE", "TA_PROFILE", "TA_CUDA_SNAPSHOT"} {
		r := preloaded(t, []string{variable + "=" + name}, prog, "work")
		want := "tieralloc: cannot write " + variable + " " + name[:350] +
			"...: error 2 (no such file or directory)\n"
		if r.Status != 0 || r.Stderr != want {
			t.Errorf("%+v: not %q", r, want)
		}
	}
	r := preloaded(t, []string{"TA_STATS_LIVE=" + name + "/%p"}, prog, "work")
	want := "tieralloc: cannot make TA_STATS_LIVE " + name[:350] +
		"...: error 2 (no such file or directory)\n"
	if r.Status != 0 || r.Stderr != want {
		t.Errorf("%+v: not %q", r, want)
	}
}

// TestDisabled: the heap serves nothing, and says so.
func TestDisabled(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "settings.c")
	dir := t.TempDir()
	file := filepath.Join(dir, "stats")
	clean(t, preloaded(t, []string{"TA_DISABLE=1", "TA_STATS_FILE=" + file}, prog, "work"))
	if files := statsFiles(t, dir); len(files) != 0 {
		t.Errorf("a disabled library wrote %q", files)
	}
	clean(t, preloaded(t, []string{"TA_INTERPOSE=0", "TA_STATS_FILE=" + file}, prog, "work"))
	if r := readReport(t, file); r.Calls["malloc"] > 20 || r.Heap.Live > 100000 {
		t.Errorf("calls %v, live %d", r.Calls, r.Heap.Live)
	}
}

// TestOwnMalloc preloads the library into a program that defines malloc itself.
func TestOwnMalloc(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "ownmalloc.c", "-ldl", "-rdynamic")
	for _, env := range []string{"A=", "TA_DISABLE=1", "TA_INTERPOSE=0",
		"TA_RULES=lib=libm*:cold;thread=x:hot"} {
		r := preloaded(t, []string{env}, prog)
		if env != "TA_DISABLE=1" { // where ta_alloc does not serve
			clean(t, r)
			if r.Stdout != "done\n" {
				t.Errorf("%s: %+v", env, r)
			}
		} else if strings.Contains(r.Stdout, "came back") {
			t.Errorf("%s: %+v", env, r)
		}
	}
	page := "TA_STATS_LIVE=" + t.TempDir() + "/%p"
	clean(t, preloaded(t, []string{"TA_BACKGROUND=1", page}, prog, "waits"))
	r := preloaded(t, []string{"TA_LOG=error"}, prog, "waits")
	if r.Status != 0 || r.Stdout != "done\n" ||
		!oneLine(r.Stderr, "TA_LOG has no effect in a program with a malloc of its own") {
		t.Errorf("with a log: %+v", r)
	}
}
