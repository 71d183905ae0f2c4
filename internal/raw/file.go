package raw

import (
	"syscall"
	"unsafe"
)

// File tells one open file from another.
type File struct{ dev, ino uint64 }

// Identify is the file that fd is open on, or the zero File.
func Identify(fd uintptr) File {
	var st syscall.Stat_t
	Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	return File{st.Dev, st.Ino}
}

// stderr is what standard error was when the process began.
var stderr File

// KeepStderr notes what standard error is, for Tell. It is called once, at boot.
func KeepStderr() { stderr = Identify(2) }

// Tell writes the line to standard error, unless the program has put another file in its place:
// that might be its data.
func (l *Line) Tell() {
	if Identify(2) == stderr {
		l.Emit(2)
	}
}

// WritingRefused reports whether errno, which a call for a file to write has got, is what every
// such call of this process gets: even /dev/null is refused. So it is in a sandbox, made by a
// filter of system calls, say. Its processes are many, and none of them can do anything about it.
func WritingRefused(errno uintptr) bool {
	if errno != uintptr(syscall.ENOSYS) && errno != uintptr(syscall.EPERM) &&
		errno != uintptr(syscall.EACCES) {
		return false
	}
	const flags = syscall.O_WRONLY | syscall.O_CLOEXEC
	fd, e := Sys(syscall.SYS_OPENAT, AtFdCwd, Bytes("/dev/null\x00"), flags, 0, 0, 0)
	if e == 0 {
		Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	return e == errno
}

// SizeAllowed is EFBIG when a file of n bytes would pass the process's limit: the
// write would then kill the host with SIGXFSZ.
func SizeAllowed(n uintptr) (errno uintptr) {
	const rlimitFsize = 1
	var limit [2]uint64 // struct rlimit64: soft, hard
	_, errno = Sys(syscall.SYS_PRLIMIT64, 0, rlimitFsize, 0, uintptr(unsafe.Pointer(&limit)), 0, 0)
	if errno == 0 && limit[0] < uint64(n) {
		return uintptr(syscall.EFBIG)
	}
	return 0
}

// WriteAll writes n bytes at text to fd.
func WriteAll(fd, text, n uintptr) (errno uintptr) {
	const restarts = 1000 // interrupted writes in a row before giving up
	for interrupted := 0; n > 0; {
		done, errno := Sys(syscall.SYS_WRITE, fd, text, n, 0, 0, 0)
		if errno == uintptr(syscall.EINTR) && interrupted < restarts {
			interrupted++
			continue
		}
		if errno != 0 {
			return errno
		}
		if done == 0 || done > n {
			return uintptr(syscall.EIO)
		}
		interrupted = 0
		text += done
		n -= done
	}
	return 0
}
