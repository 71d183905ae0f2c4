package faults

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestPoorThreads: who gets no heap can free all the same.
func TestPoorThreads(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "poor.c", "-ldl", "-I../../interpose")
	r := testlib.Run(t, testlib.Cmd{Args: []string{program}, Env: quiet, Preload: true})
	t.Log(r.Stdout)
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("status %d, %s%s", r.Status, r.Stdout, r.Stderr)
	}
}
