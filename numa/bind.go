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

// Pin makes n bytes at addr resident on the nodes of p and no others, and binds them there, or
// reports false. Their contents are kept.
//
// Binding untouched memory to a node (MPOL_BIND) would be wrong: a touch beyond what the node has
// ends in the kernel killing the process, not in ENOMEM. So the pages are first populated under a
// preference, which may be served from elsewhere, then looked at, and bound only when all of them
// are where they should be.
func Pin(addr, n uintptr, p *Place) bool {
	free := uint64(0)
	for node := uintptr(0); node < 64; node++ {
		if p.Nodes>>node&1 != 0 {
			free += MemFree(node)
		}
	}
	prefer := Place{Nodes: p.Nodes, Mode: PreferredMany}
	if uint64(n) > free || Bind(addr, n, &prefer, false) != 0 {
		return false
	}
	populate(addr, n)
	var r Residency
	Count(addr, n, &r)
	return r.On(p.Nodes) == uint64(n) && Bind(addr, n, p, false) == 0
}

// populate touches every page.
func populate(addr, n uintptr) {
	if raw.Populate(addr, n) != uintptr(syscall.EINVAL) {
		return
	}
	for at := uintptr(0); at < n; at += raw.Page {
		raw.StoreByte(addr+at, raw.LoadByte(addr+at))
	}
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
func Unpolicy(addr, n uintptr) (errno uintptr) { return mbind(addr, n, 0, Default, false) }

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

// Residency is how many bytes are on each node. Count and CountPages add to it.
//
//	ΣNode + Absent + Failed = the bytes counted, rounded to pages
type Residency struct {
	Node   [64]uint64
	Absent uint64 // never written, swapped out, just being moved, or not mapped at all
	Failed uint64 // the kernel did not answer, or the node is above 63
}

// On returns the bytes on the nodes of a set.
func (r *Residency) On(nodes uint64) (bytes uint64) {
	for node := range r.Node {
		if nodes>>(uint(node)&63)&1 != 0 {
			bytes += r.Node[node]
		}
	}
	return bytes
}

const batch = 64 // pages asked for in one call: what it needs lies on the caller's stack

// Count adds the nodes of the pages of the n bytes at addr to r. Pages of all sizes are counted in
// units of 4 KiB. A page that was read and never written counts as absent, because it is the
// kernel's shared page of zeros.
//
// The kernel examines each page, which takes 0.1 to 0.3 µs.
func Count(addr, n uintptr, r *Residency) {
	var pages [batch]uintptr
	end := raw.RoundUp(addr+n, raw.Page)
	for addr &^= raw.Page - 1; addr < end; {
		count := min((end-addr)/raw.Page, batch)
		for i := uintptr(0); i < count; i++ {
			pages[i&(batch-1)] = addr
			addr += raw.Page
		}
		countBatch(&pages[0], count, r)
	}
}

// CountPages is Count for the n pages whose addresses are the words at pages.
func CountPages(pages, n uintptr, r *Residency) {
	for n > 0 {
		count := min(n, batch)
		countBatch((*uintptr)(raw.Ptr(pages)), count, r)
		pages += count * 8
		n -= count
	}
}

// countBatch is CountPages for a batch at most.
func countBatch(pages *uintptr, n uintptr, r *Residency) {
	var status [batch]int32
	errno := nodesOf(pages, n, &status)
	for i := uintptr(0); errno == 0 && i < n; i++ {
		r.add(status[i&(batch-1)])
	}
	if errno != 0 {
		r.Failed += uint64(n * raw.Page)
	}
}

// nodesOf puts the node of each of the n pages whose addresses begin at pages, or an errno below
// zero, into status.
func nodesOf(pages *uintptr, n uintptr, status *[batch]int32) (errno uintptr) {
	if raw.FilteredFromStart() {
		return nodesUnderFilter(pages, n, status)
	}
	// Without target nodes the call moves nothing and returns the node of each page.
	_, errno = raw.Sys(syscall.SYS_MOVE_PAGES, 0, n, uintptr(unsafe.Pointer(pages)), 0,
		uintptr(unsafe.Pointer(status)), 0)
	return errno
}

// nodesUnderFilter is nodesOf without move_pages, which a filter may not know. get_mempolicy would
// fault in a page that is not resident, so a file says which are. A page of the kernel's zeros
// counts as resident.
func nodesUnderFilter(pages *uintptr, n uintptr, status *[batch]int32) (errno uintptr) {
	const flags = 1 | 2 // MPOL_F_NODE, MPOL_F_ADDR
	fd, errno := raw.OpenPagemap()
	for i := uintptr(0); errno == 0 && i < n; i++ {
		addr := *(*uintptr)(unsafe.Add(unsafe.Pointer(pages), i*8))
		state := &status[i&(batch-1)]
		*state = -int32(syscall.ENOENT)
		var word uint64
		errno = raw.ReadPagemap(fd, addr, 1, &word)
		if errno == 0 && word>>63 != 0 {
			_, errno = raw.Sys(syscall.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(state)), 0, 0,
				addr, flags, 0)
		}
	}
	raw.ClosePagemap(fd)
	return errno
}

// add counts one page by its status, a node or an errno below zero.
func (r *Residency) add(status int32) {
	switch {
	case status >= 0 && status < 64:
		r.Node[status&63] += raw.Page
	case status == -int32(syscall.ENOENT), status == -int32(syscall.EFAULT):
		r.Absent += raw.Page
	default:
		r.Failed += raw.Page
	}
}
