package process

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestValgrind: valgrind reads the debug information of the library without a complaint.
func TestValgrind(t *testing.T) {
	t.Parallel()
	testlib.Need(t, "valgrind")
	r := preloaded(t, nil, "valgrind", "--trace-children=yes", "/bin/true")
	if r.Status != 0 || !strings.Contains(r.Stderr, "ERROR SUMMARY: 0 errors") ||
		strings.Contains(r.Stderr, "debug info") || strings.Contains(r.Stderr, "unhandled") {
		t.Errorf("%+v", r)
	}
}
