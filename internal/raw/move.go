package raw

import (
	"sync/atomic"
	"syscall"
)

// Flags of mremap.
const (
	MremapMayMove   = 1
	mremapFixed     = 2
	mremapDontUnmap = 4
)

// Remap resizes or moves a mapping. It returns 0 and an errno when the kernel
// refuses.
func Remap(old, oldSize, newSize, flags, to uintptr) (addr, errno uintptr) {
	r, errno := Sys(syscall.SYS_MREMAP, old, oldSize, newSize, flags, to, 0)
	if errno != 0 {
		return 0, errno
	}
	return r, 0
}

// Move moves a mapping to addresses that the caller has reserved (Reserve), newSize bytes at to,
// and makes it as long as those. When the kernel refuses, the mapping is where it was, and the
// addresses are no longer reserved.
func Move(old, oldSize, newSize, to uintptr) (errno uintptr) {
	return move(old, oldSize, newSize, mremapFixed|MremapMayMove, to)
}

// MoveContents is Move for what lies in the n bytes at old, which stay mapped, empty. A kernel
// before 5.7 refuses.
func MoveContents(old, n, to uintptr) (errno uintptr) {
	return move(old, n, n, mremapFixed|mremapDontUnmap|MremapMayMove, to)
}

// A kernel that refuses a move has unmapped the target before, or has not: that depends on its
// version and on what it lacks. What it has unmapped another thread may have got meanwhile. So the
// target is marked first, in a memory page of its own, which is never part of a huge page: whoever
// else maps the addresses does not have the mark there.
func move(old, oldSize, newSize, flags, to uintptr) (errno uintptr) {
	if !Allow(to, Page) {
		Unmap(to, newSize)
		return uintptr(syscall.ENOMEM)
	}
	mark := atomic.AddUint32(&marks, 1)
	Store(to, uintptr(mark)|uintptr(markWord)<<32)
	_, errno = Remap(old, oldSize, newSize, flags, to)
	if errno != 0 && reads(to, mark) && reads(to+4, markWord) {
		Unmap(to, newSize)
	}
	return errno
}

// marks counts the marks, so that no two moves of a process have the same.
var marks uint32

const markWord = 0x7a5e3c91

// reads reports whether there is memory at addr and it holds the given word. The kernel looks, when
// it is asked to wake nobody if the word is as given.
func reads(addr uintptr, word uint32) bool {
	const cmpRequeue = 4 | 128 // FUTEX_CMP_REQUEUE_PRIVATE
	_, errno := Sys(syscall.SYS_FUTEX, addr, cmpRequeue, 0, 0, addr, uintptr(word))
	return errno == 0
}
