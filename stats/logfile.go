package stats

import (
	"syscall"

	"tieralloc/internal/raw"
)

// logFile is the file of the log and its descriptor, or 0 if the log goes to standard error.
var logFile struct {
	fd   uintptr
	file raw.File
}

// LogOpen opens the file of the log, a C string, at boot: the program may change its folder or
// user before the log begins.
func LogOpen(path uintptr) (errno uintptr) {
	const flags = syscall.O_WRONLY | syscall.O_APPEND | syscall.O_CREAT
	fd, errno := raw.OpenFile(path, flags)
	if errno != 0 {
		return errno
	}
	if high, errno := raw.DupHigh(fd); errno == 0 {
		raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		fd = high
	}
	logFile.fd, logFile.file = fd, raw.Identify(fd)
	return 0
}

// LogFile returns the file of the log and a descriptor for it, which the host may have closed, or
// used for another file. In a sandbox where files cannot be told apart it is the zero File.
func LogFile() (fd uintptr, file raw.File) {
	if logFile.fd != 0 {
		return logFile.fd, logFile.file
	}
	if high, errno := raw.DupHigh(2); errno == 0 {
		return high, raw.Stderr()
	}
	return 2, raw.Stderr()
}
