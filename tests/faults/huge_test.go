package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// maps reports whether calls of a kind map memory, move it or give it back.
func (k *kind) maps() bool {
	switch k.calls[0] {
	case syscall.SYS_MMAP, syscall.SYS_MUNMAP, syscall.SYS_MREMAP, syscall.SYS_MADVISE:
		return true
	}
	return false
}

// TestHugeRefused refuses every call by which the library maps, moves and gives back memory in
// turn, while a program has huge blocks cut, gathered, resized and cached; each call alone, and
// some with all that follow, with -every each.
func TestHugeRefused(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "huge.c", "-O2", "-ldl", "-I../../interpose")
	pairs := 0
	for _, k := range kinds {
		if !k.maps() {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			pairs += k.refuse(t, quiet, false, true, program, *seed, "256")
			slack := "256"
			if k.name == "munmap" {
				slack = "8192" // reports stay mapped
			}
			pairs += k.refuse(t, quiet, true, *every, program, *seed, slack)
		})
	}
	t.Logf("%d calls were refused, one in each run", pairs)
}

// some is how many of the calls of a kind for blocks over two tiers are refused in turn where not
// every one is: about every sixth of mmap, and nearly all of mremap and madvise.
const some = 24

// TestHugeEquations is TestHugeRefused for the heap's own package, outside a library, where every
// equation of it is checked after each step; and for blocks over two tiers, where the calls that
// tell the kernel of nodes are refused, too: of those blocks' calls some of each kind, with -every
// each.
func TestHugeEquations(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "alloc.test")
	if text, err := exec.Command("go", "test", "-c", "-o", program,
		"../../alloc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	asks := functionOf(t, program, "/linux.Syscall6")
	for _, name := range []string{"TestHugeSteps", "TestSplitSteps"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(f fault) map[*kind]int {
				o := traceCode(t, f, asks, os.Environ(), program, "-test.run=^"+name+"$")
				if o.status != 0 && strings.Contains(o.stderr, "begin") {
					t.Errorf("%v: status %d, %s%s", f, o.status, o.stdout, o.stderr)
				}
				return o.seen
			}
			calls, pairs := run(fault{}), 0
			for _, k := range kinds {
				nodes := k.calls[0] == syscall.SYS_MBIND || k.calls[0] == 279 // move_pages
				if !k.maps() && !(nodes && name == "TestSplitSteps") {
					continue
				}
				if calls[k] == 0 {
					t.Errorf("%s: no call was seen", k.name)
				}
				step := 1
				if name == "TestSplitSteps" && !*every {
					step = (calls[k] + some - 1) / some
				}
				for n := 1; run(fault{kind: k, errno: k.errnos[0], n: n})[k] >= n; n += step {
					pairs++
				}
			}
			t.Logf("%d calls were refused, one in each run", pairs)
		})
	}
}

// TestHugeLimits: the same program under limits that let hardly more be mapped than is, up to
// enough: of the address space, and of private writable memory. The kernel counts the latter as it
// does what it has promised under vm.overcommit_memory=2, and refuses the same calls with the same
// error, but for one process alone.
func TestHugeLimits(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "huge.c", "-O2", "-ldl", "-I../../interpose")
	for _, kind := range []string{"as", "data"} {
		for _, env := range []string{"TA_PURGE_DELAY=", "TA_PURGE_DELAY=0ms"} {
			refused, runs := 0, 0
			for mib := 1; mib <= 160; mib += 1 + mib/16 {
				args := []string{program, *seed, "256", kind, fmt.Sprint(mib)}
				r := testlib.Run(t, testlib.Cmd{Args: args,
					Env: append(append([]string{}, quiet...), env), Preload: true})
				if why := wrong(outcome{stdout: r.Stdout, stderr: r.Stderr, status: r.Status},
					&ending{rss: 1 << 10}); why != "" {
					t.Errorf("%s, %s %d: %s", env, kind, mib, why)
				}
				if e, err := parse(r.Stdout); err != nil || e.refusals > 0 {
					refused++
				}
				runs++
			}
			t.Logf("%s, %s: calls failed in %d of %d runs", env, kind, refused, runs)
			if refused == 0 || refused == runs {
				t.Errorf("%s, %s: calls failed in %d of %d runs", env, kind, refused, runs)
			}
		}
	}
}
