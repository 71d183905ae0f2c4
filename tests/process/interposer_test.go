package process

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestInterposed: functions of libc that another preloaded library provides, and that allocate, are
// called neither by malloc and free nor at boot, fork and exit.
func TestInterposed(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "everything.c", "-ldl")
	other := testlib.CC(t, "interposer.c", "-shared", "-fPIC", "-ldl",
		"-fno-tree-loop-distribute-patterns")
	if r := with(t, other, nil, prog); r.Status != 0 || r.Stdout != "done\n" {
		t.Fatalf("without the library: %+v", r)
	}
	for order, preload := range map[string]string{"before": other + " " + testlib.Lib(t),
		"after": testlib.Lib(t) + " " + other} {
		for _, env := range []string{"A=", "TA_SECURE=1", "TA_DISABLE=1", "TA_FAST_HARD=64M",
			"TA_RULES=lib=libm*:cold;thread=x:hot",
			"TA_STATS_FILE=" + filepath.Join(t.TempDir(), "%p")} {
			t.Run(order+"/"+env, func(t *testing.T) {
				r := with(t, preload, []string{env}, prog)
				clean(t, r)
				if r.Stdout != "done\n" {
					t.Errorf("%q", r.Stdout)
				}
			})
		}
	}
}
