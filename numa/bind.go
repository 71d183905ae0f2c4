package numa

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// Modes of memory policies, as mbind(2) has them.
const (
	Default            = 0 // what the thread's own policy says; mostly the nearest node
	Preferred          = 1 // the first of them that is allowed, others when it is full
	Strict             = 2 // these nodes; the OOM killer comes when they are full
	Interleave         = 3 // page by page in turn
	PreferredMany      = 5 // these nodes, others when they are full (Linux 5.15)
	WeightedInterleave = 6 // in turn, as often as sysfs's weights say (Linux 6.9)
)

// Place says where memory is to be. The zero value is the default policy.
type Place struct {
	Nodes uint64
	Mode  uint32
}

// lacking has a bit for each mode that this kernel turned out not to know.
var lacking uint32

// nearest is the mode to use instead of one that the kernel does not know.
func nearest(mode uint32) uint32 {
	switch mode {
	case PreferredMany:
		return Preferred
	case WeightedInterleave:
		return Interleave
	}
	return mode
}

// Bind gives the n bytes at addr the policy of p; with move, pages that are there
// already are moved to its nodes as far as these have room (Count tells how far), to those of the
// default policy, too, where p has any. Any thread may
// call it. It returns the errno of mbind(2): EINVAL also means that none of the nodes
// is allowed any more, ENOMEM that the process has too many mappings.
//
// Precondition: addr is a multiple of the page size.
func Bind(addr, n uintptr, p *Place, move bool) (errno uintptr) {
	switch {
	case p.Mode != Default && p.Nodes != 0:
		return bind(addr, n, p.Nodes, p.Mode, move)
	case move && p.Nodes != 0:
		errno = bind(addr, n, p.Nodes, PreferredMany, true)
	}
	if other := Unpolicy(addr, n); errno == 0 {
		errno = other
	}
	return errno
}

// bind is Bind for a mode that is not the default.
func bind(addr, n uintptr, nodes uint64, mode uint32, move bool) (errno uintptr) {
	if atomic.LoadUint32(&lacking)>>(mode&31)&1 != 0 {
		mode = nearest(mode)
	}
	errno = mbind(addr, n, nodes, mode, move)
	if other := nearest(mode); errno == uintptr(syscall.EINVAL) && other != mode {
		// EINVAL has other reasons, too: only success shows that it was the mode.
		if errno = mbind(addr, n, nodes, other, move); errno == 0 {
			atomic.OrUint32(&lacking, 1<<(mode&31))
		}
	}
	return errno
}

// Unpolicy gives the n bytes at addr the default policy again. Pages stay where they
// are. Precondition: addr is a multiple of the page size.
func Unpolicy(addr, n uintptr) (errno uintptr) {
	_, errno = raw.Sys(syscall.SYS_MBIND, addr, n, Default, 0, 0, 0)
	return errno
}

func mbind(addr, n uintptr, nodes uint64, mode uint32, move bool) (errno uintptr) {
	const moveFlag = 2 // MPOL_MF_MOVE
	const maxNode = 65 // the kernel looks at one bit less than it is told
	var flags uintptr
	if move {
		flags = moveFlag
	}
	set := [1]uint64{nodes}
	_, errno = raw.Sys(syscall.SYS_MBIND, addr, n, uintptr(mode), uintptr(unsafe.Pointer(&set)), maxNode, flags)
	return errno
}
