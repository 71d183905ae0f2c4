package group

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// Locks of the kernel that belong to an open file, and end with its last descriptor and mapping
// (fcntl(2), "Open file description locks").
const (
	ofdGetLock = 36 // F_OFD_GETLK
	ofdSetLock = 37 // F_OFD_SETLK
)

// setLock sets the lock of one byte, without waiting.
func setLock(fd, at uintptr, kind int16) (errno uintptr) {
	l := syscall.Flock_t{Type: kind, Start: int64(at), Len: 1}
	_, errno = raw.Sys(syscall.SYS_FCNTL, fd, ofdSetLock, uintptr(unsafe.Pointer(&l)), 0, 0, 0)
	return errno
}

// othersLock reports whether another open file has the lock of a slot.
func othersLock(fd uintptr) bool {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Len: Members}
	_, errno := raw.Sys(syscall.SYS_FCNTL, fd, ofdGetLock, uintptr(unsafe.Pointer(&l)), 0, 0, 0)
	return errno != 0 || l.Type != syscall.F_UNLCK
}

// The least time between two looks for the dead, in ns: by a request that else is refused, and by
// a question.
const (
	reapRefused = 1_000_000
	reapAsked   = 10_000_000
)

// reap clears the slots of members that have ended, and reports whether there were any. It does
// nothing where that was done less than every ns ago.
func (p *Page) reap(every uint64) (any bool) {
	now, last := raw.Clock(raw.ClockMono), atomic.LoadUint64(&p.reaped)
	if now-last < every || filtered() || !atomic.CompareAndSwapUint64(&p.reaped, last, now) {
		return false
	}
	fd, errno := raw.OpenFile(self.path, syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOCTTY)
	if errno != 0 {
		return false
	}
	if raw.Identify(fd) == self.file {
		for i := range p.high() {
			if atomic.LoadUint64(&p.Slots[i&memberMask].Pid) == 0 ||
				setLock(fd, i, syscall.F_WRLCK) != 0 {
				continue
			}
			p.clear(i)
			setLock(fd, i, syscall.F_UNLCK)
			any = true
		}
	}
	raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	return any
}
