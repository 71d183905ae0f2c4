package process

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

func TestEarlyAndLate(t *testing.T) {
	t.Parallel()
	plugin := testlib.CC(t, "plugin.c", "-shared", "-fPIC")
	prog := testlib.CC(t, "early.c", "-ldl")
	for _, c := range []struct{ name, stdout string }{
		{"prelude", "destructor\n"},
		{"handlers", "handler\nhandler\ndestructor\n"},
		{"quick", "quick\n"},
		{"load", "destructor\n"},
	} {
		for _, env := range []string{"LD_BIND_NOW=", "LD_BIND_NOW=1"} {
			t.Run(c.name+"/"+env, func(t *testing.T) {
				r := preloaded(t, []string{env, "PLUGIN=" + plugin}, prog, c.name)
				clean(t, r)
				if r.Stdout != c.stdout {
					t.Errorf("stdout %q, want %q", r.Stdout, c.stdout)
				}
			})
		}
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "threads.cc")
	cases(t, prog, nil, "destructors", "small stacks", "main first")
	t.Run("many", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "stats")
		clean(t, preloaded(t, []string{"TA_STATS_FILE=" + file}, prog, "many"))
		r := readReport(t, file)
		// Nine threads of 6000 have work at a time; how many are on their way out is the
		// scheduler's.
		if h := r.Heap; h.Heaps > 40 || h.Abandoned > 40 || h.Committed > 24<<20 ||
			h.Mapped > 32<<20 {
			t.Errorf("heaps %d, abandoned %d, committed %d, mapped %d", h.Heaps, h.Abandoned,
				h.Committed, h.Mapped)
		}
	})
}

func TestLimit(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "limit.c")
	cases(t, prog, nil, "sizes", "functions", "threads", "reserved")
	cases(t, prog, []string{"TA_PURGE_DELAY=3600s"}, "sizes")
}

// TestNoProc hides /proc, as a chroot or an early boot does.
func TestNoProc(t *testing.T) {
	t.Parallel()
	testlib.NeedMounts(t)
	prog := testlib.CC(t, "contents.c")
	file := filepath.Join(t.TempDir(), "stats")
	const script = `mount -t tmpfs none /proc && test ! -e /proc/self && LD_PRELOAD=$0 exec "$1" ` +
		`"own marks"`
	r := testlib.Run(t, testlib.Cmd{
		Args: []string{"unshare", "-m", "sh", "-c", script, testlib.Lib(t), prog},
		Env:  append(append([]string{}, quiet...), "TA_STATS_FILE="+file),
	})
	clean(t, r)
	if r := readReport(t, file); r.Program != "contents" {
		t.Errorf("program %q", r.Program)
	}
}
