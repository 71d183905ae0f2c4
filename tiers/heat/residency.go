package heat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Residency asks the kernel how much of each region is in memory. It needs no right. The zero value
// is ready.
type Residency struct {
	vec  []pageRegion
	buf  []byte
	read bool // this kernel cannot scan: pagemap is read
}

const (
	pageZero     = 1 << 5  // PAGE_IS_PFNZERO: the page that is all zero, and no memory
	presentBit   = 1 << 63 // of an entry of pagemap
	pagemapEntry = 8       // bytes
)

// Count sets resident to the bytes in memory of each region. The regions are in order and do not
// overlap.
func (s *Residency) Count(regions []Range, resident []uint64) error {
	clear(resident)
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return needingProc(err)
	}
	defer unix.Close(fd)
	found := func(r Range) {
		for i := from(regions, r.Start); i < len(regions) && regions[i].Start < r.End; i++ {
			resident[i] += uint64(overlap(regions[i], r))
		}
	}
	all := spans(regions)
	if !s.read {
		err = s.scan(fd, all, found)
		if !errors.Is(err, unix.ENOTTY) && !errors.Is(err, unix.EINVAL) {
			return named(pagemap, err)
		}
		s.read = true
		clear(resident)
	}
	return named(pagemap, s.entries(fd, all, found))
}

// scan has the kernel list the ranges in memory.
func (s *Residency) scan(fd int, all []Range, found func(Range)) error {
	if s.vec == nil {
		s.vec = make([]pageRegion, 1024)
	}
	arg := scanArg{mask: pagePresent | pageZero, inverted: pageZero, returned: pagePresent}
	return scanPagemap(fd, arg, s.vec, all, func(p pageRegion) {
		found(Range{uintptr(p.start), uintptr(p.end)})
	})
}

// entries reads the entry of each page. It takes the page of zeros for memory.
func (s *Residency) entries(fd int, all []Range, found func(Range)) error {
	if s.buf == nil {
		s.buf = make([]byte, 64<<10)
	}
	for _, r := range all {
		for at := r.Start; at < r.End; {
			want := min(uintptr(len(s.buf)), (r.End-at)/pageBytes*pagemapEntry)
			n, err := unix.Pread(fd, s.buf[:want], int64(at/pageBytes*pagemapEntry))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n < pagemapEntry {
				return err
			}
			for i := 0; i+pagemapEntry <= n; i += pagemapEntry {
				if binary.NativeEndian.Uint64(s.buf[i:])&presentBit != 0 {
					found(Range{at, at + pageBytes})
				}
				at += pageBytes
			}
		}
	}
	return nil
}

// Anonymous is how many bytes of memory that is no file's the process has, from the kernel's
// counters. It costs little, and lags by some pages of each processor.
func Anonymous() (uint64, error) {
	const statm = "/proc/self/statm"
	text, err := readWord(statm)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(text) // size, resident, of files, …
	if len(fields) < 3 {
		return 0, fmt.Errorf("%s: %q", statm, text)
	}
	resident, err := strconv.ParseUint(fields[1], 10, 64)
	files, err2 := strconv.ParseUint(fields[2], 10, 64)
	return (resident - min(files, resident)) * uint64(unix.Getpagesize()), errors.Join(err, err2)
}

// PageOut has the kernel page a range out. It skips what is locked, pinned or shared with another
// process, with an error or without.
func PageOut(r Range) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, r.Start, r.End-r.Start, unix.MADV_PAGEOUT)
	if errno != 0 {
		return errno
	}
	return nil
}
