package heat

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStopped has a source begin again on other regions.
func TestStopped(t *testing.T) {
	for _, s := range Sources() {
		t.Run(s.Name(), func(t *testing.T) {
			if err := s.Probe(); err != nil {
				t.Skipf("not here: %v", err)
			}
			for range 2 {
				m := newMemory(t, RegionBytes, unix.MADV_NOHUGEPAGE)
				m.split(t)
				if err := s.Start(m.regions); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Sample(make([]Rate, len(m.regions))); err != nil {
					t.Error(err)
				}
				s.Stop()
			}
			s.Stop()
		})
	}
}

// TestHugePagesStay: all sources but one leave huge pages whole.
func TestHugePagesStay(t *testing.T) {
	for _, s := range Sources() {
		t.Run(s.Name(), func(t *testing.T) {
			if err := s.Probe(); err != nil {
				t.Skipf("not here: %v", err)
			}
			m := newMemory(t, RegionBytes, unix.MADV_HUGEPAGE)
			before := hugeBytes(t)
			if before < uint64(len(m.regions))*RegionBytes {
				t.Skipf("the kernel gives huge pages for %d MiB only", before>>20)
			}
			if err := s.Start(m.regions); err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			stop := m.use(true, 0)
			defer stop()
			_, splits := s.(*Written)
			// the memory may not be used in a window, on a busy machine
			for i := 0; i < 2 || splits && i < 100 && hugeBytes(t) >= before; i++ {
				if _, err := s.Sample(make([]Rate, len(m.regions))); err != nil {
					t.Fatal(err)
				}
			}
			if after := hugeBytes(t); (after < before) != splits {
				t.Errorf("%d MiB in huge pages before, %d after", before>>20, after>>20)
			}
		})
	}
}

// TestWrittenLosesItsDescriptor: a program may close every descriptor, and open others.
func TestWrittenLosesItsDescriptor(t *testing.T) {
	s := &Written{}
	if err := s.Probe(); err != nil {
		t.Skipf("not here: %v", err)
	}
	m := newMemory(t, RegionBytes, unix.MADV_NOHUGEPAGE)
	if err := s.Start(m.regions); err != nil {
		t.Fatal(err)
	}
	unix.Close(s.uffd)
	var others []int
	for len(others) == 0 || others[len(others)-1] < s.uffd {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, fd)
	}
	if _, err := s.Sample(make([]Rate, len(m.regions))); err == nil {
		t.Error("a sample without the descriptor")
	}
	s.Stop()
	for _, fd := range others {
		if err := unix.Close(fd); err != nil {
			t.Errorf("Stop closed descriptor %d, which is the program's", fd)
		}
	}
}

// fake is a source that refuses where it is told to.
type fake struct {
	name         string
	probe, start error
	resolution   uintptr
	stopped      bool
}

func (f *fake) Name() string                   { return f.name }
func (*fake) WritesOnly() bool                 { return false }
func (f *fake) Probe() error                   { return f.probe }
func (f *fake) Start([]Range) error            { return f.start }
func (f *fake) Sample([]Rate) (uintptr, error) { return f.resolution, nil }
func (f *fake) Stop()                          { f.stopped = true }

func TestFirst(t *testing.T) {
	no := errors.New("/sys/x is 0: root is needed")
	unstarted := &fake{name: "b", start: no}
	sources := []Source{&fake{name: "a", probe: no}, unstarted, &fake{name: "c"}, &fake{name: "d"}}
	i, refused := First(sources, nil, 0)
	if i != 2 || len(refused) != 2 || !unstarted.stopped {
		t.Errorf("source %d, stopped %v, refused %v", i, unstarted.stopped, refused)
	}
	for i, err := range refused {
		if want := sources[i].Name() + ": " + no.Error(); err.Error() != want {
			t.Errorf("%q, not %q", err, want)
		}
	}
	if i, refused := First(sources[:2], nil, 0); i != 2 || len(refused) != 2 {
		t.Errorf("without one that works: source %d, refused %v", i, refused)
	}
}

// TestFirstSuits: a source that does not tell apart what is wanted is passed over.
func TestFirstSuits(t *testing.T) {
	coarse, fine := &fake{name: "a", resolution: 8 << 20}, &fake{name: "b", resolution: 4096}
	i, refused := First([]Source{coarse, fine}, nil, 4096)
	const want = "a: it tells apart 8388608 bytes only; regions here are of 4096"
	if i != 1 || len(refused) != 1 || refused[0].Error() != want || !coarse.stopped ||
		fine.stopped {
		t.Errorf("source %d, refused %v, stopped %v, %v", i, refused, coarse.stopped, fine.stopped)
	}
}

// TestRefusalsName: a refusal is one line that names a file or a call.
func TestRefusalsName(t *testing.T) {
	for _, s := range Sources() {
		err := s.Probe()
		if err == nil {
			continue
		}
		t.Logf("%s: %v", s.Name(), err)
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), ": ") {
			t.Errorf("%s: %q", s.Name(), err)
		}
	}
}

