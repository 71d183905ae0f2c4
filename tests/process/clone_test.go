package process

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestNoThreadState: a child of clone without thread-local storage ends as it does without the
// library, whatever the library has to write then.
func TestNoThreadState(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "clone.c", "-fno-stack-protector", "-Wl,-z,now")
	names := map[string]int{"child": 0, "thread": 7}
	for name, status := range names {
		if r := plain(t, prog, name); r.Status != status || r.Stdout+r.Stderr != "" {
			t.Fatalf("plain: %+v, want status %d", r, status)
		}
	}
	for _, env := range []string{
		"A=", "TA_DISABLE=1", "TA_INTERPOSE=0", "TA_SECURE=1", "TA_RULES=thread=child:hot",
		"TA_LOG=debug",
		"TA_STATS_LIVE=1", "TA_STATS_FILE=" + filepath.Join(t.TempDir(), "%p"),
	} {
		for name, status := range names {
			t.Run(env+"/"+name, func(t *testing.T) {
				r := preloaded(t, []string{env, "TA_LOG_FILE=" + filepath.Join(t.TempDir(), "log")},
					prog, name)
				if r.Status != status || r.Stdout+r.Stderr != "" {
					t.Errorf("%+v, want status %d", r, status)
				}
			})
		}
	}
}

// TestKeyZero: the library's thread-specific key is not the one that a program names by a variable
// that it never set.
func TestKeyZero(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "key0.c")
	clean(t, plain(t, prog))
	for _, env := range []string{"A=", "TA_DISABLE=1", "TA_INTERPOSE=0", "TA_SECURE=1"} {
		clean(t, preloaded(t, []string{env}, prog))
	}
}
