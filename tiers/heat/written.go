package heat

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const pagemap = "/proc/self/pagemap"

// Written counts the pages that were written to: PAGEMAP_SCAN (Linux 6.7) with the asynchronous
// write protection of userfaultfd, by page. The first write to a page after a sample costs the
// program a fault. It needs no right. Memory that is mapped after Start is not seen.
//
// The descriptor stays open, because the protection ends with it.
type Written struct {
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
	fd, err := openUserfault()
	if err != nil {
		return err
	}
	s.regions, s.spans, s.uffd = regions, spans(regions), fd
	s.vec = make([]pageRegion, 512)
	for _, r := range s.spans {
		arg := uffdRegister{start: uint64(r.Start), bytes: uint64(r.End - r.Start),
			mode: uffdModeWP}
		if errno := ioctl(fd, uffdioRegister, unsafe.Pointer(&arg)); errno != 0 {
			return fmt.Errorf("UFFDIO_REGISTER of %d bytes at %#x: %w: private memory of no other "+
				"userfaultfd is needed", r.End-r.Start, r.Start, errno)
		}
	}
	_, err = s.Sample(make([]uint32, len(regions)))
	return err
}

func (s *Written) Sample(counts []uint32) (uintptr, error) {
	clear(counts)
	if !s.holds() {
		return 0, fmt.Errorf("userfaultfd: descriptor %d was closed", s.uffd)
	}
	fd, err := open(pagemap, unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for _, r := range s.spans {
		if err := s.scan(fd, r, counts); err != nil {
			return 0, err
		}
	}
	return RegionBytes, nil
}

// scan counts and protects the written pages of a span.
func (s *Written) scan(fd int, r Range, counts []uint32) error {
	const want = pageProtectable | pageWritten | pagePresent
	for r.Start < r.End {
		arg := scanArg{size: uint64(unsafe.Sizeof(scanArg{})), flags: scanProtects,
			start: uint64(r.Start), end: uint64(r.End),
			vec: uint64(uintptr(unsafe.Pointer(&s.vec[0]))), vecLen: uint64(len(s.vec)),
			mask: want, returned: want}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan,
			uintptr(unsafe.Pointer(&arg)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("%s: PAGEMAP_SCAN: %w: Linux 6.7 is needed", pagemap, errno)
		}
		for _, p := range s.vec[:n] {
			spread(s.regions, counts, Range{uintptr(p.start), uintptr(p.end)},
				(p.end-p.start)/pageBytes)
		}
		r.Start = uintptr(arg.walkEnd)
	}
	return nil
}

// holds reports that the descriptor is still the source's, and not closed or another file by now.
func (s *Written) holds() bool {
	var name [64]byte
	n, err := unix.Readlink(fmt.Sprintf("/proc/self/fd/%d", s.uffd), name[:])
	return err == nil && strings.Contains(string(name[:n]), "[userfaultfd]")
}

func (s *Written) Stop() {
	if s.regions != nil && s.holds() {
		unix.Close(s.uffd)
	}
	s.regions = nil
}
