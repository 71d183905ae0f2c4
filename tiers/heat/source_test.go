package heat

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is sixteen regions, each a mapping of its own, whose pages all exist. Every other one is
// hot.
type memory struct{ regions []Range }

func newMemory(t *testing.T, advice int) *memory {
	t.Helper()
	const regions = 16
	all, err := unix.Mmap(-1, 0, (2*regions+1)*RegionBytes, unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(all) })
	base := uintptr(unsafe.Pointer(&all[0]))
	first := (base+RegionBytes-1)&^(RegionBytes-1) - base
	m := &memory{}
	for i := range uintptr(regions) {
		region := all[first+2*i*RegionBytes:][:RegionBytes]
		if err := unix.Mprotect(region, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			t.Fatal(err)
		}
		_ = unix.Madvise(region, advice) // there may be no huge pages at all
		start := uintptr(unsafe.Pointer(&region[0]))
		m.regions = append(m.regions, Range{start, start + RegionBytes})
	}
	for i := range m.regions {
		m.touch(i, true)
	}
	return m
}

func (m *memory) hot(i int) bool { return i%2 == 0 }

var sink byte

// touch accesses every page of a region.
func (m *memory) touch(i int, write bool) {
	r := m.regions[i]
	for at := r.Start; at < r.End; at += pageBytes {
		p := *(**byte)(unsafe.Pointer(&at)) // an address that Go knows nothing of
		if write {
			*p++
		} else {
			sink += *p
		}
	}
}

// TestSources has each source tell regions that are used all the time from those that never are.
func TestSources(t *testing.T) {
	for _, s := range Sources() {
		t.Run(s.Name(), func(t *testing.T) {
			if err := s.Probe(); err != nil {
				t.Skipf("not here: %v", err)
			}
			m := newMemory(t, unix.MADV_NOHUGEPAGE)
			if err := s.Start(m.regions); err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			m.tellApart(t, s)
		})
	}
}

// tellApart samples until every hot region counts ten times as much as any other. The others count
// nothing at all but with DAMON, which now and then takes what the kernel does with a page for an
// access. The time bounds only how long a source may not tell them apart.
func (m *memory) tellApart(t *testing.T, s Source) {
	t.Helper()
	_, looks := s.(*Damon)
	counts, sum := make([]uint32, len(m.regions)), make([]uint32, len(m.regions))
	for end := time.Now().Add(2 * time.Minute); ; {
		m.use(s)
		resolution, err := s.Sample(counts)
		if err != nil {
			t.Fatal(err)
		}
		if resolution != RegionBytes {
			t.Fatalf("resolution %d with regions of %d", resolution, RegionBytes)
		}
		var others uint32
		least := ^uint32(0)
		for i, n := range counts {
			sum[i] += n
			if m.hot(i) {
				least = min(least, sum[i])
			} else {
				others = max(others, sum[i])
			}
		}
		if others > 0 && !looks {
			t.Fatalf("regions that are never used count: %d", sum)
		}
		if least > 0 && least >= 10*others {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not told apart: %d", sum)
		}
	}
	t.Logf("counts %d", sum)
}

// use accesses the hot regions for the time of some looks of DAMON's.
func (m *memory) use(s Source) {
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		for i := range m.regions {
			if m.hot(i) {
				m.touch(i, s.WritesOnly())
			}
		}
	}
}

