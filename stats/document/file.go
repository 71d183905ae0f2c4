package document

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

const (
	pathRoom  = raw.Page // bytes for each of the two names, their zeros included
	nameMax   = 255      // the kernel's limit for the last part of a path
	suffixMax = 5 + 20 + 1 + 16 + 1 + 16
	tries     = 8 // temporary names tried before giving up
)

// These constants compile only if both names fit their pages.
const (
	_ uint = pathRoom - (config.PathMax + suffixMax + 1)
	_ uint = nameMax - suffixMax
)

// written counts temporary names, so that two threads never use the same one.
var written uint64

// WriteFile writes the report, as JSON does, to the file whose name is the n bytes at path,
// config.PathMax at most, and returns an errno, 0 on success.
func WriteFile(path, n uintptr, r *stats.Report, sites *stats.Sites) (errno uintptr) {
	need := JSON(0, 0, r, sites)
	size := raw.RoundUp(need+1, raw.Page)
	text := raw.Map(size)
	if text == 0 {
		return uintptr(syscall.ENOMEM)
	}
	JSON(text, need+1, r, sites)
	errno = Write(path, n, text, need)
	raw.Unmap(text, size)
	return errno
}

// Write makes the file whose name is the n bytes at path hold the bytes at text, and returns an
// errno.
//
// A reader sees the old file or the new one, whole: the text goes to a temporary file (mode 0600)
// in the same directory, which is then renamed. A symbolic link at path is therefore replaced and
// never followed; raw.OpenFolder says which links in its folders are. Anything there that is
// neither a link nor a regular file stays (EISDIR for a directory, else EINVAL), because a rename
// would replace even /dev/null. The check is made before the rename; whoever can change the
// directory between the two can put anything at path anyway.
func Write(path, n, text, bytes uintptr) (errno uintptr) {
	if n == 0 {
		return uintptr(syscall.ENOENT)
	}
	if n > config.PathMax {
		return uintptr(syscall.ENAMETOOLONG)
	}
	buf := raw.Map(2 * pathRoom)
	if buf == 0 {
		return uintptr(syscall.ENOMEM)
	}
	errno = writeNamed(buf, path, n, text, bytes)
	raw.Unmap(buf, 2*pathRoom)
	return errno
}

// writeNamed is Write with room at buf for two names.
func writeNamed(buf, path, n, text, bytes uintptr) (errno uintptr) {
	for i := uintptr(0); i < n; i++ {
		c := raw.LoadByte(path + i)
		if c == 0 {
			return uintptr(syscall.EINVAL)
		}
		raw.StoreByte(buf+i, c)
	}
	name, _ := raw.BaseName(buf)
	dir, errno := raw.OpenFolder(buf, name-buf)
	if errno == 0 {
		errno = replaceFile(dir, name, buf+pathRoom, text, bytes)
		raw.Sys(syscall.SYS_CLOSE, dir, 0, 0, 0, 0, 0)
	}
	return errno
}

// replaceFile makes the file called name, a C string, in the folder dir hold n bytes at text. temp
// is a buffer of pathRoom bytes for the temporary name.
func replaceFile(dir, name, temp, text, n uintptr) (errno uintptr) {
	if errno = Replaceable(dir, name); errno != 0 {
		return errno
	}
	if errno = raw.SizeAllowed(n); errno != 0 {
		return errno
	}
	fd, errno := createTemp(dir, name, temp)
	if errno != 0 {
		return errno
	}
	errno = raw.WriteAll(fd, text, n)
	_, e := raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	// An interrupted close has closed the descriptor. Other errors report an earlier write that
	// failed.
	if errno == 0 && e != uintptr(syscall.EINTR) {
		errno = e
	}
	if errno == 0 {
		_, errno = raw.Sys(syscall.SYS_RENAMEAT, dir, temp, dir, name, 0, 0)
	}
	if errno != 0 {
		raw.Sys(syscall.SYS_UNLINKAT, dir, temp, 0, 0, 0, 0)
	}
	return errno
}

// Replaceable returns 0 when a file may be renamed over the name in the folder: there is nothing, a
// regular file or a symbolic link. Without a name the path is that of the folder.
func Replaceable(dir, name uintptr) (errno uintptr) {
	if raw.LoadByte(name) == 0 {
		return uintptr(syscall.EISDIR)
	}
	var st syscall.Stat_t
	_, errno = raw.Sys(syscall.SYS_NEWFSTATAT, dir, name,
		uintptr(unsafe.Pointer(&st)), raw.AtSymlinkNoFollow, 0, 0)
	if errno == uintptr(syscall.ENOENT) {
		return 0
	}
	if errno != 0 {
		return errno
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG, syscall.S_IFLNK:
		return 0
	case syscall.S_IFDIR:
		return uintptr(syscall.EISDIR)
	}
	return uintptr(syscall.EINVAL)
}

// createTemp makes a new file in the folder and leaves its name in temp. The descriptor is above 2:
// in a program that closed its standard streams, other threads may still write to those numbers,
// and must not write to the report.
func createTemp(dir, name, temp uintptr) (fd, errno uintptr) {
	const flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW |
		syscall.O_CLOEXEC
	for i := 0; i < tries; i++ {
		tempName(name, temp)
		fd, errno = raw.Sys(syscall.SYS_OPENAT, dir, temp, flags, 0600, 0, 0)
		if errno != uintptr(syscall.EEXIST) && errno != uintptr(syscall.EINTR) {
			break
		}
	}
	if errno != 0 || fd > 2 {
		return fd, errno
	}
	low := fd
	fd, errno = raw.Sys(syscall.SYS_FCNTL, low, syscall.F_DUPFD_CLOEXEC, 3, 0, 0, 0)
	raw.Sys(syscall.SYS_CLOSE, low, 0, 0, 0, 0, 0)
	if errno != 0 {
		raw.Sys(syscall.SYS_UNLINKAT, dir, temp, 0, 0, 0, 0)
	}
	return fd, errno
}

// tempName writes a new name as a C string at temp: the name, cut to leave room, and
// ".tmp.PID.COUNT.TIME", the last two in hexadecimal. The time distinguishes processes of two PID
// namespaces that share a directory and have the same pid.
func tempName(name, temp uintptr) {
	var w writer
	w.begin(temp, pathRoom)
	for i := uintptr(0); i < nameMax-suffixMax && raw.LoadByte(name+i) != 0; i++ {
		w.put(raw.LoadByte(name + i))
	}
	w.text(".tmp.")
	w.dec(uint64(raw.Pid()))
	w.put('.')
	w.hex(atomic.AddUint64(&written, 1))
	w.put('.')
	w.hex(raw.Clock(raw.ClockReal))
	w.put(0)
}

// hex writes v in hexadecimal without leading zeros.
func (w *writer) hex(v uint64) {
	shift := uint(60)
	for shift > 0 && v>>(shift&63) == 0 {
		shift -= 4
	}
	for ; shift > 0; shift -= 4 {
		w.put(hexDigit(byte(v >> (shift & 63))))
	}
	w.put(hexDigit(byte(v)))
}
