package heat

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SoftDirty counts the pages whose page table entry has the soft-dirty bit: those written to, by
// page. It needs no right, and is process-wide: the first write to any page after the begin of a
// window costs the program a fault. A mapping that grows within a window reads as written.
type SoftDirty struct {
	window  window
	regions []Range
	buf     []uint64
}

func (*SoftDirty) Name() string     { return "soft-dirty bits" }
func (*SoftDirty) WritesOnly() bool { return true }

// Bits of an entry of pagemap.
const (
	entryDirty   = 1 << 55
	entryPresent = 1 << 63
)

func (s *SoftDirty) Probe() error {
	page, err := unix.Mmap(-1, 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("mmap of a page: %w", err)
	}
	defer unix.Munmap(page)
	page[0] = 1
	start := uintptr(unsafe.Pointer(&page[0]))
	found, err := tallyDirty(Range{start, start + pageBytes})
	switch {
	case err != nil:
		return needingProc(err)
	case found.touched != 1:
		return fmt.Errorf("%s: bit 55 of a page just written to is 0: a kernel with "+
			"CONFIG_MEM_SOFT_DIRTY is needed", pagemap)
	}
	return needingProc(write(clearRefs, clearSoftDirty))
}

// tallyDirty counts the soft-dirty pages of a range.
func tallyDirty(r Range) (tally, error) {
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return tally{}, err
	}
	defer unix.Close(fd)
	return dirtyPages(fd, r, make([]uint64, 1))
}

// dirtyPages is tallyDirty with pagemap open.
func dirtyPages(fd int, r Range, buf []uint64) (found tally, err error) {
	for at := r.Start; at < r.End; {
		entries := buf[:min(uintptr(len(buf)), (r.End-at+pageBytes-1)/pageBytes)]
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&entries[0])), len(entries)*8)
		n, err := unix.Pread(fd, raw, int64(at/pageBytes*8))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return found, named(pagemap, err)
		case n < 8:
			return found, nil // no process has memory there
		}
		for _, entry := range entries[:n/8] {
			if entry&entryPresent != 0 {
				found.pages++
				found.touched += float64(entry / entryDirty & 1)
			}
		}
		at += uintptr(n/8) * pageBytes
	}
	return found, nil
}

func (s *SoftDirty) Start(regions []Range) error {
	s.regions = append(s.regions[:0], regions...)
	if s.buf == nil {
		s.buf = make([]uint64, RegionBytes/pageBytes)
	}
	return nil
}

func (s *SoftDirty) Sample(rates []Rate) (resolution uintptr, err error) {
	return 0, s.window.measure(s.regions, rates, func() error {
		return write(clearRefs, clearSoftDirty)
	}, s.count)
}

// count sets the tallies of all regions.
func (s *SoftDirty) count(tallies []tally) error {
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i, r := range s.regions {
		if tallies[i], err = dirtyPages(fd, r, s.buf); err != nil {
			return err
		}
	}
	return nil
}

func (s *SoftDirty) Stop() { s.window = window{} }
