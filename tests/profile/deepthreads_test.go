package profile

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestDeepThreads: the stack of any thread is read without a system call.
func TestDeepThreads(t *testing.T) {
	p, _ := run(t, "1K", testlib.CC(t, "deepthreads.c", "-O1", "-pthread"))
	if n := p.comment(t, "samples"); n < 100 {
		t.Errorf("%d samples", n)
	}
	if n := p.comment(t, "stacks not unwound to their end"); n != 0 {
		t.Errorf("%d stacks were not unwound to their end", n)
	}
	allocs, deep := p.value(t, "alloc_objects"), 0
	for _, s := range p.Sample {
		stack := p.stack(s)
		switch strings.Count(strings.Join(stack, " "), "deeper") {
		case 0:
		case 41:
			deep++
		default:
			t.Errorf("%d blocks of %q", s.Value[allocs], stack)
		}
	}
	if deep == 0 {
		t.Error("no stack has all 41 frames of the thread's function")
	}
}

// TestUnmapped: a walk does not read memory below the stack of its thread that was readable once.
func TestUnmapped(t *testing.T) {
	prog := testlib.CC(t, "unmapped.c", "-O1", "-fno-builtin", "-pthread")
	for _, args := range [][]string{{prog}, {prog, "first"}} {
		p, _ := run(t, "1K", args...)
		if n := p.comment(t, "samples"); n < 1000 {
			t.Errorf("%q: %d samples", args, n)
		}
	}
}
