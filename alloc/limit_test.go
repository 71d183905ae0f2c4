package alloc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/sysfs"
)

// groupOf has the process in a control group with a limit on memory, in bytes, of which so many are
// used.
func groupOf(t *testing.T, limit string, used int) {
	t.Helper()
	dir := t.TempDir()
	cgroup.Self, sysfs.Mounted = filepath.Join(dir, "self"), dir
	t.Cleanup(func() { cgroup.Self, sysfs.Mounted = "", "" })
	err := os.MkdirAll(filepath.Join(dir, "fs/cgroup/a"), 0o755)
	for name, text := range map[string]string{"self": "0::/a\n",
		"fs/cgroup/a/memory.max":     limit + "\n",
		"fs/cgroup/a/memory.current": fmt.Sprintln(used)} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestLimitLowered: a limit that is set while a process has much cached is met by giving that back,
// though the process does not grow any more.
func TestLimitLowered(t *testing.T) {
	const mib = 1 << 20
	newWorld(t)
	PurgeDelay = 3600e9
	now := uint64(1e9)
	th := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return now }}
	groupOf(t, "max", 100*mib)
	blocks := append(mustMalloc(t, th, 8*mib, 6), mustMalloc(t, th, 100000, 400)...)
	mustFree(t, th, blocks)
	cached := pool.cache.bytes + pool.dirtyBytes
	if cached < 40*mib {
		t.Fatalf("only %d MiB are cached", cached/mib)
	}
	groupOf(t, fmt.Sprint(104*mib), 100*mib)
	mustFree(t, th, mustMalloc(t, th, 200000, 1))
	if pool.cache.bytes+pool.dirtyBytes < cached/2 {
		t.Error("the group is looked at each time")
	}
	now += limitAgain
	mustFree(t, th, mustMalloc(t, th, 300000, 1))
	if left := pool.cache.bytes + pool.dirtyBytes; left > mib {
		t.Errorf("%d KiB are still cached", left>>10)
	}
}

// TestLimitAfterReturn: when what is unused has been returned, the heap does not grow back into it
// unwatched: the next look comes after half of what is then left.
func TestLimitAfterReturn(t *testing.T) {
	const mib, least = 1 << 20, 10 << 20
	newWorld(t)
	PurgeDelay = 3600e9
	now := uint64(1e9)
	th := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return now }}
	groupOf(t, "max", 100*mib)
	live := mustMalloc(t, th, 100000, 400)
	mustFree(t, th, mustMalloc(t, th, 8*mib, 6))
	cached := unused()
	if cached < 40*mib {
		t.Fatalf("only %d MiB are cached", cached/mib)
	}
	groupOf(t, fmt.Sprint(400*mib), 400*mib-least)
	now += limitAgain
	live = append(live, mustMalloc(t, th, 300000, 1)...)
	if kept := unused(); kept > mib || pressed() {
		t.Fatalf("%d KiB are still cached, memory is short: %v", kept>>10, pressed())
	}
	most := limitFirst + limit.beyond - uintptr(pool.count.committed)
	if most < least/2 || most > (least+cached)/2+mib {
		t.Errorf("with %d MiB left it looks again after %d MiB", (least+cached)/mib, most/mib)
	}
	mustFree(t, th, live)
}
