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

// A look for the dead takes a ninth of the members' time at most where requests are refused all the
// time, and far less for those who ask only. On a busy machine a look can take long because others
// run: the pause after it has a bound, so that the bytes of the dead return within 100 ms.
const (
	reapShare   = 8
	reapRefused = 0
	reapAsked   = 10_000_000 // ns
	reapPause   = 80_000_000 // ns
)

// pause returns how long no look follows one that took so many ns, in ns.
func pause(took uint64) uint64 { return min(took*reapShare, reapPause) }

// reap clears the slots of members that have ended, and reports whether there were any. It does
// nothing until after ns have passed since another look would do no harm.
func (p *Page) reap(after uint64) (any bool) {
	now, next := raw.Clock(raw.ClockMono), atomic.LoadUint64(&p.reapNext)
	if now < next+after || filtered() ||
		!atomic.CompareAndSwapUint64(&p.reapNext, next, now+reapAsked) {
		return false
	}
	any = p.look()
	end := raw.Clock(raw.ClockMono)
	atomic.StoreUint64(&p.reapNext, end+pause(end-now))
	return any
}

// look is reap at any time.
func (p *Page) look() (any bool) {
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
