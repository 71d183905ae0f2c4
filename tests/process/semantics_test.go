package process

import (
	"fmt"
	"testing"

	"tieralloc/internal/testlib"
)

func TestSemantics(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "semantics.c")
	cases(t, prog, nil, "align", "limits", "zero", "smallest", "posix", "aligned", "advised", "errno",
		"usable")
	cases(t, prog, []string{"TA_SECURE=1"}, "empty")
}

func TestContents(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "contents.c")
	cases(t, prog, nil, "calloc reused", "realloc borders", "realloc aligned", "own marks")
	// Purged and unpurged memory must both come back as zeros.
	for _, delay := range []string{"0", "20ms", "1s"} {
		t.Run(delay, func(t *testing.T) {
			cases(t, prog, []string{"TA_PURGE_DELAY=" + delay}, "calloc mixed")
		})
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "info.c")
	hour := []string{"TA_PURGE_DELAY=3600s"}
	cases(t, prog, hour, "trim", "trim ended thread")
	cases(t, prog, nil, "mallinfo", "malloc_info")
	t.Run("options", func(t *testing.T) {
		if r := preloaded(t, nil, prog, "options"); r.Status != 0 || r.Stdout != "" ||
			r.Stderr == "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		const big = 30 << 20
		var system, inUse, allSystem, allInUse, most uint64
		r := preloaded(t, nil, prog, "cancelled")
		n, err := fmt.Sscanf(r.Stderr,
			"Arena 0:\nsystem bytes = %d\nin use bytes = %d\nTotal (incl. mmap):\n"+
				"system bytes = %d\nin use bytes = %d\nmax mmap bytes = %d\n", &system, &inUse,
			&allSystem, &allInUse, &most)
		if n != 5 || r.Status != 0 || r.Stdout != "" {
			t.Fatalf("%d read, %v: %+v", n, err, r)
		}
		if inUse > system || system > 20<<20 || allSystem != system+allInUse-inUse ||
			allInUse < inUse+big || most < allSystem {
			t.Errorf("%s", r.Stderr)
		}
	})
}

func TestNewAndDelete(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "cxx.cc", "-std=c++17", "-faligned-new")
	cases(t, prog, nil, "forms", "bad_alloc", "nothrow", "handler", "throwing handler")
}
