package process

import (
	"syscall"

	"tieralloc/internal/raw"
)

// complain prints that the file at path, which the variable asks for, cannot be written. It returns
// false if the process is in a sandbox where no file can be, and then prints nothing.
func complain(variable string, path, errno uintptr) bool {
	if raw.WritingRefused(errno) {
		return false
	}
	var l raw.Line
	l.Text("tieralloc: cannot write ")
	l.Text(variable)
	l.Text(" ")
	l.CStr(path)
	addError(&l, errno, errorName(errno))
	l.Tell()
	return true
}

// addError appends an errno and its text, which may be empty. It is not inlined, because most
// processes have no errors and what calls it lies with what they run.
//
//go:noinline
func addError(l *raw.Line, errno uintptr, text string) {
	l.Text(": error ")
	l.Dec(uint64(errno))
	if len(text) != 0 {
		l.Text(" (")
		l.Text(text)
		l.Text(")")
	}
}

// errorName returns the text of an errno, for common errors of paths.
func errorName(errno uintptr) string {
	switch syscall.Errno(errno) {
	case syscall.ENOSYS:
		return "refused by a filter of system calls"
	case syscall.ENOENT:
		return "no such file or directory"
	case syscall.EACCES, syscall.EPERM:
		return "permission denied"
	case syscall.EEXIST:
		return "another file is there"
	case syscall.EISDIR:
		return "is a directory"
	case syscall.ENOTDIR:
		return "not a directory"
	case syscall.ELOOP:
		return "a symbolic link of another user, or too many links"
	case syscall.EROFS:
		return "read-only file system"
	case syscall.ENOSPC:
		return "no space left on device"
	case syscall.EINVAL:
		return "neither a regular file nor a new one"
	case syscall.ENAMETOOLONG:
		return "name too long"
	case syscall.ENOMEM:
		return "no memory"
	case syscall.EAGAIN:
		return "no memory, or in a signal handler inside the heap"
	}
	return ""
}
