package alloc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tieralloc/internal/cgroup"
)

func TestPressureStates(t *testing.T) {
	const limit = 3200
	type step struct {
		at      uint64 // seconds
		left    uint64 // of limit
		unused  uint64
		stalled uint64
		want    bool
	}
	for _, c := range []struct {
		name  string
		limit uint64
		steps []step
	}{
		{"calm", limit, []step{{1, 3200, 0, 0, false}, {2, 100, 0, 999, false}}},
		{"little left", limit, []step{{1, 99, 0, 0, true}}},
		{"little left, but much of it unused", limit, []step{{1, 0, 100, 0, false},
			{2, 50, 50, 0, false}, {3, 50, 49, 0, true}}},
		{"threads wait", limit, []step{{1, 3200, 0, 1000, true}}},
		{"no limit", 0, []step{{1, 0, 0, 0, false}, {2, 0, 0, 1000, true}}},
		{"between the thresholds it stays as it is", limit, []step{{1, 199, 0, 999, false},
			{2, 99, 0, 0, true}, {9, 100, 99, 0, true}, {20, 3200, 0, 500, true},
			{40, 199, 0, 0, true}}},
		{"it ends when the signs are gone for a while", limit, []step{{1, 99, 0, 0, true},
			{3, 200, 0, 499, true}, {5, 3200, 0, 0, true}, {6, 100, 100, 0, false},
			{7, 199, 0, 999, false}}},
		{"a sign begins the while anew", limit, []step{{1, 99, 0, 0, true},
			{5, 199, 0, 0, true}, {9, 200, 0, 0, true}, {10, 200, 0, 0, false},
			{11, 3200, 0, 1000, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on, since := false, uint64(0)
			for _, s := range c.steps {
				m := cgroup.Memory{Limit: c.limit, Used: c.limit - min(c.limit, s.left)}
				on, since = nextPressure(on, since, s.at*1e9, m.Short(s.unused, s.stalled, on))
				if on != s.want {
					t.Fatalf("after %d s: %v", s.at, on)
				}
			}
		})
	}
}

// systemStalls has the kernel tell that threads wait for memory for a part of the time.
func systemStalls(t *testing.T, percent string) {
	t.Helper()
	cgroup.System = filepath.Join(t.TempDir(), "memory")
	text := "some avg10=" + percent + " avg60=0.00 avg300=0.00 total=0\n"
	if err := os.WriteFile(cgroup.System, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPressureReturns: while memory is short nothing that is freed stays, by whichever sign, and
// there is neither prefault nor a wish for huge pages; afterwards it is as before.
func TestPressureReturns(t *testing.T) {
	const mib = 1 << 20
	for _, sign := range []string{"the group", "the system"} {
		t.Run(sign, func(t *testing.T) {
			newWorld(t)
			PurgeDelay = 3600e9
			now := uint64(1e9)
			th := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return now }}
			set := func(short bool) {
				if sign == "the system" {
					groupOf(t, "max", 100*mib)
					systemStalls(t, map[bool]string{false: "0.00", true: "10.00"}[short])
					return
				}
				used := map[bool]int{false: 500 * mib, true: 1990 * mib}[short]
				groupOf(t, fmt.Sprint(2000*mib), used)
			}
			cycle := func() uintptr {
				now += limitAgain
				large := mustMalloc(t, th, 8*mib, 4)
				mustFree(t, th, append(large, mustMalloc(t, th, 100000, 40)...))
				now += 1e8
				mustFree(t, th, mustMalloc(t, th, 300000, 1))
				return pool.cache.bytes + pool.dirtyBytes
			}
			set(false)
			live := mustMalloc(t, th, 100000, 400) // so that the group is looked at
			calm := cycle()
			if calm < 20*mib || pool.count.pressures != 0 || !roomy(0) {
				t.Fatalf("at ease %d KiB are kept, %d times short", calm>>10, pool.count.pressures)
			}
			set(true)
			if kept := cycle(); kept > mib || pool.count.pressures != 1 || roomy(0) {
				t.Fatalf("%d KiB are kept, %d times short", kept>>10, pool.count.pressures)
			}
			if n := pool.count.pressureBytes; n < uint64(calm-mib) {
				t.Errorf("%d KiB are counted as returned, not %d", n>>10, calm>>10)
			}
			*th.h.freshPages(0) = prefaultAfter
			if th.h.prefaults(0, 16) {
				t.Error("it prefaults")
			}
			if kept := cycle(); kept > mib || pool.count.pressures != 1 {
				t.Fatalf("%d KiB are kept later, %d times short", kept>>10, pool.count.pressures)
			}
			set(false)
			cycle()
			now += pressureCalm
			cycle()
			if kept := cycle(); kept < 20*mib || pool.count.pressures != 1 {
				t.Errorf("at ease again %d KiB are kept", kept>>10)
			}
			mustFree(t, th, live)
		})
	}
}

// TestPressureServed: the control plane returns what an idle program has freed.
func TestPressureServed(t *testing.T) {
	const mib = 1 << 20
	newWorld(t)
	PurgeDelay = 3600e9
	now := uint64(1e9)
	th := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return now }}
	groupOf(t, "max", 100*mib)
	systemStalls(t, "0.00")
	mustFree(t, th, append(mustMalloc(t, th, 8*mib, 6), mustMalloc(t, th, 100000, 400)...))
	kept := pool.cache.bytes + pool.dirtyBytes
	if Service(9, now+limitAgain); pool.cache.bytes+pool.dirtyBytes != kept || kept < 40*mib {
		t.Fatalf("%d KiB are kept", kept>>10)
	}
	systemStalls(t, "30.00")
	if Service(9, now+3*limitAgain); pool.cache.bytes+pool.dirtyBytes != 0 {
		t.Errorf("%d KiB are kept", (pool.cache.bytes+pool.dirtyBytes)>>10)
	}
}
