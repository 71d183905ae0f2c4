package heat

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

const (
	clearRefs = "/proc/self/clear_refs"
	smaps     = "/proc/self/smaps"
)

// Referenced counts the pages whose page table entry has the referenced bit, from the kernel's
// figures for each mapping: Referenced of Rss. A mapping's pages are spread evenly over its
// regions, so regions in one mapping cannot be told apart. A huge page is touched as a whole. It
// needs no right, and is process-wide: it clears the bits of all memory, and reads the figures of
// all mappings.
type Referenced struct {
	window  window
	regions []Range
	buf     []byte
	scratch []byte        // see flushTLB
	pass    time.Duration // how long the last pass over all mappings took
	whole   bool          // this kernel cannot clear a region's bits alone
}

func (*Referenced) Name() string     { return "referenced bits" }
func (*Referenced) WritesOnly() bool { return false }

func (s *Referenced) Probe() error {
	err := write(clearRefs, clearReferenced)
	if err == nil {
		err = readBlocks(smaps, make([]byte, 4096), func([]byte) {})
	}
	return needingProc(err)
}

// What clear_refs clears.
const (
	clearReferenced = "1"
	clearSoftDirty  = "4"
)

// flushPages is more than the pages that the kernel flushes one by one.
const flushPages = 64

func (s *Referenced) Start(regions []Range) error {
	s.regions = append(s.regions[:0], regions...)
	if s.scratch != nil {
		return nil
	}
	scratch, err := unix.Mmap(-1, 0, flushPages*pageBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("mmap of %d pages: %w", flushPages, err)
	}
	s.scratch, s.buf = scratch, make([]byte, 64<<10)
	return nil
}

func (s *Referenced) Sample(rates []Rate) (resolution uintptr, err error) {
	for range windowTries {
		length := cmp.Or(s.window.length, firstWindow)
		resolution, err = s.once(rates)
		if errors.Is(err, unix.EBADF) {
			continue // the program has closed all descriptors meanwhile
		}
		if err != nil || s.window.length >= length {
			break
		}
	}
	return resolution, err
}

// once takes a sample in one window.
func (s *Referenced) once(rates []Rate) (resolution uintptr, err error) {
	if len(s.regions) != 0 && s.pass > 2*s.window.length && s.window.length != 0 && !s.whole {
		resolution, err = s.sweep(rates)
		if !errors.Is(err, errNoCold) {
			return resolution, err
		}
		s.whole = true
	}
	err = s.window.measure(s.regions, rates, s.clear, func(tallies []tally) (err error) {
		begun := time.Now()
		resolution, err = s.count(tallies)
		s.pass = time.Since(begun)
		return err
	})
	return resolution, err
}

// clear makes all pages unreferenced.
func (s *Referenced) clear() error {
	if err := write(clearRefs, clearReferenced); err != nil {
		return err
	}
	return s.flushTLB()
}

// flushTLB has the processors look all addresses up anew. They set the referenced bit when they do,
// clear_refs leaves what they know, and a page that is used all the time stays known. The kernel
// flushes everything when it takes the right to write to many pages.
func (s *Referenced) flushTLB() error {
	for _, rights := range []int{unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE} {
		if err := unix.Mprotect(s.scratch, rights); err != nil {
			return fmt.Errorf("mprotect: %w", err)
		}
	}
	return nil
}

// count adds to the tallies.
func (s *Referenced) count(tallies []tally) (resolution uintptr, err error) {
	err = readBlocks(smaps, s.buf, s.parser(tallies, &resolution).feed)
	return resolution, err
}

// parser takes smaps, adds to the tallies and sets the resolution: the size of the mapping in which
// a byte of the regions lies, in the mean, or 0 for a byte whose region is alone in it. One mapping
// that regions came to share while the program went on does not make the whole source coarse.
func (s *Referenced) parser(tallies []tally, resolution *uintptr) *smapsParser {
	bytes, sum := bytesOf(s.regions), 0.0
	return &smapsParser{mapping: func(m Range, rss, referenced uint64) {
		if shared := sharing(s.regions, m); shared > 0 {
			sum += float64(shared) * float64(m.End-m.Start)
			*resolution = uintptr(math.Ceil(sum / float64(bytes)))
		}
		spread(s.regions, tallies, m, tally{touched: float64(referenced / pageBytes),
			pages: float64(rss / pageBytes)})
	}}
}

func (s *Referenced) Stop() {
	if s.scratch != nil {
		_ = unix.Munmap(s.scratch) // cannot fail for a mapping of one's own
		s.scratch = nil
	}
	s.window = window{}
}

// pageBytes is what pages are counted in.
const pageBytes = 4096
