package heat

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// A sweep looks at the referenced bits of a large heap through a short window. Reading smaps for
// all mappings takes longer than the window, and meanwhile the program touches every region that it
// uses often. So a sweep clears the bits of regions, by MADV_COLD, shortly before it reads them:
// the kernel gives smaps some mappings at a time, in order.
//
// MADV_COLD (Linux 5.4) also lets the kernel take a page for one that is not used, until it is used
// again.
type sweep struct {
	regions []Range
	begun   []time.Time // when the bits of a region were cleared
	tallies []tally
	ahead   int           // how many regions are cleared before they are read
	cleared int           // regions whose bits were cleared
	read    int           // regions that smaps is past
	windows time.Duration // the sum of those of the regions read
}

var errNoCold = errors.New("madvise: MADV_COLD: Linux 5.4 is needed")

// clearTo clears the bits of the regions before the end-th.
func (s *sweep) clearTo(end int) error {
	for end = min(end, len(s.regions)); s.cleared < end; {
		first, start := s.cleared, s.regions[s.cleared].Start
		until := start
		for s.cleared < end && s.regions[s.cleared].Start == until {
			until = s.regions[s.cleared].End
			s.cleared++
		}
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, start, until-start, unix.MADV_COLD)
		// Some of the memory may be gone, or locked: its bits then say that it is used.
		if errno == unix.EINVAL && first == 0 {
			return errNoCold
		}
		now := time.Now()
		for i := first; i < s.cleared; i++ {
			s.begun[i] = now
		}
	}
	return nil
}

// passes notes that smaps is past an address.
func (s *sweep) passes(addr uintptr) {
	now := time.Now()
	for s.read < len(s.regions) && s.regions[s.read].End <= addr {
		if s.read < s.cleared {
			s.windows += now.Sub(s.begun[s.read])
		}
		s.read++
	}
}

// sweep is Sample for a window that is shorter than a pass over all mappings takes.
func (s *Referenced) sweep(rates []Rate) (resolution uintptr, err error) {
	w := &s.window
	each := max(s.pass/time.Duration(len(s.regions)), 1)
	sw := sweep{regions: s.regions, begun: make([]time.Time, len(s.regions)),
		tallies: w.empty(len(rates)), ahead: max(sweepLeast, int(w.length/each))}
	if err := sw.clearTo(sw.ahead); err != nil {
		return 0, err
	}
	if err := rest(w.length); err != nil {
		return 0, err
	}
	p := s.parser(sw.tallies, &resolution)
	begun := time.Now()
	err = readBlocks(smaps, s.buf[:pageBytes], func(block []byte) {
		p.feed(block)
		sw.passes(p.current.Start)
		// Each call has the processors flush their TLBs: so some regions at a time.
		if end := sw.read + sw.ahead; end-sw.cleared >= sw.ahead/4 {
			_ = sw.clearTo(end) // it worked before
		}
	})
	sw.passes(^uintptr(0))
	s.pass = time.Since(begun)
	w.rates(s.regions, rates, sw.windows/time.Duration(len(s.regions)))
	return resolution, err
}

// sweepLeast is how many regions ahead a sweep clears, at least: several times as many as smaps
// gives at once.
const sweepLeast = 64
