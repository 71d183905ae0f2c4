package process

import (
	"testing"

	"tieralloc/internal/testlib"
)

func TestSemantics(t *testing.T) {
	t.Parallel()
	cases(t, testlib.CC(t, "semantics.c"), nil, "align", "limits", "zero", "posix", "aligned", "errno", "usable")
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
		if r := preloaded(t, nil, prog, "options"); r.Status != 0 || r.Stdout != "" || r.Stderr == "" {
			t.Errorf("%+v", r)
		}
	})
}

func TestNewAndDelete(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "cxx.cc", "-std=c++17", "-faligned-new")
	cases(t, prog, nil, "forms", "bad_alloc", "nothrow", "handler", "throwing handler")
}
