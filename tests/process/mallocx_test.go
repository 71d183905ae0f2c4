package process

import (
	"os"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestMallocx: jemalloc's own functions share malloc's heap, in programs that are linked with
// jemalloc and in others. Where malloc is jemalloc's, so are these.
func TestMallocx(t *testing.T) {
	t.Parallel()
	names := []string{"real size", "clear", "mixed"}
	t.Run("alone", func(t *testing.T) {
		prog := testlib.CC(t, "mallocx.c")
		for _, env := range []string{"A=", "TA_SECURE=1"} {
			cases(t, prog, []string{env}, names...)
		}
		r := preloaded(t, nil, prog, "misuse")
		if r.Status != 128+6 || strings.Count(r.Stderr, "\n") != 1 ||
			!strings.Contains(r.Stderr, "dallocx(0x") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("jemalloc", func(t *testing.T) {
		const jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
		if _, err := os.Stat(jemalloc); err != nil {
			testlib.Lacks(t, jemalloc)
		}
		prog := testlib.CC(t, "mallocx.c", "-DJEMALLOC", jemalloc)
		for _, name := range names {
			clean(t, plain(t, prog, name))
		}
		for _, env := range []string{"A=", "TA_SECURE=1", "TA_DISABLE=1", "TA_INTERPOSE=0"} {
			cases(t, prog, []string{env}, names...)
		}
	})
}
