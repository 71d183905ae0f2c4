package group

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// member is 1 in a process that is to be in a group. Every process reads it, and most do not touch
// the page of self.
var member uint32

// self is this process's membership.
var self struct {
	page *Page // nil: never a member
	slot uintptr
	path uintptr // of the file, a C string
	file raw.File
	want Wish
	// true: a forked child without a slot of its own, which reserves in its parent's
	stays bool
	own   [Accounts]uint64 // bytes that it has reserved there
}

// Wish is what a process joins with.
type Wish struct {
	Caps    [FirstDevice]Cap // bytes, by account; Uncapped: none
	CUDA    DeviceCaps
	Floor   uint64  // bytes of each capped account that are kept for this process
	Program uintptr // its file name, a C string, or 0
	// the address of a uint32 that is not 0 once the program filters system calls, or 0
	Filtered uintptr
}

// filtered reports whether the program may have forbidden the calls that joining and reaping make.
func filtered() bool {
	return self.want.Filtered != 0 &&
		atomic.LoadUint32((*uint32)(raw.Ptr(self.want.Filtered))) != 0
}

// Size is the bytes of a group's file.
const Size = unsafe.Sizeof(Page{})

// joinByte is the byte of the file that a joining process locks. Those before it are the slots'.
const joinByte = Members

// On reports whether this process is to be in a group.
func On() bool { return atomic.LoadUint32(&member) != 0 }

// Join makes this process a member of the group whose file is at path, a C string that must stay.
// It makes the file if there is none. The first member sets the caps; Agreed tells them. It
// returns an errno, 0 on success: EPERM where the file belongs to another user or others may write
// to it, EINVAL where it is no group's file, EUSERS where the group is full, EBUSY where another
// process does not finish joining, or what the kernel says.
func Join(path uintptr, want *Wish) (errno uintptr) {
	self.path, self.want = path, *want
	errno = join()
	if errno == 0 {
		atomic.StoreUint32(&member, 1)
	}
	return errno
}

// Agreed returns what the group's first member has set in place of what this process wanted.
// Precondition: Join succeeded.
func Agreed() (w Wish) {
	w = self.want
	for i := range w.Caps {
		w.Caps[i] = self.page.Caps[i]
	}
	w.CUDA = self.page.CUDA
	return w
}

// joined returns the page, or nil where this process is in no group.
func joined() *Page {
	if !On() {
		return nil
	}
	return self.page
}

// ForkChild gives a forked child a slot of its own. It joins at once, because it may soon be
// without what that takes: a descriptor, its user, its root folder, a system call. A child that may
// already be forbidden the calls reserves in its parent's slot. For one that cannot join it returns
// an errno as Join does; that child is in no group.
//
// Private memory replaces the parent's page, in case a signal handler forked while the interrupted
// code was at it.
func ForkChild() (errno uintptr) {
	if !On() {
		return 0
	}
	want := Agreed()
	self.stays = filtered() || !raw.Open(uintptr(unsafe.Pointer(self.page)), Size)
	if self.stays {
		self.own = [Accounts]uint64{}
		return 0
	}
	self.want = want
	if errno = join(); errno != 0 {
		atomic.StoreUint32(&member, 0)
	}
	return errno
}

func join() (errno uintptr) {
	for range 10 {
		var fd uintptr
		if fd, errno = open(); errno != 0 {
			return errno
		}
		if errno = lockJoin(fd); errno == 0 {
			errno = enter(fd)
			setLock(fd, joinByte, syscall.F_UNLCK)
		}
		raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		if errno != uintptr(syscall.ESTALE) { // else the file was removed meanwhile
			break
		}
	}
	return errno
}

