package process

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// slotOf is the size class of a block of n bytes with TA_SECURE=1, and guarded whether it
// has a mapping of its own.
func slotOf(n int) (class string, guarded bool) {
	for _, c := range []struct{ n, class int }{{24, 48}, {100, 112}, {1000, 1024}, {4096, 4608},
		{40000, 40960}} {
		if n == c.n {
			return fmt.Sprint(c.class), false
		}
	}
	return fmt.Sprint((n + 65535) / 65536 * 65536), true
}

// secureCases: %p is the pointer, %b the damaged block, %n its bytes, %c its class, %m and others
// other numbers. An empty line is a fault: a guard was hit.
var secureCases = []struct{ cases, line, guarded string }{
	{"overflow", "free(%p): the block at %b of %n bytes, size class %c, was written behind its end",
		""},
	{"string_end", "free(%p): the block at %b of %n bytes, size class %c, was written behind its " +
		"end", ""},
	{"underflow", "free(%p): the end of the slot at %o, size class %c, was written", ""},
	{"overflow_realloc", "realloc%o: the block at %b of %n bytes, size class %c, was written " +
		"behind its end", ""},
	{"after_grown", "free(%p): the block at %b of %n bytes, size class %c, was written behind " +
		"its end", ""},
	{"overflow_other", "free(%p): the block at %b of %n bytes, size class %c, was written behind " +
		"its end", ""},
	{"at_malloc", "malloc: the block at %b of %n bytes, size class %c, was written behind its end",
		""},
	{"at_calloc", "calloc: the block at %b of %n bytes, size class %c, was written behind its end",
		""},
	{"freed_start", "malloc: the freed block at %b, size class %c, was written", ""},
	{"freed_end freed_late", "%o: the freed block at %b, size class %c, was written", ""},
	{"twice twice_late twice_other", "free(%p): double free of a block of %c bytes",
		"free(%p): the block was freed before"},
	{"inside", "free(%p): not the start of a block; it lies in memory of %c-byte blocks",
		"free(%p): not the start of a block; it lies in memory of %c-byte blocks"},
	{"new_free", "free(%p): the block at %b of %n bytes, size class %c, was made by operator new",
		"same"},
	{"new_realloc", "realloc(%p): the block at %b of %n bytes, size class %c, was made by " +
		"operator new", "same"},
	{"malloc_delete", "operator delete(%p): the block at %b of %n bytes, size class %c, was made " +
		"by malloc or its like", "same"},
	{"new_array_delete", "operator delete(%p): the block at %b of %n bytes, size class %c, was " +
		"made by operator new[]", "same"},
	{"new_delete_array", "operator delete[](%p): the block at %b of %n bytes, size class %c, was " +
		"made by operator new", "same"},
	{"delete_size", "operator delete(%p): the block at %b of %n bytes, size class %c, is freed " +
		"as one of %m", "same"},
	{"delete_array_size",
		"operator delete[](%p): the block at %b of %n bytes, size class %c, is freed as one of %l",
		"same"},
	{"sized", "free_sized(%p): the block at %b of %n bytes, size class %c, is freed as one of %h",
		"same"},
	{"sized_aligned", "free_aligned_sized(%p): the block at %b of %n bytes, size class %f, is " +
		"freed as one of %e", "same"},
}

// alike reports whether a line is as its pattern says, where %o is any text.
func alike(line, pattern string) bool {
	before, after, any := strings.Cut(pattern, "%o")
	if !any {
		return line == pattern
	}
	return len(line) >= len(before)+len(after) && strings.HasPrefix(line, before) &&
		strings.HasSuffix(line, after)
}

