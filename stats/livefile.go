package stats

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// fileID identifies a file.
type fileID struct{ dev, ino uint64 }

// LiveOpen makes the live page of this process: a new file, mode 0600, whose absolute path is the n
// bytes at path. It returns an errno, 0 on success. It removes a page of this user that an earlier
// process left there. Anything else there stays (EEXIST), and a symbolic link is not followed.
// program is the program's name, programLen bytes. history says that a LiveHistory follows the
// page.
//
// All of the file's memory is allocated now. If it were allocated when the page is first written, a
// full file system would end the process with SIGBUS.
//
// Precondition: no page is on, and no other thread runs in this package.
func LiveOpen(path, n uintptr, pid, startUnixNs uint64, program,
	programLen uintptr, history bool) (errno uintptr) {
	if errno = setLivePath(path, n); errno != 0 {
		return errno
	}
	size := LiveSize
	if history {
		size += LiveHistorySize
	}
	if errno = raw.SizeAllowed(size); errno != 0 {
		return errno
	}
	dir, name, errno := openFolder()
	if errno != 0 {
		return errno
	}
	removeStale(dir, name)
	page, errno := newFile(dir, name, size)
	raw.Sys(syscall.SYS_CLOSE, dir, 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	h := &(*LivePage)(raw.Ptr(page)).Head
	h.fill(size, pid, startUnixNs, program, programLen)
	atomic.StoreUint64(&h.Magic, LiveMagic)
	live.page, live.size = page, size
	live.pid = raw.Pid()
	live.claim = 0
	atomic.StoreUint64(&live.next, 1) // at once
	return 0
}

// setLivePath keeps the path as a C string, to remove the file by.
func setLivePath(path, n uintptr) (errno uintptr) {
	if n == 0 {
		return uintptr(syscall.ENOENT)
	}
	if n > config.PathMax {
		return uintptr(syscall.ENAMETOOLONG)
	}
	for i := uintptr(0); i < n; i++ {
		c := raw.LoadByte(path + i)
		if c == 0 {
			return uintptr(syscall.EINVAL)
		}
		livePath[i&(raw.Page-1)] = c
	}
	livePath[n&(raw.Page-1)] = 0
	return 0
}

// openFolder opens the folder of the page, and returns it with the page's name there as a C string.
// Later calls use the name in that folder and not the path, in which somebody may meanwhile replace
// a folder by a symbolic link.
func openFolder() (dir, name, errno uintptr) {
	path := uintptr(unsafe.Pointer(&livePath))
	name, _ = raw.BaseName(path)
	dir, errno = raw.OpenFolder(path, name-path)
	return dir, name, errno
}

// newFile makes the page's file and maps it.
func newFile(dir, name, size uintptr) (page, errno uintptr) {
	const flags = syscall.O_RDWR | syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW |
		syscall.O_CLOEXEC
	fd, errno := raw.Sys(syscall.SYS_OPENAT, dir, name, flags, 0600, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	page, errno = mapFile(fd, size)
	if errno == 0 {
		live.file, _ = identify(fd)
	} else {
		raw.Sys(syscall.SYS_UNLINKAT, dir, name, 0, 0, 0, 0)
	}
	raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	return page, errno
}

// removeStale removes the file with the name if it is a live page of this user, or one that was
// never finished. It opens only a regular file of theirs. newFile fails if the file is still there.
func removeStale(dir, name uintptr) {
	var st syscall.Stat_t
	_, errno := raw.Sys(syscall.SYS_NEWFSTATAT, dir, name,
		uintptr(unsafe.Pointer(&st)), raw.AtSymlinkNoFollow, 0, 0)
	user, _ := raw.Sys(syscall.SYS_GETEUID, 0, 0, 0, 0, 0, 0)
	if errno != 0 || st.Mode&syscall.S_IFMT != syscall.S_IFREG || uintptr(st.Uid) != user {
		return
	}
	const flags = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK |
		syscall.O_NOCTTY | syscall.O_CLOEXEC
	fd, errno := raw.Sys(syscall.SYS_OPENAT, dir, name, flags, 0, 0, 0)
	if errno != 0 {
		return
	}
	var magic uint64
	id, _ := identify(fd)
	raw.Sys(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&magic)), 8, 0, 0, 0)
	raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	unfinished := magic == 0 && (st.Size == 0 || st.Size == int64(LiveSize) ||
		st.Size == int64(LiveSize+LiveHistorySize))
	if id == (fileID{st.Dev, st.Ino}) && (magic == LiveMagic || unfinished) {
		raw.Sys(syscall.SYS_UNLINKAT, dir, name, 0, 0, 0, 0)
	}
}

// mapFile gives the new file its size, with zeros, and maps it.
func mapFile(fd, size uintptr) (page, errno uintptr) {
	zeros := raw.Map(size)
	if zeros == 0 {
		return 0, uintptr(syscall.ENOMEM)
	}
	errno = raw.WriteAll(fd, zeros, size)
	raw.Unmap(zeros, size)
	if errno != 0 {
		return 0, errno
	}
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	return raw.Sys(syscall.SYS_MMAP, 0, size, prot, syscall.MAP_SHARED, fd, 0)
}

// mapOver replaces the mapping of n bytes at addr by private memory, filled with zeros.
func mapOver(addr, n uintptr) bool {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	const flags = syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS | syscall.MAP_FIXED
	_, errno := raw.Sys(syscall.SYS_MMAP, addr, n, prot, flags, ^uintptr(0), 0)
	return errno == 0
}

func identify(fd uintptr) (id fileID, errno uintptr) {
	var st syscall.Stat_t
	_, errno = raw.Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	return fileID{st.Dev, st.Ino}, errno
}

// unlinkOurs removes the page's file, unless another file has its name by now: that of a process
// with the same number in another PID namespace, for example.
func unlinkOurs() {
	dir, name, errno := openFolder()
	if errno != 0 {
		return
	}
	var st syscall.Stat_t
	_, errno = raw.Sys(syscall.SYS_NEWFSTATAT, dir, name,
		uintptr(unsafe.Pointer(&st)), raw.AtSymlinkNoFollow, 0, 0)
	if errno == 0 && live.file == (fileID{st.Dev, st.Ino}) {
		raw.Sys(syscall.SYS_UNLINKAT, dir, name, 0, 0, 0, 0)
	}
	raw.Sys(syscall.SYS_CLOSE, dir, 0, 0, 0, 0, 0)
}
