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

// Move moves a mapping to newSize bytes of addresses at to that the caller has mapped (MapBarred),
// and gives it that length. If the kernel refuses, the mapping is unchanged, and of the addresses
// the last kept bytes are still mapped.
func Move(old, oldSize, newSize, to uintptr) (errno, kept uintptr) {
	return move(old, oldSize, newSize, mremapFixed|MremapMayMove, to)
}

// MoveContents is Move for the contents of the n bytes at old, which stay mapped and read as zero.
// Kernels before 5.7 refuse.
func MoveContents(old, n, to uintptr) (errno, kept uintptr) {
	return move(old, n, n, mremapFixed|mremapDontUnmap|MremapMayMove, to)
}

// move is Remap to a target that the caller has reserved. A kernel that refuses a move may or may
// not have unmapped the target, depending on its version and the reason. If it has, another thread
// may have mapped the addresses meanwhile. So move first writes a mark to a memory page of the
// target that is never part of a huge page. If another thread has mapped the addresses, the mark is
// not there.
func move(old, oldSize, newSize, flags, to uintptr) (errno, kept uintptr) {
	const readWrite = syscall.PROT_READ | syscall.PROT_WRITE
	if mapAt(to, Page, readWrite, syscall.MAP_FIXED) == 0 {
		return uintptr(syscall.ENOMEM), newSize - Page // the first page may be unmapped already
	}
	mark := atomic.AddUint32(&marks, 1)
	Store(to, uintptr(mark)|uintptr(markWord)<<32)
	_, errno = Remap(old, oldSize, newSize, flags, to)
	if errno != 0 && reads(to, mark) && reads(to+4, markWord) {
		kept = newSize
	}
	return errno, kept
}

// Copy copies n bytes to other addresses.
func Copy(to, from, n uintptr) {
	const most = 1 << 47
	n &= most - 1
	copy((*[most]byte)(Ptr(to))[:n], (*[most]byte)(Ptr(from))[:n])
}

// marks counts the marks, so that no two moves of a process have the same.
var marks uint32

const markWord = 0x7a5e3c91

// reads reports whether there is memory at addr that holds the given word. The kernel reads it for
// a futex call that wakes nobody.
func reads(addr uintptr, word uint32) bool {
	const cmpRequeue = 4 | 128 // FUTEX_CMP_REQUEUE_PRIVATE
	_, errno := Sys(syscall.SYS_FUTEX, addr, cmpRequeue, 0, 0, addr, uintptr(word))
	return errno == 0
}
