package raw

import (
	"syscall"
	"unsafe"
)

// File identifies a file.
type File struct{ dev, ino uint64 }

// Identify returns the file that fd refers to, or the zero File.
func Identify(fd uintptr) File {
	var st syscall.Stat_t
	Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	return File{st.Dev, st.Ino}
}

// stderr is the file of standard error when the process began.
var stderr File

// KeepStderr notes the file of standard error, for Tell. It is called once, at boot.
func KeepStderr() { stderr = Identify(2) }

// Stderr is the file of standard error when the process began.
func Stderr() File { return stderr }

// DupHigh duplicates fd to a number above those that hosts use.
func DupHigh(fd uintptr) (high, errno uintptr) {
	const lowest = 200
	return Sys(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, lowest, 0, 0, 0)
}

// Tell writes the line to standard error, unless the program has replaced the file by another one,
// which may be its data.
func (l *Line) Tell() {
	if Identify(2) == stderr {
		l.Emit(2)
	}
}

// WritingRefused reports whether errno, the result of opening a file for writing, is what every
// such call of this process returns, even for /dev/null. This is so in a sandbox, such as one made
// by a filter of system calls. A complaint would then be useless in each of many processes.
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

// ReadFile reads up to n bytes of the file at the C string path, and returns how many it read.
func ReadFile(path, dst, n uintptr) (got uintptr) {
	fd, errno := Sys(syscall.SYS_OPENAT, AtFdCwd, path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	got, errno = Sys(syscall.SYS_READ, fd, dst, n, 0, 0, 0)
	Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	if errno != 0 || got > n {
		return 0
	}
	return got
}

// SizeAllowed returns EFBIG if a file of n bytes would exceed the process's limit. The write would
// end the host by SIGXFSZ.
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
	const restarts = 1000 // limit of interrupted writes in a row
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
