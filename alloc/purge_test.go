package alloc

import (
	"syscall"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// cycle allocates n blocks of 1 MiB, a millisecond after the other, and frees them.
func cycle(tb testing.TB, h *Heap, n int) {
	tb.Helper()
	blocks := make([]uintptr, n)
	for i := range blocks {
		h.Thread.Now += 1e5
		blocks[i] = mustServe(tb, h, 1<<20)
	}
	for _, b := range blocks {
		h.Thread.Now += 1e5
		Free(h, b, HowAny, NoSize, 0)
	}
}

// TestPurgeAtAnyCall: a thread that uses its fast paths alone still gives back what is due, with
// few calls where they are rare. Blocks of 100 bytes come from their page, those of 2000 from the
// thread-cache free list.
func TestPurgeAtAnyCall(t *testing.T) {
	for _, size := range []uintptr{100, 2000} {
		newWorld(t)
		PurgeDelay = 20 * config.DefaultPurgeDelay // so that much is kept
		now := uint64(1e9)
		f := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return now }}
		f.enter()
		b, _ := f.malloc(size)
		for range 4 {
			cycle(t, f.h, 200)
		}
		if pool.dirtyBytes < 8*minReserve {
			t.Fatalf("%d MiB are dirty", pool.dirtyBytes>>20)
		}
		calls := 0
		for ; pool.dirtyBytes > minReserve; calls++ {
			if calls > 2*tickMax {
				t.Fatalf("%d bytes: %d MiB are dirty after %d calls in %d s", size,
					pool.dirtyBytes>>20, calls, calls/20)
			}
			now += 50e6
			f.free(b)
			if b = f.mallocFast(size); b == 0 {
				t.Fatal("no block")
			}
		}
		t.Logf("%d bytes: after %d calls", size, calls)
		f.free(b)
		mustBeSound(t)
	}
}

// TestPurgeLater: who sets a long delay keeps more.
func TestPurgeLater(t *testing.T) {
	newWorld(t)
	const times = 40
	PurgeDelay = times * config.DefaultPurgeDelay
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	cycle(t, h, times*minReserve>>20-times/4) // a page is larger than its block
	if pool.dirtyBytes < (times-2)*minReserve {
		t.Errorf("%d MiB are left of %d", pool.dirtyBytes>>20, times*minReserve>>20)
	}
	h.Thread.Now += PurgeDelay + 1
	purgeDue(8, h.Thread.Now)
	if pool.dirtyBytes != 0 {
		t.Errorf("%d MiB are left after the delay", pool.dirtyBytes>>20)
	}
	PurgeDelay = ^uint64(0)
	if most := amountReserve(pool.usedBytes); most < minReserve {
		t.Errorf("with the longest delay %d bytes are kept", most)
	}
}

// TestPurgeSpared: where there is another thread, what is beyond the reserve, but for what is
// beyond all measure, goes when it has been free for a while; where there is none, at once.
func TestPurgeSpared(t *testing.T) {
	for _, several := range []bool{false, true} {
		newWorld(t)
		h := mustAcquire(t, 8)
		if several {
			mustAcquire(t, 16)
		}
		h.Thread.Now = 1e9
		var blocks []uintptr
		for range (graceBytes + 4*minReserve) >> 20 {
			blocks = append(blocks, mustServe(t, h, 1<<20))
		}
		for _, b := range blocks[:graceBytes>>20] {
			Free(h, b, HowAny, NoSize, 0)
		}
		if young := pool.dirtyBytes > 2*minReserve; young != several {
			t.Errorf("several threads: %v; %d MiB are dirty at once", several, pool.dirtyBytes>>20)
		}
		for _, b := range blocks[graceBytes>>20:] { // and falls silent
			Free(h, b, HowAny, NoSize, 0)
		}
		if pool.dirtyBytes > graceBytes+minReserve {
			t.Errorf("several threads: %v; %d MiB are spared", several, pool.dirtyBytes>>20)
		}
		h.Thread.Now += PurgeDelay/graceShare + 1
		purgeDue(8, h.Thread.Now)
		if pool.dirtyBytes > minReserve {
			t.Errorf("several threads: %v; %d MiB are dirty later", several, pool.dirtyBytes>>20)
		}
		mustBeSound(t)
	}
}

