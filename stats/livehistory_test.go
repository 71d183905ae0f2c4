package stats

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tieralloc/internal/raw"
)

// openHistory makes a live page with a history.
func openHistory(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page")
	if errno := LiveOpen(raw.Bytes(path), uintptr(len(path)), uint64(os.Getpid()), 1,
		raw.Bytes("x"), 1, true); errno != 0 {
		t.Fatal(syscall.Errno(errno))
	}
	t.Cleanup(LiveForked)
	return path
}

// TestHistoryRings: the newest entries are kept, with too many rows the first.
func TestHistoryRings(t *testing.T) {
	path := openHistory(t)
	const more = 3
	rows := make([]HeatRow, HistoryRows+1)
	for i := range HistorySamples + more {
		rows[0].Start = uint64(i)
		KeepSample(rows[:min(1+8*i, len(rows))])
	}
	for i := range HistoryMoves + more {
		KeepMove(HeatMove{Start: uint64(i), End: uint64(i) + 1})
	}
	h := history()
	if h.SamplesDone != HistorySamples+more || h.SamplesBegun != h.SamplesDone ||
		h.MovesDone != HistoryMoves+more || h.MovesBegun != h.MovesDone {
		t.Fatalf("%d of %d samples, %d of %d moves", h.SamplesDone, h.SamplesBegun, h.MovesDone,
			h.MovesBegun)
	}
	for _, i := range []uint64{more, HistorySamples, HistorySamples + more - 1} {
		s := &h.Samples[i%HistorySamples]
		if s.Row[0].Start != i || s.Rows != min(1+8*i, HistoryRows) || s.UnixNs == 0 {
			t.Errorf("sample %d begins at %d and has %d rows", i, s.Row[0].Start, s.Rows)
		}
	}
	for i := uint64(more); i < HistoryMoves+more; i++ {
		if h.Moves[i%HistoryMoves].Start != i {
			t.Errorf("move %d is %+v", i, h.Moves[i%HistoryMoves])
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != int64(LiveSize+LiveHistorySize) {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// TestNoHistory: a page without a history, one that has ended, and a process without a page keep
// nothing and do not mind.
func TestNoHistory(t *testing.T) {
	keep := func(name string) {
		if history() != nil {
			t.Errorf("%s has a history", name)
		}
		KeepSample(nil)
		KeepMove(HeatMove{})
	}
	keep("no page")
	newLive(t)
	keep("a page without one")
	LiveForked()
	openHistory(t)
	live.pid++
	keep("another process")
	live.pid--
	LiveEnd(true, false)
	keep("the end")
	LiveForked()
	keep("a child")
}

// TestStaleHistory: the page of an earlier process is replaced, with a history or without.
func TestStaleHistory(t *testing.T) {
	path := openHistory(t)
	LiveForked()
	if errno := openLive(path); errno != 0 {
		t.Fatal(errno)
	}
	LiveForked()
	if err := os.WriteFile(path, make([]byte, LiveSize+LiveHistorySize), 0o600); err != nil {
		t.Fatal(err)
	}
	if errno := openLive(path); errno != 0 {
		t.Fatal(errno)
	}
}
