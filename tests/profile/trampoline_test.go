package profile

import (
	"slices"
	"testing"

	"tieralloc/internal/testlib"
)

// TestTrampoline: stacks with Python's perf trampolines are whole. Each trampoline is a frame
// without a name: the tool finds it in the interpreter's map.
func TestTrampoline(t *testing.T) {
	p, _ := run(t, "1K", testlib.CC(t, "trampoline.c", "-O2"))
	if n := p.comment(t, "stacks not unwound to their end"); n != 0 {
		t.Errorf("%d stacks were not unwound to their end", n)
	}
	want := []string{"allocate", ""}
	for range 7 {
		want = append(want, "middle", "")
	}
	want = append(want, "main")
	for _, s := range p.Sample {
		names := p.stack(s)
		if !slices.Contains(names, "allocate") {
			continue
		}
		if n := min(len(want), len(names)); !slices.Equal(names[:n], want) {
			t.Errorf("the stack is %q, not %q", names, want)
		}
		return
	}
	t.Error("no stack with allocate")
}
