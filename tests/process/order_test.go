package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// orders are LD_PRELOAD with another library that stands in for malloc.
func orders(t *testing.T) map[string]string {
	t.Helper()
	wrapper, lib := testlib.CC(t, "wrapper.c", "-shared", "-fPIC", "-ldl"), testlib.Lib(t)
	return map[string]string{"before": wrapper + " " + lib, "after": lib + " " + wrapper}
}

// with runs the program with LD_PRELOAD as given.
func with(t *testing.T, preload string, env []string, args ...string) testlib.Result {
	t.Helper()
	env = append(append([]string{}, quiet...), env...)
	return testlib.Run(t, testlib.Cmd{Args: args, Env: append(env, "LD_PRELOAD="+preload)})
}

// lastWords fails the test unless the program died of SIGABRT with one line that
// names the function and the pointer it has printed.
func lastWords(t *testing.T, r testlib.Result, function string) {
	t.Helper()
	if r.Status != 134 || !oneLine(r.Stderr, function+"("+strings.TrimSpace(r.Stdout)+")") {
		t.Errorf("status %d, pointer %s\nstderr: %s", r.Status, strings.TrimSpace(r.Stdout),
			clip(r.Stderr))
	}
}

// TestOrder preloads a library that wraps malloc before and after ours.
func TestOrder(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "order.c")
	want := plain(t, "ls", "-R", "/usr/include")
	for order, preload := range orders(t) {
		for _, env := range []string{"A=", "TA_DISABLE=1", "TA_INTERPOSE=0",
			"TA_LOG=info TA_LOG_FILE=/dev/null"} {
			t.Run(order+"/"+env, func(t *testing.T) {
				r := with(t, preload, strings.Fields(env), "ls", "-R", "/usr/include")
				clean(t, r)
				if r.Stdout != want.Stdout {
					t.Errorf("ls: %d bytes of output, plain %d", len(r.Stdout), len(want.Stdout))
				}
			})
		}
		t.Run(order+"/serves", func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats")
			clean(t, with(t, preload, []string{"TA_STATS_FILE=" + file}, "ls", "-R",
				"/usr/include"))
			if r := readReport(t, file); r.Calls["malloc"] < 100 {
				t.Errorf("calls %v", r.Calls)
			}
		})
		t.Run(order+"/bad", func(t *testing.T) {
			lastWords(t, with(t, preload, nil, prog, "bad"),
				"free")
		})
	}
}

// TestPartialMalloc: a library before ours brings malloc, but not the whole family. What it lacks
// builds on it, as libc's does.
func TestPartialMalloc(t *testing.T) {
	t.Parallel()
	part, prog := testlib.CC(t, "partmalloc.c", "-shared", "-fPIC"), testlib.CC(t, "family.cc")
	for _, preload := range []string{part, part + " " + testlib.Lib(t),
		testlib.Lib(t) + " " + part} {
		for _, env := range []string{"A=", "TA_DISABLE=1", "TA_INTERPOSE=0", "TA_SECURE=1"} {
			r := with(t, preload, []string{env}, prog)
			if r.Status != 0 || r.Stdout != "done\n" || r.Stderr != "" {
				t.Errorf("%s %s: %+v", preload, env, r)
			}
		}
	}
}

// TestSinks: what the library has to say harms nobody.
func TestSinks(t *testing.T) {
	t.Parallel()
	prog, launch := testlib.CC(t, "order.c", withCxx...), testlib.CC(t, "launch.c")
	gone := "TA_STATS_FILE=" + filepath.Join(t.TempDir(), "gone", "stats")
	for name, env := range map[string]string{"bad value": "TA_PURGE_DELAY=abc", "no folder": gone} {
		for _, kind := range []string{"broken", "limit"} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				r := testlib.Run(t, testlib.Cmd{Args: []string{launch, kind, prog, "status"},
					Env: append(append([]string{"LIB=" + testlib.Lib(t)}, quiet...), env)})
				if r.Status != 5 || r.Stdout+r.Stderr != "" {
					t.Errorf("%+v, want status 5", r)
				}
			})
		}
	}
	t.Run("own file", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "gone"), 0o755); err != nil {
			t.Fatal(err)
		}
		r := testlib.Run(t, testlib.Cmd{Args: []string{prog, "own file"}, Dir: dir, Preload: true,
			Env: append(append([]string{}, quiet...),
				"TA_STATS_FILE="+filepath.Join(dir, "gone", "stats"))})
		if r.Status != 5 || r.Stdout+r.Stderr != "" {
			t.Errorf("%+v, want status 5", r)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "data")); err != nil ||
			string(text) != "DATA" {
			t.Errorf("the program's file holds %q, %v", text, err)
		}
	})
}

// TestLastWords: pointers that must not be followed, and the name of the caller.
func TestLastWords(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "order.c", withCxx...)
	for name, function := range map[string]string{"none": "free", "delete": "operator delete",
		"delete array": "operator delete", "delete foreign": "operator delete"} {
		t.Run(name, func(t *testing.T) {
			r := preloaded(t, nil, prog, name)
			if name == "delete array" && strings.Contains(r.Stderr, "delete[]") {
				function += "[]"
			}
			lastWords(t, r, function)
		})
	}
}

// TestAnswers: malloc_info and mallopt say what glibc's say; with memory locked the
// heap works, and at a like speed.
func TestAnswers(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "order.c", withCxx...)
	clean(t, plain(t, prog, "answers"))
	cases(t, prog, nil, "answers")
	t.Run("locked", func(t *testing.T) {
		r := preloaded(t, []string{"TA_PURGE_DELAY=10ms"}, prog, "locked")
		clean(t, r)
		if strings.HasPrefix(r.Stdout, "cannot lock") {
			t.Skip(r.Stdout)
		}
		t.Log(r.Stdout)
	})
}
