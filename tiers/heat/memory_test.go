package heat

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is one mapping, as the heap's are, cut into regions. Its pages all exist. A quarter of the
// regions, scattered, is hot.
type memory struct {
	regions []Range
	hot     []bool
	passes  atomic.Int64 // of use
	keep    bool         // something else came to lie there
}

const memoryBytes = 32 << 20

func newMemory(t *testing.T, region uintptr, advice int) *memory {
	t.Helper()
	base, err := unix.MmapPtr(-1, 0, nil, memoryBytes+RegionBytes,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	t.Cleanup(func() {
		if !m.keep {
			unix.MunmapPtr(base, memoryBytes+RegionBytes)
		}
	})
	start := (uintptr(base) + RegionBytes - 1) &^ (RegionBytes - 1)
	for at := start; at < start+memoryBytes; at += region {
		m.regions = append(m.regions, Range{at, at + region})
	}
	m.hot = make([]bool, len(m.regions))
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(m.hot))[:len(m.hot)/4] {
		m.hot[i] = true
	}
	_ = advise(Range{start, start + memoryBytes}, advice) // there may be no huge pages at all
	for i := range m.regions {
		m.touch(i, true)
	}
	return m
}

func advise(r Range, advice int) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, r.Start, r.End-r.Start, uintptr(advice))
	if errno != 0 {
		return errno
	}
	return nil
}

// split makes each region a mapping of its own: no two neighbours have the same attributes.
func (m *memory) split(t *testing.T) {
	t.Helper()
	for i := 0; i < len(m.regions); i += 2 {
		if err := advise(m.regions[i], unix.MADV_DONTFORK); err != nil {
			t.Fatal(err)
		}
	}
}

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

// use has a goroutine access the hot regions until stop is called, with a rest after each time.
func (m *memory) use(write bool, between time.Duration) (stop func()) {
	var ends atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; !ends.Load(); m.passes.Add(1) {
			for i, hot := range m.hot {
				if hot {
					m.touch(i, write)
				}
			}
			time.Sleep(between)
		}
	}()
	return func() {
		ends.Store(true)
		<-ended
	}
}

// tellApart samples until every hot region was touched ten times as much as any other. The others
// are not touched at all but with DAMON, which now and then takes what the kernel does with a page
// for an access. The time bounds only how long a source may not tell them apart.
func (m *memory) tellApart(t *testing.T, s Source) {
	t.Helper()
	_, looks := s.(*Damon)
	between := time.Duration(0)
	if looks {
		between = firstWindow / 10 // a look sees whether a page was used in a window, not how often
	}
	defer m.use(s.WritesOnly(), between)()
	rates, sum := make([]Rate, len(m.regions)), make([]float64, len(m.regions))
	var resolution uintptr
	for end := time.Now().Add(5 * time.Minute); ; {
		var err error
		if resolution, err = s.Sample(rates); err != nil {
			t.Fatal(err)
		}
		if resolution != 0 && !looks {
			t.Fatalf("resolution %d of regions that are told apart", resolution)
		}
		least, others := 0.0, 0.0
		first := true
		for i, n := range rates {
			sum[i] += n.PerSecond
			if !m.hot[i] {
				others = max(others, sum[i])
			} else if first || sum[i] < least {
				least, first = sum[i], false
			}
		}
		if others > 0 && !looks {
			t.Fatalf("regions that are never used count: %.0f", sum)
		}
		if least > 0 && least >= 10*others {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not told apart: %.0f", sum)
		}
	}
	t.Logf("resolution %d, rates %.0f", resolution, sum[:16])
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

// Regions cuts the ranges at multiples of RegionBytes. Ranges are in order and do not overlap.
func Regions(ranges ...Range) []Range {
	var regions []Range
	for _, r := range ranges {
		for start := r.Start; start < r.End; {
			end := min(start&^(RegionBytes-1)+RegionBytes, r.End)
			regions = append(regions, Range{start, end})
			start = end
		}
	}
	return regions
}
