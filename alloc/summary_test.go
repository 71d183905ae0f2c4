package alloc

import "testing"

// summedUp is a thread with 20 pages that are full and summed up, and one that is not, and their
// blocks.
func summedUp(t *testing.T) (th *thread, blocks []uintptr) {
	t.Helper()
	roomyWorld(t)
	th = &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return 1e9 }}
	blocks = mustMalloc(t, th, 100, 20*SliceSize/112)
	wantSummaries(t, 20)
	return th, blocks
}

// wantSummaries looks how many pages are summed up, in a heap that is sound.
func wantSummaries(t *testing.T, n int) {
	t.Helper()
	v, err := inspected()
	if err != nil {
		t.Fatal(err)
	}
	if v.summaries != n {
		t.Fatalf("%d pages are summed up, not %d", v.summaries, n)
	}
}

// TestSummaries: a page that is full no more is counted by itself, whoever has freed the first
// block or moves it.
func TestSummaries(t *testing.T) {
	mine, blocks := summedUp(t)
	other := &thread{h: mustAcquire(t, 16), token: 16, now: mine.now}
	mustFree(t, other, blocks[:1])
	wantSummaries(t, 19)
	at := len(blocks) / 2
	mine.h.freeLocal(Lookup(blocks[at]), blocks[at])
	wantSummaries(t, 18)
	p := Lookup(blocks[at+2*SliceSize/112])
	if !pinMigration(mine.token, p) || summaryOf(p.Start) != 0 {
		t.Fatal("a page that is held is summed up")
	}
	unpinMigration(mine.token, p)
	r := filled(mine.token)
	if live := uint64(len(blocks) - 2); r.BlocksLive != live || r.BlocksTotalFreed != 2 {
		t.Errorf("%d blocks are live, not %d, and %d freed", r.BlocksLive, live, r.BlocksTotalFreed)
	}
}

// TestTornSummaries: the kernel copies a summary for the child, then a thread of the parent frees
// blocks of the page, then the kernel copies the page's descriptor. What the child frees is counted
// as what it has freed all the same.
func TestTornSummaries(t *testing.T) {
	other, blocks := summedUp(t)
	mine := &thread{h: mustAcquire(t, 16), token: 16, now: other.now}
	mustMalloc(t, mine, 100, 1) // to have a heap
	for _, b := range []uintptr{blocks[0], blocks[len(blocks)/2]} {
		w := summaryOf(Lookup(b).Start)
		mustFree(t, mine, []uintptr{b})
		*Lookup(b).summaryWord() = uint64(w)
	}
	CountFromFork = true
	ForkChild(mine.token, ForkPrepare(mine.token), mine.h, false)
	mustFree(t, mine, blocks[1:3])
	mustFree(t, mine, blocks[len(blocks)/2+1:len(blocks)/2+4])
	r := filled(mine.token)
	if live := uint64(1 + len(blocks) - 7); r.BlocksTotalAlloc != 0 || r.BlocksTotalFreed != 5 ||
		r.BlocksLive != live {
		t.Errorf("%d blocks were allocated, %d freed, not 5, and %d are live, not %d",
			r.BlocksTotalAlloc, r.BlocksTotalFreed, r.BlocksLive, live)
	}
}

// TestUnpreparedSummaries: in a child that no handler prepared nothing that was summed up counts.
func TestUnpreparedSummaries(t *testing.T) {
	th, blocks := summedUp(t)
	ForkUnprepared(th.token, th.h)
	wantSummaries(t, 0)
	mustFree(t, th, blocks)
	if r := filled(th.token); r.BlocksLive != 0 || r.BlocksTotalFreed != uint64(len(blocks)) {
		t.Errorf("%d blocks are live, %d freed", r.BlocksLive, r.BlocksTotalFreed)
	}
}
