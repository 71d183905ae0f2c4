package heat

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const pagemap = "/proc/self/pagemap"

// Written counts the pages that were written to: PAGEMAP_SCAN (Linux 6.7) with the asynchronous
// write protection of userfaultfd, by page. The first write to a page after the begin of a window
// costs the program a fault. It needs no right. Memory that is mapped after the last Start is not
// seen.
//
// The descriptor stays open, because the protection ends with it.
type Written struct {
	window  window
	started bool
	spans   []Range
	regions []Range
	uffd    int
	vec     []pageRegion
}

func (*Written) Name() string     { return "write protection" }
func (*Written) WritesOnly() bool { return true }

// pageRegion is the kernel's struct page_region.
type pageRegion struct{ start, end, categories uint64 }

// scanArg is the kernel's struct pm_scan_arg.
type scanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64

	inverted, mask, anyOf, returned uint64
}

const (
	pagemapScan = 0xc0606610 // PAGEMAP_SCAN

	scanProtects = 1 << 0 // PM_SCAN_WP_MATCHING

	pageProtectable = 1 << 0 // PAGE_IS_WPALLOWED
	pageWritten     = 1 << 1 // PAGE_IS_WRITTEN
	pagePresent     = 1 << 3 // PAGE_IS_PRESENT
)

// uffdAPI is the kernel's struct uffdio_api.
type uffdAPI struct{ api, features, ioctls uint64 }

// uffdRegister is the kernel's struct uffdio_register.
type uffdRegister struct{ start, bytes, mode, ioctls uint64 }

const (
	uffdioAPI      = 0xc018aa3f // UFFDIO_API
	uffdioRegister = 0xc020aa00 // UFFDIO_REGISTER

	uffdVersion      = 0xaa
	uffdUserModeOnly = 1       // which no right is needed for
	uffdAsync        = 1 << 15 // UFFD_FEATURE_WP_ASYNC
	uffdModeWP       = 1 << 1
)

func (s *Written) Probe() error {
	fd, err := openUserfault()
	if err != nil {
		return err
	}
	unix.Close(fd)
	fd, err = open(pagemap, unix.O_RDONLY)
	if err != nil {
		return needingProc(err)
	}
	return unix.Close(fd)
}

// openUserfault opens a userfaultfd whose protection is asynchronous.
func openUserfault() (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return -1, fmt.Errorf("userfaultfd: %w: a kernel with userfaultfd and no filter of it is "+
			"needed", errno)
	}
	api := uffdAPI{api: uffdVersion, features: uffdAsync}
	if errno := ioctl(int(fd), uffdioAPI, unsafe.Pointer(&api)); errno != 0 {
		unix.Close(int(fd))
		return -1, fmt.Errorf("userfaultfd: UFFD_FEATURE_WP_ASYNC: %w: Linux 6.7 is needed", errno)
	}
	return int(fd), nil
}

func ioctl(fd int, request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
	return errno
}

func (s *Written) Start(regions []Range) error {
	if !s.started {
		fd, err := openUserfault()
		if err != nil {
			return err
		}
		s.uffd, s.started = fd, true
		s.vec = make([]pageRegion, 512)
	}
	if !s.holds() {
		return s.lost()
	}
	s.regions = append(s.regions[:0], regions...)
	s.spans = spans(s.regions)
	return s.register()
}

// register has the kernel protect all regions. It passes over those that went away, or that another
// userfaultfd has, unless no region is left. Memory that is registered already costs little, and
// what lies at its addresses may have been mapped anew.
func (s *Written) register() error {
	var refused error
	registered := false
	for i, at := 0, 0; i < len(s.spans); i++ {
		end := from(s.regions, s.spans[i].End)
		err := s.registerRange(s.spans[i])
		registered = registered || err == nil
		if err != nil { // by a part of the span
			refused = err
			for _, r := range s.regions[at:end] {
				registered = s.registerRange(r) == nil || registered
			}
		}
		at = end
	}
	if !registered {
		return refused
	}
	return nil
}

func (s *Written) registerRange(r Range) error {
	arg := uffdRegister{start: uint64(r.Start), bytes: uint64(r.End - r.Start), mode: uffdModeWP}
	if errno := ioctl(s.uffd, uffdioRegister, unsafe.Pointer(&arg)); errno != 0 {
		return fmt.Errorf("UFFDIO_REGISTER of %d bytes at %#x: %w: private memory of no other "+
			"userfaultfd is needed", r.End-r.Start, r.Start, errno)
	}
	return nil
}

func (s *Written) Sample(rates []Rate) (resolution uintptr, err error) {
	if !s.holds() {
		return 0, s.lost()
	}
	return 0, s.window.measure(s.regions, rates, s.protect, s.count)
}

const scanPages = pageProtectable | pagePresent

// protect takes back the right to write to pages that were written to.
func (s *Written) protect() error {
	return s.scan(scanArg{flags: scanProtects, mask: scanPages | pageWritten,
		returned: pageWritten}, func(pageRegion) {})
}

// count adds to the tallies. It leaves written pages as they are: the program takes no fault for
// them until the next window.
func (s *Written) count(tallies []tally) error {
	return s.scan(scanArg{mask: scanPages, returned: pagePresent | pageWritten},
		func(p pageRegion) {
			found := tally{pages: float64((p.end - p.start) / pageBytes)}
			if p.categories&pageWritten != 0 {
				found.touched = found.pages
			}
			spread(s.regions, tallies, Range{uintptr(p.start), uintptr(p.end)}, found)
		})
}

// scan has the kernel look at the pages of all spans, and passes on what it returns.
func (s *Written) scan(arg scanArg, pass func(pageRegion)) error {
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := scanPagemap(fd, arg, s.vec, s.spans, pass); err != nil {
		return fmt.Errorf("%s: %w: Linux 6.7 is needed", pagemap, err)
	}
	return nil
}

// scanPagemap has the kernel look at the pages of ranges, and passes on what it returns.
func scanPagemap(fd int, arg scanArg, vec []pageRegion, ranges []Range,
	pass func(pageRegion)) error {
	arg.size = uint64(unsafe.Sizeof(arg))
	arg.vec, arg.vecLen = uint64(uintptr(unsafe.Pointer(&vec[0]))), uint64(len(vec))
	for _, r := range ranges {
		arg.start, arg.end = uint64(r.Start), uint64(r.End)
		for arg.start < arg.end {
			n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan,
				uintptr(unsafe.Pointer(&arg)))
			if errno == unix.EINTR {
				continue
			}
			if errno != 0 {
				return fmt.Errorf("PAGEMAP_SCAN: %w", errno)
			}
			for _, p := range vec[:n] {
				pass(p)
			}
			arg.start = arg.walkEnd
		}
	}
	return nil
}

func (s *Written) lost() error {
	return fmt.Errorf("userfaultfd: descriptor %d was closed", s.uffd)
}

// holds reports that the descriptor is still the source's, and not closed or another file by now.
func (s *Written) holds() bool {
	var name [64]byte
	n, err := unix.Readlink(fmt.Sprintf("/proc/self/fd/%d", s.uffd), name[:])
	return err == nil && strings.Contains(string(name[:n]), "[userfaultfd]")
}

func (s *Written) Stop() {
	if s.started && s.holds() {
		unix.Close(s.uffd)
	}
	s.started, s.window = false, window{}
}
