package raw

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Page is the granularity of protection and residency, in bytes.
const (
	Page      = 1 << PageShift
	PageShift = 12
)

// Constants of the kernel's interface that package syscall does not have.
const (
	ClockMono         = 1
	ClockReal         = 0
	ClockThread       = 3 // processor time of the thread
	MadvDontNeed      = 4
	madvPopulateWrite = 23
	AtFdCwd           = ^uintptr(99) // AT_FDCWD is -100
	FutexWait         = 128          // FUTEX_WAIT_PRIVATE
	AtSymlinkNoFollow = 0x100
	atEmptyPath       = 0x1000
	futexWakePrivate  = 129
)

// Sys makes a system call without telling the Go scheduler. errno is 0 on success.
func Sys(nr, a, b, c, d, e, f uintptr) (r uintptr, errno uintptr) {
	r1, _, en := syscall.RawSyscall6(nr, a, b, c, d, e, f)
	return r1, uintptr(en)
}

// Map maps n bytes of private zero-filled memory. It returns 0 when the kernel
// refuses.
func Map(n uintptr) uintptr { return mapAt(0, n, syscall.PROT_READ|syscall.PROT_WRITE, 0) }

// MapBarred maps n bytes that can be neither read nor written. It returns 0 when the kernel
// refuses.
func MapBarred(n uintptr) uintptr { return mapAt(0, n, syscall.PROT_NONE, 0) }

// Allow lets n bytes at addr be read and written, with the contents that they have. It reports
// false when the kernel refuses. It is for what follows another refusal of the kernel: a filter of
// system calls may not know mprotect.
func Allow(addr, n uintptr) bool {
	_, errno := Sys(syscall.SYS_MPROTECT, addr, n, syscall.PROT_READ|syscall.PROT_WRITE, 0, 0, 0)
	return errno == 0
}

// Bar takes the access to n bytes at addr away and drops their contents. It maps them afresh and
// does not call mprotect, which a filter of system calls may not know. It reports false when the
// kernel refuses; the bytes may then be as before.
func Bar(addr, n uintptr) bool { return mapAt(addr, n, syscall.PROT_NONE, syscall.MAP_FIXED) != 0 }

// Open maps n zero-filled bytes at addr in place of what was reserved there. It reports false when
// the kernel refuses.
func Open(addr, n uintptr) bool {
	return mapAt(addr, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_FIXED) != 0
}

func mapAt(addr, n, prot, flags uintptr) uintptr {
	flags |= syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS
	r, errno := Sys(syscall.SYS_MMAP, addr, n, prot, flags, ^uintptr(0), 0)
	if errno != 0 {
		return 0
	}
	return r
}

// Unmap unmaps n bytes at addr. It reports false if the kernel refuses, which it may: splitting a
// mapping can exceed the limit on their number.
func Unmap(addr, n uintptr) bool {
	_, errno := Sys(syscall.SYS_MUNMAP, addr, n, 0, 0, 0, 0)
	return errno == 0
}

// Discard drops the contents of n bytes at addr, which then read as zero. It reports false if the
// kernel refuses; the contents are then kept.
func Discard(addr, n uintptr) bool {
	_, errno := Sys(syscall.SYS_MADVISE, addr, n, MadvDontNeed, 0, 0, 0)
	return errno == 0
}

// Populate faults n bytes at addr in, to be written. Kernels before 5.14 refuse with EINVAL.
func Populate(addr, n uintptr) (errno uintptr) {
	_, errno = Sys(syscall.SYS_MADVISE, addr, n, madvPopulateWrite, 0, 0, 0)
	return errno
}

// FaultIn faults n bytes at addr in to be written, where addr is a multiple of 8. What is zero and
// read first would be faulted in twice: as the kernel's page of zeros, and as one that is written.
func FaultIn(addr, n uintptr) {
	for a := addr; a < addr+n; a = RoundUp(a+1, Page) {
		atomic.AddUintptr((*uintptr)(Ptr(a)), 0)
	}
}

// Clock reads a clock in nanoseconds.
func Clock(id uintptr) uint64 {
	var ts [2]int64
	Sys(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0)
	return uint64(ts[0])*1e9 + uint64(ts[1])
}

// SleepUntil sleeps until the monotonic clock reaches deadline, in nanoseconds, even if signals
// arrive. It returns by how many nanoseconds it woke too late.
func SleepUntil(deadline uint64) (late uint64) {
	const (
		absolute = 1 // TIMER_ABSTIME
		second   = 1_000_000_000
	)
	ts := [2]uint64{deadline / second, deadline % second}
	errno := uintptr(syscall.EINTR)
	for errno == uintptr(syscall.EINTR) {
		_, errno = Sys(syscall.SYS_CLOCK_NANOSLEEP, ClockMono, absolute,
			uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	}
	if now := Clock(ClockMono); now > deadline {
		return now - deadline
	}
	return 0
}

// Pid asks the kernel, not a cache, for the process's id.
func Pid() uintptr {
	r, _ := Sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	return r
}
