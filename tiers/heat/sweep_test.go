package heat

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSweep: where a pass over all mappings takes longer than a window should, regions are told
// apart nevertheless, and only they lose their bits.
func TestSweep(t *testing.T) {
	m := newMemory(t, 64<<10, unix.MADV_NOHUGEPAGE)
	m.split(t)
	s := &Referenced{window: window{length: 2 * time.Millisecond}, pass: time.Hour}
	if err := s.Start(m.regions); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	rates := make([]Rate, len(m.regions))
	if _, err := s.Sample(rates); err != nil || s.whole || s.pass == time.Hour {
		t.Fatalf("no sweep: %v, whole %v", err, s.whole)
	}
	s.pass = time.Hour
	m.tellApart(t, s)
}

// TestSweepCleared: a sweep clears regions in order, before it reads them and never twice.
func TestSweepCleared(t *testing.T) {
	m := newMemory(t, 64<<10, unix.MADV_NOHUGEPAGE)
	s := sweep{regions: m.regions, begun: make([]time.Time, len(m.regions))}
	for _, c := range []struct {
		end, cleared int
		passed       uintptr
		read         int
	}{{5, 5, 0, 0}, {3, 5, 0, 0}, {9, 9, m.regions[4].End, 5},
		{1 << 30, len(m.regions), ^uintptr(0), len(m.regions)}} {
		if err := s.clearTo(c.end); err != nil {
			t.Fatal(err)
		}
		if s.passes(c.passed); s.cleared != c.cleared || s.read != c.read {
			t.Errorf("cleared %d and read %d, not %d and %d", s.cleared, s.read, c.cleared, c.read)
		}
	}
	for i := range s.begun {
		if i > 0 && s.begun[i].Before(s.begun[i-1]) || s.begun[i].IsZero() {
			t.Fatalf("region %d was cleared at %v", i, s.begun[i])
		}
	}
}

// TestSweepOvertaken: where smaps gives more at once than was cleared, what was not cleared says
// nothing of the window.
func TestSweepOvertaken(t *testing.T) {
	m := newMemory(t, 64<<10, unix.MADV_NOHUGEPAGE)
	s := sweep{regions: m.regions, begun: make([]time.Time, len(m.regions))}
	if err := s.clearTo(5); err != nil {
		t.Fatal(err)
	}
	if s.passes(m.regions[20].End); s.read != 21 || s.windows < 0 || s.windows > time.Hour {
		t.Errorf("read %d, windows of %v", s.read, s.windows)
	}
	if err := s.clearTo(s.read + 5); err != nil || s.cleared != 26 {
		t.Errorf("cleared %d, %v", s.cleared, err)
	}
}