// TestReferencedInOneMapping: regions of one mapping share their count, and the resolution says so.
func TestReferencedInOneMapping(t *testing.T) {
	const bytes = 4 * RegionBytes
	all, err := unix.Mmap(-1, 0, bytes+RegionBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(all)
	start := (uintptr(unsafe.Pointer(&all[0])) + RegionBytes - 1) &^ (RegionBytes - 1)
	m := &memory{regions: Regions(Range{start, start + bytes})}
	s := &Referenced{}
	if err := s.Probe(); err != nil {
		t.Skipf("not here: %v", err)
	}
	if err := s.Start(m.regions); err != nil {
		t.Fatal(err)
	}
	m.touch(0, true)
	counts := make([]uint32, len(m.regions))
	resolution, err := s.Sample(counts)
	if err != nil || resolution < bytes || counts[0] == 0 || counts[0] != counts[3] {
		t.Errorf("counts %d, resolution %d, %v", counts, resolution, err)
	}
}

// TestStopped has a source begin again on other regions.
func TestStopped(t *testing.T) {
	for _, s := range Sources() {
		t.Run(s.Name(), func(t *testing.T) {
			if err := s.Probe(); err != nil {
				t.Skipf("not here: %v", err)
			}
			for range 2 {
				m := newMemory(t, unix.MADV_NOHUGEPAGE)
				if err := s.Start(m.regions); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Sample(make([]uint32, len(m.regions))); err != nil {
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
			m := newMemory(t, unix.MADV_HUGEPAGE)
			before := hugeBytes(t)
			if before < uint64(len(m.regions))*RegionBytes {
				t.Skipf("the kernel gives huge pages for %d MiB only", before>>20)
			}
			if err := s.Start(m.regions); err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			for range 2 {
				m.use(&Written{})
				if _, err := s.Sample(make([]uint32, len(m.regions))); err != nil {
					t.Fatal(err)
				}
			}
			_, splits := s.(*Written)
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
	m := newMemory(t, unix.MADV_NOHUGEPAGE)
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
	if _, err := s.Sample(make([]uint32, len(m.regions))); err == nil {
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
	stopped      bool
}

func (f *fake) Name() string                   { return f.name }
func (*fake) WritesOnly() bool                 { return false }
func (f *fake) Probe() error                   { return f.probe }
func (f *fake) Start([]Range) error            { return f.start }
func (*fake) Sample([]uint32) (uintptr, error) { return RegionBytes, nil }
func (f *fake) Stop()                          { f.stopped = true }

func TestFirst(t *testing.T) {
	no := errors.New("/sys/x is 0: root is needed")
	unstarted := &fake{name: "b", start: no}
	sources := []Source{&fake{name: "a", probe: no}, unstarted, &fake{name: "c"}, &fake{name: "d"}}
	i, refused := First(sources, nil)
	if i != 2 || len(refused) != 2 || !unstarted.stopped {
		t.Errorf("source %d, stopped %v, refused %v", i, unstarted.stopped, refused)
	}
	for i, err := range refused {
		if want := sources[i].Name() + ": " + no.Error(); err.Error() != want {
			t.Errorf("%q, not %q", err, want)
		}
	}
	if i, refused := First(sources[:2], nil); i != 2 || len(refused) != 2 {
		t.Errorf("without one that works: source %d, refused %v", i, refused)
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
	counts := make([]uint32, len(want))
	spread(want, counts, Range{2 * mib, 10 * mib}, 80)
	if !slices.Equal(counts, []uint32{10, 20, 10, 10}) {
		t.Errorf("spread %d", counts)
	}
}

func TestSmapsInPieces(t *testing.T) {
	const text = "7f00-9f00 rw-p 00000000 00:00 0 \nSize: 8 kB\nReferenced:          8 kB\n" +
		"VmFlags: rd wr\nffffa000-ffffb000 r--p 00000000 00:00 0  [vvar]\nReferenced: 0 kB\n" +
		"aa0000-ab0000 rw-p 00000000 00:00 0 [Heap: x]\nReferenced:   64 kB\n"
	for size := 1; size <= len(text); size += 7 {
		var got []Range
		var bytes uint64
		p := smapsParser{mapping: func(m Range, n uint64) { got = append(got, m); bytes += n }}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			p.feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		if !slices.Equal(got, []Range{{0x7f00, 0x9f00}, {0xaa0000, 0xab0000}}) || bytes != 72<<10 {
			t.Errorf("in pieces of %d: %x, %d bytes", size, got, bytes)
		}
	}
}

func TestPeriod(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		0:                     Shortest,
		time.Millisecond:      Shortest,
		32 * time.Millisecond: 6400 * time.Millisecond,
	} {
		if got := Period(cost); got != want {
			t.Errorf("%v after %v, not %v", got, cost, want)
		}
	}
	if got := overBudget(15*time.Millisecond, time.Second); got != 3 {
		t.Errorf("15 ms in a second is %d times the budget", got)
	}
}

// BenchmarkSample reports the processor time of a sample of a GiB that is all in use, of the
// sampling thread and, where there is one, of DAMON's.
func BenchmarkSample(b *testing.B) {
	const GiB = 1 << 30
	for _, pages := range []struct {
		name   string
		advice int
	}{{"4K", unix.MADV_NOHUGEPAGE}, {"2M", unix.MADV_HUGEPAGE}} {
		all, err := unix.Mmap(-1, 0, GiB+RegionBytes, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			b.Fatal(err)
		}
		start := (uintptr(unsafe.Pointer(&all[0])) + RegionBytes - 1) &^ (RegionBytes - 1)
		if err := unix.Madvise(all, pages.advice); err != nil {
			b.Skip(err)
		}
		m := &memory{regions: Regions(Range{start, start + GiB})}
		for i := range m.regions {
			m.touch(i, true)
		}
		for _, s := range Sources() {
			b.Run(pages.name+"/"+s.Name(), func(b *testing.B) { m.bench(b, s) })
		}
		unix.Munmap(all)
	}
}

// hugeBytes is how much of the process is in huge pages.
func hugeBytes(b testing.TB) uint64 {
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(rollup), "\nAnonHugePages:")
	kB, err := strconv.ParseUint(strings.Fields(after)[0], 10, 54)
	if err != nil {
		b.Fatal(err)
	}
	return kB << 10
}

func (m *memory) bench(b *testing.B, s Source) {
	if err := s.Probe(); err != nil {
		b.Skip(err)
	}
	if err := s.Start(m.regions); err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	counts := make([]uint32, len(m.regions))
	var sum, using time.Duration
	for b.Loop() {
		before := threadTime()
		for i := range m.regions {
			m.touch(i, s.WritesOnly())
		}
		using += threadTime() - before
		_, cost, err := Timed(s, counts)
		if err != nil {
			b.Fatal(err)
		}
		sum += cost
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(hugeBytes(b)>>20), "huge-MiB")
	b.ReportMetric(float64(sum.Microseconds())/1e3/float64(b.N), "cpu-ms/GiB")
	b.ReportMetric(float64(using.Microseconds())/1e3/float64(b.N), "use-ms/GiB")
	b.ReportMetric(float64(sum/time.Duration(b.N)*Budget/time.Millisecond)/1e3, "period-s")
}
