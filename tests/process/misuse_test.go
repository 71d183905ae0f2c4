package process

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// misuses are the cases of misuse.c and the function that must be named.
var misuses = []struct{ function, cases string }{
	{"free", `twice_0 twice_16 twice_1k twice_40k twice_1m twice_huge twice_giant aba_small aba_medium aba_huge
		other_then_me me_then_other others_both worker_pushed worker_ring worker_beyond remote_taken_back twice_full twice_full_other page_gone stack_pointer data_pointer literal code
		mapped unmapped kernel_half non_canonical inside_empty inside_small inside_odd inside_medium inside_large inside_huge
		inside_huge_far never_made before_block`},
	{"realloc", "realloc_freed realloc_huge realloc_inside realloc_foreign realloc_zero_freed"},
	{"reallocarray", "reallocarray_freed"},
	{"malloc_usable_size", "usable_freed usable_foreign"},
}

// TestMisuse: one line on standard error with the function and the pointer, then
// SIGABRT, whatever the purge delay.
func TestMisuse(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "misuse.c", "-w")
	for _, m := range misuses {
		for _, name := range strings.Fields(m.cases) {
			for _, env := range []string{"TA_PURGE_DELAY=250ms", "TA_PURGE_DELAY=0"} {
				t.Run(name+"/"+env, func(t *testing.T) {
					r := preloaded(t, []string{env}, prog, name)
					pointer := strings.TrimSpace(r.Stdout)
					if r.Status != 134 || !oneLine(r.Stderr, m.function+"("+pointer+")") {
						t.Errorf("status %d, pointer %s\nstderr: %s", r.Status, pointer,
							clip(r.Stderr))
					}
				})
			}
		}
	}
}

// TestUsableFreed: who looks at a freed block is not told of a double free.
func TestUsableFreed(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "misuse.c", "-w")
	for _, env := range []string{"TA_SECURE=0", "TA_SECURE=1"} {
		r := preloaded(t, []string{env}, prog, "usable_freed")
		if want := "malloc_usable_size(" + strings.TrimSpace(r.Stdout) +
			"): use after free of a block"; r.Status != 134 || !oneLine(r.Stderr, want) {
			t.Errorf("%s: status %d, %s", env, r.Status, clip(r.Stderr))
		}
	}
}

// TestMisuseFirst: of a thread's first blocks, which lie in one page, the line does not name the
// size of that page's units.
func TestMisuseFirst(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "misuse.c", "-w")
	for name, want := range map[string]string{
		"twice_1k":     "double free of a block",
		"usable_freed": "use after free of a block",
		"inside_small": "not the start of a block; it lies in a block of 112 bytes",
	} {
		r := preloaded(t, nil, prog, name)
		if r.Status != 134 || !strings.HasSuffix(r.Stderr, "): "+want+"\n") {
			t.Errorf("%s: status %d, %s", name, r.Status, clip(r.Stderr))
		}
	}
}

// TestForeignBlocks: what libc's own malloc made may be freed with ours.
func TestForeignBlocks(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "foreign.c", "-ldl")
	cases(t, prog, nil, "small", "large", "thread")
	for _, env := range []string{"TA_DISABLE=1", "TA_INTERPOSE=0"} {
		t.Run(env, func(t *testing.T) {
			r := preloaded(t, []string{env}, prog, "is libc's")
			clean(t, r)
			if r.Stdout != "1\n" {
				t.Error("mallinfo2 does not tell of the heap that malloc uses")
			}
		})
	}
}
