package numa

import (
	"math/bits"
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// Modes of memory policies, with the values of mbind(2).
const (
	Default            = 0 // the thread's own policy; usually the nearest node
	Preferred          = 1 // the first of the nodes that is allowed; others when it is full
	Strict             = 2 // these nodes only; the OOM killer runs when they are full
	Interleave         = 3 // page by page in turn
	PreferredMany      = 5 // these nodes, others when they are full (Linux 5.15)
	WeightedInterleave = 6 // in turn, by the weights in sysfs (Linux 6.9)

	// Balanced, added to PreferredMany, lets the kernel's NUMA balancing move pages between the
	// nodes of the policy, and to them from other nodes (Linux 6.12, not 5.15). Without it, memory
	// with a policy is not balanced and so not promoted.
	Balanced = 1 << 13
)

// Place is the placement of memory: its nodes and the policy. The zero value is the default policy.
//
//	Promote ≠ 0 ⇒ Mode = PreferredMany | Balanced, Nodes is one node and not in Promote
type Place struct {
	Nodes   uint64
	Promote uint64 // faster nodes: balancing may move used pages there; new pages do not go there
	Mode    uint32
}

// lacking has a bit (bitOf) for each mode that this kernel has refused, and homeBit if it has
// refused home nodes.
var lacking uint32

const homeBit = 1 << 31

// bitOf returns the bit of a mode in lacking. Balanced has a bit of its own, whatever it is added
// to.
func bitOf(mode uint32) uint32 {
	if mode&Balanced != 0 {
		return Balanced
	}
	return 1 << (mode & 7)
}

// nearest returns the mode itself, or the closest mode that the kernel knows.
func nearest(mode uint32) uint32 {
	switch mode {
	case PreferredMany:
		return Preferred
	case WeightedInterleave:
		return Interleave
	}
	return mode &^ Balanced
}

// Bind gives the n bytes at addr the policy of p. With move, pages that exist already are moved to
// its nodes, as far as these have room (Count tells how far). If p has the default policy and
// nodes, pages are moved to these too. Any thread may call it. It returns the errno of mbind(2):
// EINVAL also means that none of the nodes is allowed any more, ENOMEM that the process has too
// many mappings.
//
// Precondition: addr is a multiple of the page size.
func Bind(addr, n uintptr, p *Place, move bool) (errno uintptr) {
	if p.Mode == Default || p.Nodes == 0 {
		if move && p.Nodes != 0 {
			errno = bind(addr, n, &Place{Nodes: p.Nodes, Mode: PreferredMany}, true)
		}
		if other := Unpolicy(addr, n); errno == 0 {
			errno = other
		}
		return errno
	}
	if p.Promote == 0 || move { // pages in Promote are moved, too
		errno = bind(addr, n, p, move)
	}
	if p.Promote == 0 || errno != 0 || open(addr, n, p) {
		return errno
	}
	return bind(addr, n, p, false)
}

// bind is Bind without regard to Promote.
func bind(addr, n uintptr, p *Place, move bool) (errno uintptr) {
	unknown := uint32(0)
	for mode, more := p.Mode, true; more; {
		this := mode
		mode = nearest(mode)
		more = mode != this
		if more && atomic.LoadUint32(&lacking)&bitOf(this) != 0 {
			continue
		}
		if errno = mbind(addr, n, p.Nodes, this, move); errno != uintptr(syscall.EINVAL) {
			break
		}
		unknown |= bitOf(this)
	}
	// EINVAL has other causes, too: only a success with another mode shows that the mode was the
	// cause.
	if errno == 0 && unknown != 0 {
		atomic.OrUint32(&lacking, unknown)
	}
	return errno
}

// open gives the n bytes at addr a policy by which balancing may move their pages to p.Promote,
// while new pages come from p.Nodes, because the kernel searches for memory from the home node on.
// It reports false if the kernel cannot do that.
func open(addr, n uintptr, p *Place) bool {
	if atomic.LoadUint32(&lacking)&(homeBit|Balanced) != 0 {
		return false
	}
	if mbind(addr, n, p.Nodes|p.Promote, p.Mode, false) != 0 {
		return false
	}
	return setHome(addr, n, p.Nodes) == 0
}

// BindApart gives the n bytes at addr a policy with the same effect as that of p, as one that the
// kernel does not join with it: the home node, from which it searches for memory, is named. It
// needs Linux 5.17 and a policy of preferred or strict nodes; it returns an errno. Pages stay where
// they are.
func BindApart(addr, n uintptr, p *Place) (errno uintptr) {
	if p.Nodes == 0 || p.Promote != 0 {
		return uintptr(syscall.EINVAL)
	}
	if errno = bind(addr, n, p, false); errno != 0 {
		return errno
	}
	return setHome(addr, n, p.Nodes)
}

// setHome makes the first of the nodes the home node of the policy of the n bytes at addr.
func setHome(addr, n uintptr, nodes uint64) (errno uintptr) {
	const setMempolicyHomeNode = 450 // Linux 5.17
	home := uintptr(bits.TrailingZeros64(nodes))
	_, errno = raw.Sys(setMempolicyHomeNode, addr, n, home, 0, 0, 0)
	if errno == uintptr(syscall.ENOSYS) || errno == uintptr(syscall.EPERM) {
		atomic.OrUint32(&lacking, homeBit)
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
	const maxNode = 65 // the kernel reads one bit less than this
	var flags uintptr
	if move {
		flags = moveFlag
	}
	set := [1]uint64{nodes}
	_, errno = raw.Sys(syscall.SYS_MBIND, addr, n, uintptr(mode), uintptr(unsafe.Pointer(&set)),
		maxNode, flags)
	return errno
}
