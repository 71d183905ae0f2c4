package raw

import (
	"syscall"
	"unsafe"
)

const (
	oPath      = 0x200000 // O_PATH opens a file only to name it; package syscall lacks it
	openFolder = oPath | syscall.O_DIRECTORY | syscall.O_CLOEXEC
	linksMax   = 40 // the kernel's limit for one path
	procMagic  = 0x9fa0
)

// A folderWalk goes through a path folder by folder.
type folderWalk struct {
	dir   uintptr // descriptor of the folder that was reached
	rest  uintptr // the parts to come, a C string that ends at the end of a page
	start uintptr // where that page begins
	link  uintptr // a page for the target of a link
	links int     // links that were followed
}

// OpenFolder opens the folder that the first n bytes at path name, to be used as the folder of
// other calls. No bytes name the working directory.
//
// The kernel would follow any symbolic link in the path. A user could then lead a process of root
// that writes into a folder of theirs to any other folder. OpenFolder follows a link only if one
// who could mislead the process anyway made it: the process's own user, root, or the owner of the
// root folder, which in a user namespace stands for a root that has no number there. Without root's
// number, the process also follows links of the folder's owner, as the kernel does in /tmp. For
// other links the error is ELOOP.
func OpenFolder(path, n uintptr) (dir, errno uintptr) {
	if n >= Page {
		return 0, uintptr(syscall.ENAMETOOLONG)
	}
	room := Map(2 * Page)
	if room == 0 {
		return 0, uintptr(syscall.ENOMEM)
	}
	w := folderWalk{rest: room + Page - 1, start: room, link: room + Page}
	w.prepend(path, n)
	if dir, errno = openAt(AtFdCwd, w.root(), openFolder); errno == 0 {
		w.dir = dir
		for errno == 0 && w.skipSlashes() {
			errno = w.step()
		}
		dir = w.dir
		if errno != 0 {
			closeFile(dir)
		}
	}
	Unmap(room, 2*Page)
	return dir, errno
}

// OpenFile opens the file at path, a C string, with the flags. If flags say so, it makes the file,
// with mode 0600. It follows no symbolic link at path; OpenFolder says which in its folders.
func OpenFile(path, flags uintptr) (fd, errno uintptr) {
	name, _ := BaseName(path)
	dir, errno := OpenFolder(path, name-path)
	if errno != 0 {
		return 0, errno
	}
	const always = syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	fd, errno = Sys(syscall.SYS_OPENAT, dir, name, flags|always, 0o600, 0, 0)
	closeFile(dir)
	return fd, errno
}

func openAt(dir, name, flags uintptr) (fd, errno uintptr) {
	return Sys(syscall.SYS_OPENAT, dir, name, flags, 0, 0, 0)
}

func closeFile(fd uintptr) { Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0) }

// root returns the name of the folder where what is left of the path begins.
func (w *folderWalk) root() uintptr {
	if LoadByte(w.rest) == '/' {
		return Bytes("/\x00")
	}
	return Bytes(".\x00")
}

// prepend puts n bytes before what is left of the path.
// Precondition: the page has room for them.
func (w *folderWalk) prepend(text, n uintptr) {
	w.rest -= n
	for i := uintptr(0); i < n; i++ {
		StoreByte(w.rest+i, LoadByte(text+i))
	}
}

// skipSlashes goes to the next part of the path, and reports whether there is one.
func (w *folderWalk) skipSlashes() bool {
	for LoadByte(w.rest) == '/' {
		w.rest++
	}
	return LoadByte(w.rest) != 0
}

// step enters the next part of the path. O_DIRECTORY has the kernel mount what is mounted on use.
func (w *folderWalk) step() (errno uintptr) {
	part := w.rest
	for LoadByte(w.rest) != 0 && LoadByte(w.rest) != '/' {
		w.rest++
	}
	if LoadByte(w.rest) == '/' {
		StoreByte(w.rest, 0)
		w.rest++
	}
	errno = w.enter(w.dir, part, openFolder|syscall.O_NOFOLLOW)
	if errno != uintptr(syscall.ENOTDIR) {
		return errno
	}
	fd, errno := openAt(w.dir, part, oPath|syscall.O_NOFOLLOW|syscall.O_CLOEXEC)
	if errno != 0 {
		return errno
	}
	errno = w.follow(fd, part)
	closeFile(fd)
	return errno
}

// enter goes to the folder called name in dir.
func (w *folderWalk) enter(dir, name, flags uintptr) (errno uintptr) {
	fd, errno := openAt(dir, name, flags)
	if errno == 0 {
		closeFile(w.dir)
		w.dir = fd
	}
	return errno
}

// follow puts the target of the link fd, which is called part in the folder, before the rest of
// the path. The text of a link in /proc is not always what it leads to, so the kernel follows
// those: nobody can replace them.
func (w *folderWalk) follow(fd, part uintptr) (errno uintptr) {
	var st syscall.Stat_t
	_, errno = Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFLNK {
		return uintptr(syscall.ENOTDIR)
	}
	w.links++
	if w.links > linksMax || !w.trusts(st.Uid) {
		return uintptr(syscall.ELOOP)
	}
	if isProc(fd) {
		return w.enter(w.dir, part, openFolder)
	}
	n, errno := Sys(syscall.SYS_READLINKAT, fd, Bytes("\x00"), w.link, Page, 0, 0)
	if errno != 0 {
		return errno
	}
	if n+1 > w.rest-w.start {
		return uintptr(syscall.ENAMETOOLONG)
	}
	w.prepend(Bytes("/"), 1)
	w.prepend(w.link, n)
	if LoadByte(w.rest) != '/' {
		return 0
	}
	return w.enter(AtFdCwd, w.root(), openFolder)
}

// trusts reports whether a link of user owner in the folder is followed.
func (w *folderWalk) trusts(owner uint32) bool {
	user, _ := Sys(syscall.SYS_GETEUID, 0, 0, 0, 0, 0, 0)
	return owner == 0 || owner == uint32(user) || owner == ownerOf(AtFdCwd, Bytes("/\x00"), 0) ||
		user != 0 && owner == ownerOf(w.dir, Bytes("\x00"), atEmptyPath)
}

// ownerOf returns the owner of a file, or root if it cannot be examined.
func ownerOf(dir, name, flags uintptr) uint32 {
	var st syscall.Stat_t
	Sys(syscall.SYS_NEWFSTATAT, dir, name, uintptr(unsafe.Pointer(&st)), flags, 0, 0)
	return st.Uid
}

// isProc reports whether the file is one of /proc's.
func isProc(fd uintptr) bool {
	var st syscall.Statfs_t
	_, errno := Sys(syscall.SYS_FSTATFS, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	return errno == 0 && st.Type == procMagic
}
