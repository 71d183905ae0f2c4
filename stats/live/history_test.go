package live

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// historyPage is an open page of this process with a history.
func historyPage(t *testing.T) *Page {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page")
	if errno := stats.LiveOpen(raw.Bytes(path), uintptr(len(path)), uint64(os.Getpid()), 1,
		raw.Bytes("x"), 1, true); errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(stats.LiveForked)
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestHistory(t *testing.T) {
	p := historyPage(t)
	if h, err := p.History(); err != nil || len(h.Samples)+len(h.Moves) != 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	for i := range uint64(100) {
		stats.KeepSample([]stats.HeatRow{{Start: i << 16, Pages: 16, Heat: 7, Tier: 2}})
		stats.KeepMove(stats.HeatMove{Start: i, End: i + 1, To: 1, Cause: stats.HeatColder})
	}
	h, err := p.History()
	if err != nil || len(h.Samples) != stats.HistorySamples || len(h.Moves) != 100 {
		t.Fatalf("%d samples, %d moves, %v", len(h.Samples), len(h.Moves), err)
	}
	for i, s := range h.Samples {
		if want := uint64(i + 100 - stats.HistorySamples); s.Rows[0].Start != want<<16 {
			t.Errorf("sample %d is of %#x", i, s.Rows[0].Start)
		}
	}
	if Mapped(os.Getpid()) == nil {
		t.Error("a page with a history is not found in memory")
	}
	without, _ := ownPage(t)
	q, err := Open(without)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := q.History(); !errors.Is(err, ErrNoHistory) {
		t.Error(err)
	}
}

// TestHistoryWhole: while a writer does nothing else than to keep samples, none is read that is
// part of two.
func TestHistoryWhole(t *testing.T) {
	p := historyPage(t)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		rows := make([]stats.HeatRow, stats.HistoryRows)
		for n := uint64(1); ; n++ {
			for i := range rows {
				rows[i] = stats.HeatRow{Start: n<<32 + uint64(i)<<12, Pages: 1}
			}
			select {
			case <-stop:
				return
			default:
				stats.KeepSample(rows)
				stats.KeepMove(stats.HeatMove{Start: n, End: n + 1, Bytes: n})
			}
		}
	}()
	seen := 0
	for begin := time.Now(); time.Since(begin) < time.Second/2; {
		h, err := p.History()
		if err != nil {
			t.Error(err)
			break
		}
		for _, s := range h.Samples {
			seen++
			for i, r := range s.Rows {
				if r.Start != s.Rows[0].Start+uint64(i)<<12 {
					t.Errorf("row %d of %#x is of %#x", i, s.Rows[0].Start, r.Start)
				}
			}
		}
		for _, m := range h.Moves {
			if m.Start != m.Bytes || m.End != m.Bytes+1 {
				t.Errorf("%+v", m)
			}
		}
	}
	close(stop)
	<-stopped
	t.Log(seen, "samples")
}

// TestHistoryDamaged: what no library wrote is an error.
func TestHistoryDamaged(t *testing.T) {
	p := historyPage(t)
	stats.KeepSample([]stats.HeatRow{{Start: 1 << 16, Pages: 16}, {Start: 2 << 16, Pages: 16}})
	stats.KeepMove(stats.HeatMove{Start: 1, End: 2})
	h := (*stats.LiveHistory)(nil)
	sample := unsafe.Offsetof(h.Samples)
	row := sample + unsafe.Offsetof(stats.HeatSample{}.Row)
	move := unsafe.Offsetof(h.Moves)
	for _, c := range []struct {
		at   uintptr
		v    uint64
		want string
	}{
		{unsafe.Offsetof(h.SamplesBegun), 0, "more is kept"},
		{unsafe.Offsetof(h.MovesDone), 1 << 63, "more is kept"},
		{sample + unsafe.Offsetof(stats.HeatSample{}.Rows), 513, "a sample"},
		{sample + unsafe.Offsetof(stats.HeatSample{}.Rows), 1 << 63, "a sample"},
		{row, 3 << 16, "a sample"},
		{row, ^uint64(0) - 5, "a sample"},
		{row + unsafe.Offsetof(stats.HeatRow{}.Pages), 0, "a sample"},
		{row + unsafe.Offsetof(stats.HeatRow{}.Pages), 3<<40 + 16, "a sample"},
		{move + unsafe.Offsetof(stats.HeatMove{}.End), 1, "a move"},
		{move + unsafe.Offsetof(stats.HeatMove{}.From), 4, "a move"},
		{move + unsafe.Offsetof(stats.HeatMove{}.From), 9 << 16, "a move"},
	} {
		name := copyOf(t, p.path, headAt{stats.LiveSize + c.at: c.v},
			int(stats.LiveSize+stats.LiveHistorySize))
		q, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.History(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		q.Close()
	}
}
