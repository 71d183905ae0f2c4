package process

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// slotOf is the size class of a block of n bytes with TA_SECURE=1, and guarded whether it
// has a mapping of its own.
func slotOf(n int) (class string, guarded bool) {
	for _, c := range []struct{ n, class int }{{24, 32}, {100, 112}, {1000, 1024}, {4096, 4608}, {40000, 40960}} {
		if n == c.n {
			return fmt.Sprint(c.class), false
		}
	}
	return fmt.Sprint((n + 65535) / 65536 * 65536), true
}

// secureCases: %p is the pointer, %b the damaged block, %n its bytes, %c its class, %m and others other
// numbers. An empty line is a fault: a guard was hit.
var secureCases = []struct{ cases, line, guarded string }{
	{"overflow", "free(%p): the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"string_end", "free(%p): the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"underflow", "free(%p): the end of the slot at %o, size class %c, was written", ""},
	{"overflow_realloc", "realloc%o: the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"after_grown", "free(%p): the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"overflow_other", "free(%p): the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"at_malloc", "malloc: the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"at_calloc", "calloc: the block at %b of %n bytes, size class %c, was written behind its end", ""},
	{"freed_start", "malloc: the freed block at %b, size class %c, was written", ""},
	{"freed_end freed_late", "%o: the freed block at %b, size class %c, was written", ""},
	{"twice twice_late twice_other", "free(%p): double free of a block of %c bytes", "free(%p): the block was freed before"},
	{"inside", "free(%p): not the start of a block; it lies in memory of %c-byte blocks", "free(%p): not the start of a block; it lies in memory of %c-byte blocks"},
	{"new_free", "free(%p): the block at %b of %n bytes, size class %c, was made by operator new", "same"},
	{"new_realloc", "realloc(%p): the block at %b of %n bytes, size class %c, was made by operator new", "same"},
	{"malloc_delete", "operator delete(%p): the block at %b of %n bytes, size class %c, was made by malloc or its like", "same"},
	{"new_array_delete", "operator delete(%p): the block at %b of %n bytes, size class %c, was made by operator new[]", "same"},
	{"new_delete_array", "operator delete[](%p): the block at %b of %n bytes, size class %c, was made by operator new", "same"},
	{"delete_size", "operator delete(%p): the block at %b of %n bytes, size class %c, is freed as one of %m", "same"},
	{"delete_array_size", "operator delete[](%p): the block at %b of %n bytes, size class %c, is freed as one of %l", "same"},
	{"sized", "free_sized(%p): the block at %b of %n bytes, size class %c, is freed as one of %h", "same"},
	{"sized_aligned", "free_aligned_sized(%p): the block at %b of %n bytes, size class %f, is freed as one of %e", "same"},
}

// alike reports whether a line is as its pattern says, where %o is any text.
func alike(line, pattern string) bool {
	before, after, any := strings.Cut(pattern, "%o")
	if !any {
		return line == pattern
	}
	return len(line) >= len(before)+len(after) && strings.HasPrefix(line, before) && strings.HasSuffix(line, after)
}

// TestSecure: each kind of damage is found, and told of in one line that names the call,
// the block, its size class and what was found; then the process aborts.
func TestSecure(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "secure.c", append([]string{"-w"}, withCxx...)...)
	for _, c := range secureCases {
		for _, name := range strings.Fields(c.cases) {
			for _, n := range []int{24, 100, 1000, 4096, 40000, 262144} {
				t.Run(fmt.Sprint(name, "/", n), func(t *testing.T) { secureCase(t, prog, name, c.line, c.guarded, n) })
			}
		}
	}
	for _, n := range []string{"100", "3000", "70000", "200000"} {
		t.Run("fine/"+n, func(t *testing.T) {
			r := preloaded(t, []string{"TA_SECURE=1"}, prog, "fine", n)
			clean(t, r)
			if r.Stdout != "fine\n" {
				t.Errorf("it said %q", r.Stdout)
			}
		})
	}
}

func secureCase(t *testing.T, prog, name, line, own string, n int) {
	r := preloaded(t, []string{"TA_SECURE=1"}, prog, name, fmt.Sprint(n))
	class, guarded := slotOf(n)
	if guarded && own != "same" {
		line = own
	}
	if line == "" {
		if r.Status != 139 || r.Stderr != "" {
			t.Errorf("status %d, stderr %s", r.Status, clip(r.Stderr))
		}
		return
	}
	aligned := class // to 64
	if a, ok := map[int]string{24: "64", 100: "128"}[n]; ok {
		aligned = a
	}
	if n == 24 { // nothing lies between the block and the slot's end
		line = strings.ReplaceAll(line, "the block at %b of %n bytes, size class %c, was written behind its end",
			"the end of the slot at %b, size class %c, was written")
	}
	p, b, _ := strings.Cut(strings.TrimSpace(r.Stdout), " ")
	want := strings.NewReplacer("%p", p, "%b", b, "%n", fmt.Sprint(n), "%c", class, "%f", aligned,
		"%m", fmt.Sprint(n+1), "%l", fmt.Sprint(n-1), "%h", fmt.Sprint(n/2), "%e", fmt.Sprint(n+8)).Replace(line)
	if r.Status != 134 || !alike(r.Stderr, "tieralloc: "+want+"\n") {
		t.Errorf("status %d\nstderr: %swant:   tieralloc: %s", r.Status, clip(r.Stderr), want)
	}
}

// TestSecureNeighbour: a block that is freed tells of the one beside it.
func TestSecureNeighbour(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "secure.c", append([]string{"-w"}, withCxx...)...)
	for _, n := range []int{24, 40, 88, 120} {
		r := preloaded(t, []string{"TA_SECURE=1"}, prog, "neighbour_end", fmt.Sprint(n))
		p, b, _ := strings.Cut(strings.TrimSpace(r.Stdout), " ")
		want := fmt.Sprintf("tieralloc: free(%s): the end of the slot at %s, size class %d, was written\n", p, b, n+8)
		if r.Status != 134 || r.Stderr != want {
			t.Errorf("%d bytes: status %d\nstderr: %swant:   %s", n, r.Status, clip(r.Stderr), want)
		}
	}
}

// TestSecureLimit: under a limit of the address space guards give way to blocks, and are counted.
func TestSecureLimit(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "limit.c")
	file := filepath.Join(t.TempDir(), "stats")
	cases(t, prog, []string{"TA_SECURE=1", "TA_STATS_FILE=" + file}, "sizes", "functions", "threads", "guards")
	if r := readReport(t, file); r.Heap.Unguarded < 1000 {
		t.Errorf("%d blocks without guards", r.Heap.Unguarded)
	}
}