func TestRegions(t *testing.T) {
	const mib = 1 << 20
	got := Regions(Range{3 * mib, 7 * mib}, Range{8 * mib, 9 * mib})
	want := []Range{{3 * mib, 4 * mib}, {4 * mib, 6 * mib}, {6 * mib, 7 * mib}, {8 * mib, 9 * mib}}
	if !slices.Equal(got, want) {
		t.Errorf("%x", got)
	}
	if got := spans(got); !slices.Equal(got, []Range{{3 * mib, 7 * mib}, {8 * mib, 9 * mib}}) {
		t.Errorf("spans %x", got)
	}
	tallies := make([]tally, len(want))
	spread(want, tallies, Range{2 * mib, 10 * mib}, tally{80, 160})
	spread(want, tallies, Range{3 * mib, 4 * mib}, tally{5, 10})
	if !slices.Equal(tallies, []tally{{15, 30}, {20, 40}, {10, 20}, {10, 20}}) {
		t.Errorf("spread %v", tallies)
	}
	for r, several := range map[Range]bool{{1, 2}: false, {2 * mib, 4 * mib}: false,
		{2 * mib, 5 * mib}: true, {7 * mib, 9 * mib}: false, {6 * mib, 9 * mib}: true} {
		if sharing(want, r) > 0 != several {
			t.Errorf("%x overlaps two regions: %v", r, !several)
		}
	}
}

func TestSmapsInPieces(t *testing.T) {
	const text = "7f00-9f00 rw-p 00000000 00:00 0 \nSize: 8 kB\nRss: 8 kB\nReferenced:     4 kB\n" +
		"VmFlags: rd wr\nffffa000-ffffb000 r--p 00000000 00:00 0  [vvar]\nReferenced: 0 kB\n" +
		"aa0000-ab0000 rw-p 00000000 00:00 0 [Heap: x]\nRss:    64 kB\nReferenced:   0 kB\n"
	for size := 1; size <= len(text); size += 7 {
		var got []Range
		var rss, referenced uint64
		p := smapsParser{mapping: func(m Range, all, some uint64) {
			got = append(got, m)
			rss += all
			referenced += some
		}}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			p.feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		if !slices.Equal(got, []Range{{0x7f00, 0x9f00}, {0xaa0000, 0xab0000}}) ||
			rss != 72<<10 || referenced != 4<<10 {
			t.Errorf("in pieces of %d: %x, %d of %d bytes", size, got, referenced, rss)
		}
	}
}

// paced is the share of a core that samples of so much processor time each take of an hour in which
// as much moves after each, and the wait after the last.
func paced(cost time.Duration, moved, grows uintptr) (share float64, wait time.Duration) {
	var p Pace
	var now, spent time.Duration
	for size := uintptr(1 << 30); now < time.Hour; size += grows {
		wait = p.Wait(Taken{Cost: cost, At: now, Moved: moved, Size: size})
		spent += cost
		now += cost + wait
	}
	return spent.Seconds() / now.Seconds(), wait
}

// TestPace: sampling keeps to its budget but for some seconds, or for four times as much where
// memory moves and grows all the time.
func TestPace(t *testing.T) {
	for _, cost := range []time.Duration{time.Millisecond, 32 * time.Millisecond, time.Second} {
		share, wait := paced(cost, 0, 0)
		if share > 1.0/Budget+settling*cost.Hours() || wait != max(Shortest, cost*Budget) {
			t.Errorf("%v a sample: %.4f of a core, then %v between two", cost, share, wait)
		}
		if share, _ := paced(cost, 1<<29, 1<<28); share > 1.0/hasteShare+1.1*hasteCredit.Hours() {
			t.Errorf("%v a sample, always in haste: %.4f of a core", cost, share)
		}
	}
	var p Pace
	for i := range 2 * settling {
		want := 4 * time.Second
		if i >= settling {
			want = 200 * time.Second
		}
		got := p.Wait(Taken{Cost: time.Second / hasty * 4, At: time.Hour, Size: 1 << 30})
		if got != max(want/hasty*4, Shortest) {
			t.Errorf("sample %d: %v", i, got)
		}
	}
}

// TestPaceOtherTiers: a sample that finds the program served by other tiers is followed by some in
// haste, and one in which this differs by chance is not.
func TestPaceOtherTiers(t *testing.T) {
	var p Pace
	wait := func(depth float64) time.Duration {
		return p.Wait(Taken{Cost: 100 * time.Millisecond, At: time.Hour, Size: 1 << 30,
			Depth: depth})
	}
	for i := range 4 * settling {
		if got := wait(0.1 + 0.05*float64(i%2)); i > settling && got != 20*time.Second {
			t.Fatalf("sample %d: %v", i, got)
		}
	}
	for i := range settling {
		if got := wait(0.9); got != Shortest {
			t.Errorf("sample %d of other use: %v", i, got)
		}
	}
	regions := []Rate{{PerSecond: 30}, {PerSecond: 10}, {}}
	if got := Depth(regions, func(i int) uint32 { return uint32(i) * 2 }); got != 0.5 {
		t.Errorf("depth %v", got)
	}
	if got := Depth(nil, nil); got != 0 {
		t.Errorf("depth %v of nothing", got)
	}
}

// TestOverBudget: it is rounded up.
func TestOverBudget(t *testing.T) {
	if got := overBudget(15*time.Millisecond, time.Second); got != 3 {
		t.Errorf("15 ms in a second is %d times the budget", got)
	}
}
