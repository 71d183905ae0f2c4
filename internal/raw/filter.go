package raw

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A filter of system calls may be in force before the library is loaded: systemd sets one
// (SystemCallFilter=) and then starts the service. Its lists of calls lack mincore and, often,
// move_pages, and by default a call beyond the list ends the process. The calls that read a file
// are in all of them, because a program loads its libraries so.

// What is known of a filter.
const (
	filterUnknown = iota
	filterAbsent
	filterPresent
)

// startFilter is what the first look found. A forked child inherits the filter and the answer.
var startFilter uint32

// FilteredFromStart reports whether a filter of system calls was in force at the first call of this
// function, or whether that cannot be known.
func FilteredFromStart() bool {
	found := atomic.LoadUint32(&startFilter)
	if found == filterUnknown {
		found = lookForFilter(Bytes("/proc/self/status\x00"))
		atomic.StoreUint32(&startFilter, found)
	}
	return found != filterAbsent
}

// lookForFilter reads the file at the C string path, whose line "Seccomp:" is 0 without a filter. A
// kernel that has no filters has no such line. It has no fixed place: the process's groups are
// before it.
func lookForFilter(path uintptr) uint32 {
	const (
		label  = "\nSeccomp:\t      " // filled up to a power of two, for the index
		length = uint(len("\nSeccomp:\t"))
	)
	fd, errno := Sys(syscall.SYS_OPENAT, AtFdCwd, path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return filterPresent
	}
	found, matched, some := uint32(filterPresent), uint(0), false
	var text [256]byte
	for matched <= length {
		n, errno := Sys(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&text)), uintptr(len(text)), 0,
			0, 0)
		if errno != 0 || n == 0 || n > uintptr(len(text)) {
			if errno == 0 && n == 0 && some && matched < length {
				found = filterAbsent
			}
			break
		}
		some = true
		for i := uintptr(0); i < n && matched <= length; i++ {
			c := text[i&255]
			switch {
			case matched == length:
				if c == '0' {
					found = filterAbsent
				}
				matched++
			case c == label[matched&15]:
				matched++
			case c == '\n':
				matched = 1
			default:
				matched = 0
			}
		}
	}
	closeFile(fd)
	return found
}

// Resident says of each of the n memory pages from addr on, which lie in memory of this process,
// whether it is resident: in the lowest bit of the byte for it at dst. Under a filter from the
// start it reads a file in place of mincore.
func Resident(addr, n uintptr, dst *byte) (errno uintptr) {
	const sysMincore = 27
	if !FilteredFromStart() {
		_, errno = Sys(sysMincore, addr, n*Page, uintptr(unsafe.Pointer(dst)), 0, 0, 0)
		return errno
	}
	fd, errno := OpenPagemap()
	for i := uintptr(0); errno == 0 && i < n; i += pagemapWords {
		var words [pagemapWords]uint64
		count := min(n-i, pagemapWords)
		errno = ReadPagemap(fd, addr+i*Page, count, &words[0])
		for k := uintptr(0); errno == 0 && k < count; k++ {
			*(*byte)(unsafe.Add(unsafe.Pointer(dst), i+k)) = byte(words[k&(pagemapWords-1)] >> 63)
		}
	}
	ClosePagemap(fd)
	return errno
}

// pagemapWords is how many pages one read tells of: what it needs lies on the caller's stack.
const pagemapWords = 64

// OpenPagemap opens the file that has a word for each page of this process.
func OpenPagemap() (fd, errno uintptr) {
	fd, errno = Sys(syscall.SYS_OPENAT, AtFdCwd, Bytes("/proc/self/pagemap\x00"),
		syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return ^uintptr(0), errno
	}
	return fd, 0
}

// ReadPagemap reads the words of the n pages from addr on to dst. Bit 63 says that a page is
// resident.
func ReadPagemap(fd, addr, n uintptr, dst *uint64) (errno uintptr) {
	got, errno := Sys(syscall.SYS_PREAD64, fd, uintptr(unsafe.Pointer(dst)), n*8, addr/Page*8, 0, 0)
	if errno == 0 && got != n*8 {
		return uintptr(syscall.EIO)
	}
	return errno
}

// ClosePagemap closes what OpenPagemap returned, if it opened the file.
func ClosePagemap(fd uintptr) {
	if fd != ^uintptr(0) {
		closeFile(fd)
	}
}
