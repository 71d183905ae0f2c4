package heat

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// eachSource runs a test with each source that works here.
func eachSource(t *testing.T, run func(t *testing.T, s Source)) {
	for _, s := range Sources() {
		t.Run(s.Name(), func(t *testing.T) {
			if err := s.Probe(); err != nil {
				t.Skipf("not here: %v", err)
			}
			defer s.Stop()
			run(t, s)
		})
	}
}

// TestSources has each source tell regions that are used all the time from those that never are.
// The regions take the place of a few other ones.
func TestSources(t *testing.T) {
	for name, bytes := range map[string]uintptr{"64K": 64 << 10, "2M": RegionBytes} {
		t.Run(name, func(t *testing.T) {
			eachSource(t, func(t *testing.T, s Source) {
				m := newMemory(t, bytes, unix.MADV_NOHUGEPAGE)
				m.split(t)
				few := m.regions[:len(m.regions)/2]
				if err := s.Start(few); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Sample(make([]Rate, len(few))); err != nil {
					t.Fatal(err)
				}
				if err := s.Start(m.regions); err != nil {
					t.Fatal(err)
				}
				m.tellApart(t, s)
			})
		})
	}
}

// TestOneMapping: sources that look at pages do not need a mapping for each region. Of the others'
// regions all have the same rate, and the resolution says so.
func TestOneMapping(t *testing.T) {
	eachSource(t, func(t *testing.T, s Source) {
		m := newMemory(t, 64<<10, unix.MADV_NOHUGEPAGE)
		if err := s.Start(m.regions); err != nil {
			t.Fatal(err)
		}
		if _, mappings := s.(*Referenced); !mappings {
			m.tellApart(t, s)
			return
		}
		defer m.use(false, 0)()
		rates := make([]Rate, len(m.regions))
		for rates[0].PerSecond == 0 {
			resolution, err := s.Sample(rates)
			if err != nil || resolution < memoryBytes {
				t.Fatalf("resolution %d, %v", resolution, err)
			}
		}
		for i := range rates {
			if rates[i] != rates[0] {
				t.Errorf("rates[%d] is %v, rates[0] %v", i, rates[i], rates[0])
			}
		}
	})
}

// TestPartJoins: regions that came to share a mapping make referenced bits as coarse as they are a
// part of the memory.
func TestPartJoins(t *testing.T) {
	s := &Referenced{}
	if err := s.Probe(); err != nil {
		t.Skipf("not here: %v", err)
	}
	m := newMemory(t, 64<<10, unix.MADV_NOHUGEPAGE)
	m.split(t)
	const joined = memoryBytes / 8
	for _, r := range m.regions[:joined/(64<<10)] {
		if err := advise(r, unix.MADV_DOFORK); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start(m.regions); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	resolution, err := s.Sample(make([]Rate, len(m.regions)))
	if err != nil || resolution < joined/8 || resolution > joined/4 {
		t.Errorf("resolution %d, %v: an eighth of the memory has mappings of %d", resolution, err,
			joined)
	}
}

// TestVanished: memory that was unmapped after Start has rate 0.
func TestVanished(t *testing.T) {
	eachSource(t, func(t *testing.T, s Source) {
		m := newMemory(t, RegionBytes, unix.MADV_NOHUGEPAGE)
		if err := s.Start(m.regions); err != nil {
			t.Fatal(err)
		}
		const first, end = 2, 5 // of the regions
		base, bytes := m.regions[first].Start, uintptr((end-first)*RegionBytes)
		// An address that Go knows nothing of.
		if err := unix.MunmapPtr(*(*unsafe.Pointer)(unsafe.Pointer(&base)), bytes); err != nil {
			t.Fatal(err)
		}
		rates := make([]Rate, len(m.regions))
		for range 2 {
			if _, err := s.Sample(rates); err != nil {
				t.Fatal(err)
			}
			if err := s.Start(m.regions); err != nil {
				t.Fatalf("without some of the memory: %v", err)
			}
		}
		_, _, errno := unix.Syscall6(unix.SYS_MMAP, base, bytes, unix.PROT_NONE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
		m.keep = errno != 0
		if !m.keep && slices.ContainsFunc(rates[first:end], touched) {
			t.Errorf("rates %f", rates)
		}
	})
}

// TestReferencedAllTheTime: pages that are used all the time are few enough for the processor to
// know where they are. They are seen nevertheless, however short the window. The kernel's reclaim
// may hide some now and then.
func TestReferencedAllTheTime(t *testing.T) {
	s := &Referenced{}
	if err := s.Probe(); err != nil {
		t.Skipf("not here: %v", err)
	}
	m := newMemory(t, 64<<10, unix.MADV_NOHUGEPAGE)
	m.split(t)
	for i := len(m.hot) / 8; i < len(m.hot); i++ {
		m.hot[i] = false
	}
	if err := s.Start(m.regions); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	defer m.use(false, 0)()
	missed := 0
	for range 20 {
		if err := s.clear(); err != nil {
			t.Fatal(err)
		}
		for end := m.passes.Load() + 2; m.passes.Load() < end; {
			if err := rest(time.Microsecond); err != nil {
				t.Fatal(err)
			}
		}
		tallies := make([]tally, len(m.regions))
		if _, err := s.count(tallies); err != nil {
			t.Fatal(err)
		}
		for i, hot := range m.hot {
			if hot && tallies[i].touched != tallies[i].pages {
				missed++
				break
			}
		}
	}
	if missed > 4 {
		t.Errorf("%d windows of 20 do not show all pages", missed)
	}
}

// TestWrittenPassesOver: a region that another userfaultfd has is not seen, and keeps no other from
// being seen. If all are such, the source refuses.
func TestWrittenPassesOver(t *testing.T) {
	s, other := &Written{}, &Written{}
	if err := s.Probe(); err != nil {
		t.Skipf("not here: %v", err)
	}
	m := newMemory(t, RegionBytes, unix.MADV_NOHUGEPAGE)
	defer s.Stop()
	defer other.Stop()
	if err := other.Start(m.regions[3:5]); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(m.regions); err != nil {
		t.Fatal(err)
	}
	m.hot[3], m.hot[4] = false, false
	m.tellApart(t, s)
	err := s.Start(m.regions[3:5])
	if err == nil || !strings.Contains(err.Error(), "UFFDIO_REGISTER") {
		t.Errorf("memory that another userfaultfd has can be registered: %v", err)
	}
}

func touched(r Rate) bool { return r.PerSecond > 0 }