// TestPurgeFeedback: memory that is purged for its amount and wanted again stays from then on,
// until it is not wanted for the delay; all of a heap, if need be.
func TestPurgeFeedback(t *testing.T) {
	for _, c := range []struct {
		threads uintptr
		bytes   uint64
	}{{1, 4 * minReserve}, {1, 200 << 20}, {8, graceBytes + 4*minReserve}} {
		threads, bytes := c.threads, c.bytes
		newWorld(t)
		var h *Heap
		for i := range threads {
			h = mustAcquire(t, 8*(i+1))
		}
		h.Thread.Now = 1e9
		purged := func() uint64 {
			before := pool.count.purgedBytes
			cycle(t, h, int(bytes>>20))
			h.Thread.Now += PurgeDelay / 2
			purgeDue(h.Thread.token, h.Thread.Now)
			return pool.count.purgedBytes - before
		}
		if first := purged(); first < bytes/2 {
			t.Errorf("%d threads: %d MiB of %d are purged first", threads, first>>20, bytes>>20)
		}
		for range 4 {
			purged()
		}
		if last := purged(); last != 0 {
			t.Errorf("%d threads: %d MiB of %d are purged each time", threads, last>>20, bytes>>20)
		}
		mustBeSound(t)
		h.Thread.Now += PurgeDelay
		purgeDue(h.Thread.token, h.Thread.Now)
		if pool.dirtyBytes != 0 || uint64(pool.feedback.wanted) > bytes/2 {
			t.Errorf("%d threads: %d MiB are dirty after the delay, %d MiB are wanted", threads,
				pool.dirtyBytes>>20, pool.feedback.wanted>>20)
		}
	}
}

// TestPurgeSawtooth: of a heap that is freed and filled again by a third, over and over, nothing is
// purged in the end until it rests.
func TestPurgeSawtooth(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	for range 100 {
		mustServe(t, h, 1<<20)
	}
	before := uint64(0)
	for range 12 {
		before = pool.count.purgedBytes
		cycle(t, h, 50)
	}
	if n := pool.count.purgedBytes - before; n != 0 {
		t.Errorf("%d MiB are purged each time", n>>20)
	}
	mustBeSound(t)
	h.Thread.Now += PurgeDelay
	purgeDue(h.Thread.token, h.Thread.Now)
	if pool.dirtyBytes != 0 || pool.feedback.wanted > 25<<20 {
		t.Errorf("%d MiB are dirty after the delay, %d MiB are wanted", pool.dirtyBytes>>20,
			pool.feedback.wanted>>20)
	}
}

// TestPurgeRefused: where the kernel does not take memory back it is not asked again before the
// delay, for any span.
func TestPurgeRefused(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	blocks := []uintptr{mustServe(t, h, 200<<10), mustServe(t, h, 200<<10),
		mustServe(t, h, 200<<10)}
	start, n := blocks[0], blocks[2]+200<<10-blocks[0]
	if _, errno := raw.Sys(syscall.SYS_MLOCK, start, n, 0, 0, 0, 0); errno != 0 {
		t.Skip("mlock: ", syscall.Errno(errno))
	}
	Free(h, blocks[0], HowAny, NoSize, 0)
	Free(h, blocks[2], HowAny, NoSize, 0)
	h.Thread.collectPages(true)
	asked := func(now uint64) bool {
		h.Thread.Now = now
		purgeDue(8, now)
		if pool.dirtyBytes == 0 {
			t.Fatal("the kernel takes locked memory back")
		}
		return pool.quiet == now+PurgeDelay
	}
	first := h.Thread.Now + PurgeDelay
	if !asked(first) || asked(first+PurgeDelay-1) || !asked(first+2*PurgeDelay) {
		t.Error("the kernel was not asked, or again at once")
	}
	raw.Sys(syscall.SYS_MUNLOCK, start, n, 0, 0, 0, 0)
	mustBeSound(t)
}
