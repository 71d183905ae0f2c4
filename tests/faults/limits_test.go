package faults

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// limited runs the workload in a process that lacks something, by a shell's command before it, and
// reports whether that made calls fail. At the end resident KiB and what varies from run to run may
// be in memory.
func limited(t *testing.T, program, env, before, headroom string, resident int64) bool {
	t.Helper()
	script := before + `exec "$0" "$@"`
	args := []string{"sh", "-c", script, program, *seed}
	if headroom != "" {
		args = append(args, headroom)
	}
	r := testlib.Run(t, testlib.Cmd{Args: args, Env: append(append([]string{}, quiet...), env),
		Preload: true})
	if why := wrong(outcome{stdout: r.Stdout, stderr: r.Stderr, status: r.Status},
		&ending{rss: resident}); why != "" {
		t.Errorf("%s%s %s: %s", before, headroom, env, why)
	}
	e, err := parse(r.Stdout)
	return err != nil || e.refusals > 0
}

// TestAddresses: under limits of the address space from hardly more than the libraries take to
// enough.
func TestAddresses(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "work.c", "-O2", "-ldl")
	for _, env := range []string{"TA_PURGE_DELAY=", "TA_PURGE_DELAY=0ms", "TA_HUGEPAGES=thp"} {
		refused := 0
		for mib := 8; mib <= 200; mib += mib/10 + 1 {
			before := fmt.Sprintf("ulimit -S -v %d; ", mib<<10)
			if limited(t, program, env, before, "", 1<<10) {
				refused++
			}
		}
		t.Logf("%s: calls failed in %d runs", env, refused)
		if refused == 0 {
			t.Errorf("%s: no call failed", env)
		}
	}
}

// TestMappings: with hardly a mapping left of those that the kernel lets a process have, so that
// the middle of one cannot be unmapped. Where the system gives huge pages unasked, the kernel does
// not keep them from a part of a mapping then, and so there may be some beside what is in use.
func TestMappings(t *testing.T) {
	t.Parallel()
	resident := int64(1 << 10)
	const enabled = "/sys/kernel/mm/transparent_hugepage/enabled"
	if text, _ := os.ReadFile(enabled); strings.HasPrefix(string(text), "[always]") {
		resident += 16 << 10
	}
	program := testlib.CC(t, "work.c", "-O2", "-ldl")
	for _, env := range []string{"TA_PURGE_DELAY=", "TA_PURGE_DELAY=0ms"} {
		refused := 0
		for headroom := 0; headroom <= 40; headroom += headroom/8*2 + 2 {
			if limited(t, program, env, "", strconv.Itoa(headroom), resident) {
				refused++
			}
		}
		t.Logf("%s: calls failed in %d runs", env, refused)
		if refused == 0 {
			t.Errorf("%s: no call failed", env)
		}
	}
}

// TestMappingsAgain: what the kernel would not unmap is of use for the blocks that follow. Some
// calls fail: at the end of a mapping it does unmap, and maps nothing there later.
func TestMappingsAgain(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "again.c")
	for headroom := 0; headroom <= 10; headroom += 2 {
		env := append(append([]string{}, quiet...), "TA_PURGE_DELAY=0ms")
		r := testlib.Run(t, testlib.Cmd{Args: []string{program, strconv.Itoa(headroom)}, Env: env,
			Preload: true})
		var failed, mib int
		if _, err := fmt.Sscan(r.Stdout, &failed, &mib); err != nil || r.Status != 0 ||
			r.Stderr != "" {
			t.Fatalf("%d mappings left: status %d, %v, %q, %s", headroom, r.Status, err, r.Stdout,
				r.Stderr)
		}
		t.Logf("%d mappings left: %d calls of 2000 failed, %d MiB more are mapped", headroom,
			failed, mib)
		if failed > 500 || mib > 250 {
			t.Errorf("%d mappings left: %d calls of 2000 failed, %d MiB more are mapped", headroom,
				failed, mib)
		}
	}
}

// TestGrowNearLimit: what a limit of the address space leaves room for, realloc can grow to.
func TestGrowNearLimit(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "grow.c", "-fno-builtin")
	for _, env := range []string{"TA_PURGE_DELAY=", "TA_PURGE_DELAY=0ms", "TA_HUGEPAGES=thp"} {
		r := testlib.Run(t, testlib.Cmd{Args: []string{program},
			Env: append(append([]string{}, quiet...), env), Preload: true})
		if r.Status != 0 || r.Stderr != "" {
			t.Errorf("%s: status %d, %s", env, r.Status, r.Stderr)
		}
	}
}

// TestFillLimit: how much of a limit of the address space blocks of one size fill, where it stands
// when the program begins, and where the program sets it itself. The library itself takes a
// twentieth of it, and a size class may be an eighth larger than the block. Where the kernel's
// random addresses lie on both sides of a multiple of 4 GiB, the second part of the page map takes a
// MiB more, by which one block less may fit: a process in 30, so three may try.
func TestFillLimit(t *testing.T) {
	t.Parallel()
	const limit = 128 << 20
	program := testlib.CC(t, "fill.c", "-fno-builtin")
	fill := func(bytes int, late, preload bool) float64 {
		script := fmt.Sprintf(`ulimit -S -v %d; exec "$0" %d`, limit>>10, bytes)
		if late {
			script = fmt.Sprintf(`exec "$0" %d %d`, bytes, limit)
		}
		r := testlib.Run(t, testlib.Cmd{Args: []string{"sh", "-c", script, program}, Env: quiet,
			Preload: preload})
		sum, err := strconv.Atoi(strings.TrimSpace(r.Stderr))
		if err != nil || r.Status != 0 {
			t.Fatalf("%d bytes: status %d, %s", bytes, r.Status, r.Stderr)
		}
		return float64(sum) / limit
	}
	check := func(bytes int, late bool, least float64) {
		ours := fill(bytes, late, true)
		for range 2 {
			if ours < least {
				ours = fill(bytes, late, true)
			}
		}
		t.Logf("%d bytes, late: %t: %.3f of the limit", bytes, late, ours)
		if ours < least {
			t.Errorf("%d bytes, late: %t: %.3f of the limit, not %.2f; glibc %.3f", bytes, late, ours,
				least, fill(bytes, late, false))
		}
	}
	for _, c := range []struct {
		bytes       int
		least, late float64
	}{
		{16, 0.9, 0.9}, {1 << 10, 0.9, 0.9}, {10 << 10, 0.9, 0.88}, {100 << 10, 0.9, 0.86},
		{1 << 20, 0.9, 0.84}, {10 << 20, 0.9, 0.85},
		{100, 0.82, 0.82}, {1_000, 0.9, 0.9}, {10_000, 0.89, 0.86}, {30_000, 0.89, 0.86},
		{100_000, 0.86, 0.84}, {300_000, 0.84, 0.74}, {1_000_000, 0.88, 0.8}, {3_000_000, 0.87, 0.75},
		{10_000_000, 0.87, 0.87},
	} {
		check(c.bytes, false, c.least)
		check(c.bytes, true, c.late)
	}
}