// TestSecure: each kind of damage is found, and told of in one line that names the call,
// the block, its size class and what was found; then the process aborts.
func TestSecure(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "secure.c", append([]string{"-w"}, withCxx...)...)
	for _, c := range secureCases {
		for _, name := range strings.Fields(c.cases) {
			for _, n := range []int{24, 100, 1000, 4096, 40000, 262144} {
				t.Run(fmt.Sprint(name, "/", n),
					func(t *testing.T) { secureCase(t, prog, name, c.line, c.guarded, n) })
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
	p, b, _ := strings.Cut(strings.TrimSpace(r.Stdout), " ")
	want := strings.NewReplacer("%p", p, "%b", b, "%n", fmt.Sprint(n), "%c", class, "%f", aligned,
		"%m", fmt.Sprint(n+1), "%l", fmt.Sprint(n-1), "%h", fmt.Sprint(n/2), "%e",
		fmt.Sprint(n+8)).Replace(line)
	if r.Status != 134 || !alike(r.Stderr, "tieralloc: "+want+"\n") {
		t.Errorf("status %d\nstderr: %swant:   tieralloc: %s", r.Status, clip(r.Stderr), want)
	}
}

// TestSecureBusy: the line names the call that found the damage, and not one of another thread.
func TestSecureBusy(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "secure.c", append([]string{"-w"}, withCxx...)...)
	for range 20 {
		r := preloaded(t, []string{"TA_SECURE=1"}, prog, "at_malloc_busy", "100")
		if r.Status != 134 || !strings.HasPrefix(r.Stderr, "tieralloc: malloc: the block at ") {
			t.Errorf("status %d, stderr: %s", r.Status, clip(r.Stderr))
		}
	}
}

// TestSecureNeighbour: a block that is freed tells of the one beside it.
func TestSecureNeighbour(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "secure.c", append([]string{"-w"}, withCxx...)...)
	for _, n := range []int{24, 40, 88, 120} {
		r := preloaded(t, []string{"TA_SECURE=1"}, prog, "neighbour_end", fmt.Sprint(n))
		p, b, _ := strings.Cut(strings.TrimSpace(r.Stdout), " ")
		want := fmt.Sprintf("tieralloc: free(%s): the block at %s of %d bytes, size class %d, "+
			"was written behind its end\n", p, b, n, n+24)
		if r.Status != 134 || r.Stderr != want {
			t.Errorf("%d bytes: status %d\nstderr: %swant:   %s", n, r.Status, clip(r.Stderr), want)
		}
	}
}

// TestSecureWarns: a check that is asked to warn is a line, and the process goes on; the others end
// it as ever.
func TestSecureWarns(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "secure.c", append([]string{"-w"}, withCxx...)...)
	for _, c := range []struct{ check, cases string }{
		{"dealloc_type_mismatch",
			"new_free new_realloc malloc_delete new_array_delete new_delete_array"},
		{"delete_size_mismatch", "delete_size delete_array_size sized sized_aligned"},
	} {
		for _, name := range strings.Fields(c.cases) {
			for _, n := range []int{24, 4096, 262144} {
				t.Run(fmt.Sprint(name, "/", n), func(t *testing.T) {
					fatal := preloaded(t, []string{"TA_SECURE=1," + c.check + "=abort"}, prog, name,
						fmt.Sprint(n))
					r := preloaded(t, []string{"TA_SECURE=1," + c.check + "=warn"}, prog, name,
						fmt.Sprint(n))
					if r.Status != 0 || !oneLine(r.Stderr, "tieralloc: warning: ") {
						t.Errorf("status %d, stderr: %s", r.Status, clip(r.Stderr))
					}
					want := withoutPointers(strings.Replace(fatal.Stderr, "tieralloc: ",
						"tieralloc: warning: ", 1))
					if got := withoutPointers(r.Stderr); fatal.Status != 134 || got != want {
						t.Errorf("%q, not %q", got, want)
					}
				})
			}
		}
	}
	all := []string{"TA_SECURE=1,dealloc_type_mismatch=warn,delete_size_mismatch=warn"}
	for _, name := range []string{"overflow", "twice", "inside", "freed_start"} {
		r := preloaded(t, all, prog, name, "100")
		if r.Status != 134 || strings.Contains(r.Stderr, "warning") {
			t.Errorf("%s: status %d, stderr: %s", name, r.Status, clip(r.Stderr))
		}
	}
	r := preloaded(t, all, "sh", "-c", `"$0" new_free 100 2>&-; echo $?`, prog)
	if r.Stderr != "" || !strings.HasSuffix(r.Stdout, "\n0\n") {
		t.Errorf("without standard error: %+v", r)
	}
}

var pointers = regexp.MustCompile("0x[0-9a-f]+")

func withoutPointers(line string) string { return pointers.ReplaceAllString(line, "P") }

// TestSecureLimit: under a limit of the address space guards give way to blocks, and are counted.
func TestSecureLimit(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "limit.c")
	file := filepath.Join(t.TempDir(), "stats")
	cases(t, prog, []string{"TA_SECURE=1", "TA_STATS_FILE=" + file}, "sizes", "functions",
		"threads", "reserved", "guards")
	if r := readReport(t, file); r.Heap.Unguarded < 1000 {
		t.Errorf("%d blocks without guards", r.Heap.Unguarded)
	}
}
