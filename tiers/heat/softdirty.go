package heat

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SoftDirty counts the pages whose page table entry has the soft-dirty bit: those written to, by
// page. It needs no right, and is process-wide: the first write to any page after a sample costs
// the program a fault. A mapping that grew since the last sample reads as written.
type SoftDirty struct {
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
	dirty, err := countDirty(Range{start, start + pageBytes})
	switch {
	case err != nil:
		return needingProc(err)
	case dirty != 1:
		return fmt.Errorf("%s: bit 55 of a page just written to is 0: a kernel with "+
			"CONFIG_MEM_SOFT_DIRTY is needed", pagemap)
	}
	return needingProc(write(clearRefs, clearSoftDirty))
}

// countDirty counts the soft-dirty pages of a range.
func countDirty(r Range) (uint32, error) {
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return dirtyPages(fd, r, make([]uint64, 1))
}

// dirtyPages is countDirty with pagemap open.
func dirtyPages(fd int, r Range, buf []uint64) (uint32, error) {
	var dirty uint32
	for at := r.Start; at < r.End; {
		entries := buf[:min(uintptr(len(buf)), (r.End-at+pageBytes-1)/pageBytes)]
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&entries[0])), len(entries)*8)
		n, err := unix.Pread(fd, raw, int64(at/pageBytes*8))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, named(pagemap, err)
		case n < 8:
			return 0, fmt.Errorf("%s: nothing at %#x", pagemap, at)
		}
		for _, entry := range entries[:n/8] {
			if entry&(entryDirty|entryPresent) == entryDirty|entryPresent {
				dirty++
			}
		}
		at += uintptr(n/8) * pageBytes
	}
	return dirty, nil
}

func (s *SoftDirty) Start(regions []Range) error {
	s.regions = regions
	s.buf = make([]uint64, RegionBytes/pageBytes)
	return write(clearRefs, clearSoftDirty)
}

func (s *SoftDirty) Sample(counts []uint32) (uintptr, error) {
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for i, r := range s.regions {
		if counts[i], err = dirtyPages(fd, r, s.buf); err != nil {
			return 0, err
		}
	}
	return RegionBytes, write(clearRefs, clearSoftDirty)
}

func (s *SoftDirty) Stop() {}