// open opens the group's file, or makes it.
func open() (fd, errno uintptr) {
	const flags = syscall.O_RDWR | syscall.O_CREAT | syscall.O_NONBLOCK | syscall.O_NOCTTY
	fd, errno = raw.OpenFile(self.path, flags)
	if errno != 0 {
		return 0, errno
	}
	var st syscall.Stat_t
	_, errno = raw.Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	user, _ := raw.Sys(syscall.SYS_GETEUID, 0, 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
	case uintptr(st.Uid) != user || st.Mode&0o077 != 0:
		errno = uintptr(syscall.EPERM)
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		errno = uintptr(syscall.EINVAL)
	}
	if errno != 0 {
		raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	return fd, errno
}

// lockJoin waits for other processes that are joining. A thousand that start at once take a second
// or two; one that is stopped meanwhile may hold up the others for joinMost each.
func lockJoin(fd uintptr) (errno uintptr) {
	const joinMost, shortest, longest = 5_000_000_000, 50_000, 1_000_000 // ns
	begin := raw.Clock(raw.ClockMono)
	for pause := uint64(shortest); ; pause = min(2*pause, longest) {
		errno = setLock(fd, joinByte, syscall.F_WRLCK)
		if errno != uintptr(syscall.EAGAIN) {
			return errno
		}
		now := raw.Clock(raw.ClockMono)
		if now > begin+joinMost {
			return uintptr(syscall.EBUSY)
		}
		raw.SleepUntil(now + pause)
	}
}

// enter takes a slot of the locked file and maps it.
func enter(fd uintptr) (errno uintptr) {
	var st syscall.Stat_t
	_, errno = raw.Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if st.Nlink == 0 {
		return uintptr(syscall.ESTALE)
	}
	if uintptr(st.Size) != Size || !begins(fd, uintptr(st.Size)) {
		if errno = makeAnew(fd, uintptr(st.Size)); errno != 0 {
			return errno
		}
	}
	p, errno := mapPage(fd)
	if errno != 0 {
		return errno
	}
	slot, errno := p.takeSlot(fd)
	if errno != 0 {
		raw.Unmap(uintptr(unsafe.Pointer(p)), Size)
		return errno
	}
	first := !othersLock(fd)
	switch {
	case first:
		p.begin()
	case p.Magic != Magic || p.Version != Version:
		raw.Unmap(uintptr(unsafe.Pointer(p)), Size)
		return uintptr(syscall.EINVAL)
	}
	self.file = raw.Identify(fd)
	p.clear(slot)
	p.occupy(slot)
	for account := range uintptr(FirstDevice) {
		p.setFloor(slot, account)
	}
	if self.page != nil { // a forked child
		to := uintptr(unsafe.Pointer(self.page))
		if errno, kept := raw.Move(uintptr(unsafe.Pointer(p)), Size, Size, to); errno == 0 {
			p = self.page
		} else if kept != 0 {
			raw.Unmap(to+Size-kept, kept)
		}
	}
	self.page, self.slot = p, slot
	return 0
}

// begins reports whether the file, which has size bytes, begins as a group's does. One that was
// never finished has zeros.
func begins(fd, size uintptr) bool {
	var magic uint64
	n, errno := raw.Sys(syscall.SYS_PREAD64, fd, uintptr(unsafe.Pointer(&magic)), 8, 0, 0, 0)
	return errno == 0 && n == 8 && (magic == Magic || magic == 0 && size == Size)
}

// makeAnew gives a file of size bytes the size of a group's, with zeros, if it is empty, or if
// another version of the library made it and it has no members.
func makeAnew(fd, size uintptr) (errno uintptr) {
	if size != 0 && (!begins(fd, size) || othersLock(fd)) {
		return uintptr(syscall.EINVAL)
	}
	if errno = raw.SizeAllowed(Size); errno != 0 {
		return errno
	}
	if _, errno = raw.Sys(syscall.SYS_FTRUNCATE, fd, 0, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	// Memory that is had only when it is first written could be missing then, which would end the
	// process by SIGBUS.
	_, errno = raw.Sys(syscall.SYS_FALLOCATE, fd, 0, 0, Size, 0, 0)
	return errno
}

// takeSlot locks the byte of a slot that no living process has. The more members there are, the
// longer each try takes the kernel. So it tries the first slots, then some at random, which finds a
// free one if there are many, and then those that were never used; all only where these are taken.
func (p *Page) takeSlot(fd uintptr) (slot, errno uintptr) {
	const firstTries, randomTries = 8, 8
	n, random := p.high(), raw.Clock(raw.ClockMono)
	for i := uintptr(0); i < firstTries+randomTries+Members; i++ {
		switch {
		case i < firstTries:
			slot = i
		case i < firstTries+randomTries:
			random = random*6364136223846793005 + 1442695040888963407 // Knuth's, of MMIX
			slot = uintptr(random>>32) * n >> 32
		default:
			slot = (n + i - firstTries - randomTries) & memberMask
		}
		errno = setLock(fd, slot, syscall.F_WRLCK)
		if errno != uintptr(syscall.EAGAIN) && errno != uintptr(syscall.EACCES) {
			return slot, errno
		}
	}
	return 0, uintptr(syscall.EUSERS)
}

func mapPage(fd uintptr) (p *Page, errno uintptr) {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	at, errno := raw.Sys(syscall.SYS_MMAP, 0, Size, prot, syscall.MAP_SHARED, fd, 0)
	if errno != 0 {
		return nil, errno
	}
	return (*Page)(raw.Ptr(at)), 0
}

// begin makes the page that of a group whose first member this process is. The tags of the shares
// stay, because the operations do.
func (p *Page) begin() {
	for i := range p.high() {
		p.clear(i)
	}
	for i := range p.Caps {
		p.Caps[i], p.Devices[i] = Cap{Uncapped, Uncapped}, Device{}
		if i < len(self.want.Caps) {
			p.Caps[i] = self.want.Caps[i]
		}
	}
	p.reapNext, p.Short = 0, [Accounts]uint64{} // may be of before the machine was started
	p.Size, p.Version, p.High, p.CUDA = uint64(Size), Version, 0, self.want.CUDA
	atomic.StoreUint64(&p.Magic, Magic)
}

// clear frees a slot. Precondition: the caller has the lock of its byte.
func (p *Page) clear(slot uintptr) {
	m := &p.Slots[slot&memberMask]
	for account := range uintptr(Accounts) {
		p.complete(account) // may be an operation for this slot
		s := p.share(slot, account)
		atomic.StoreUint64(&s.used, 0)
		atomic.StoreUint64(&s.floor, 0)
		for {
			granted := atomic.LoadUint64(&s.granted)
			if atomic.CompareAndSwapUint64(&s.granted, granted, granted&tagMask) {
				break
			}
		}
	}
	m.Program = [32]byte{}
	atomic.StoreUint64(&m.Waits, 0)
	atomic.StoreUint64(&m.Taken, 0)
	atomic.StoreUint64(&m.Refused, 0)
	atomic.StoreUint64(&m.Pid, 0)
}

// occupy fills in this process's slot.
func (p *Page) occupy(slot uintptr) {
	m := &p.Slots[slot&memberMask]
	if name := self.want.Program; name != 0 {
		for i := uintptr(0); i < 31 && raw.LoadByte(name+i) != 0; i++ {
			m.Program[i&31] = raw.LoadByte(name + i)
		}
	}
	for {
		high := atomic.LoadUint64(&p.High)
		if high > uint64(slot) ||
			atomic.CompareAndSwapUint64(&p.High, high, uint64(slot)+1) {
			break
		}
	}
	atomic.StoreUint64(&m.Pid, uint64(raw.Pid()))
}
