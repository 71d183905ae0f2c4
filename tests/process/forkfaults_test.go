package process

import (
	"fmt"
	"testing"

	"tieralloc/internal/testlib"
)

// TestForkFaults: a fork writes few pages more than it does without the library. Each costs parent
// and child a page fault, for every command that a shell starts.
func TestForkFaults(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "forkfaults.c")
	count := func(r testlib.Result) (parent, child int) {
		clean(t, r)
		if _, err := fmt.Sscan(r.Stdout, &parent, &child); err != nil {
			t.Fatal(err)
		}
		return parent, child
	}
	plainParent, plainChild := count(plain(t, prog))
	parent, child := count(preloaded(t, nil, prog))
	t.Logf("parent %d, without the library %d; child %d and %d", parent, plainParent, child,
		plainChild)
	if parent > plainParent+4 || child > plainChild+2 {
		t.Errorf("parent %d page faults, without the library %d; child %d and %d", parent,
			plainParent, child, plainChild)
	}
}
