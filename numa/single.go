package numa

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
)

// Single reports whether at most one node of this machine has memory, or nothing is known of nodes,
// or this process may only use node 0. It costs one system call if the process may only use node 0,
// and otherwise reads one file. On most machines the start of a process needs no more.
func Single() bool {
	set, ok := MemsAllowed()
	return ok && onlyFirst(&set) || single()
}

// single is Single without the system call.
func single() bool {
	var p sysfs.Path
	p.Nodes("has_memory")
	set, beyond, ok := sysfs.NodeSet(&p)
	if !ok {
		p.Nodes("online")
		set, beyond, ok = sysfs.NodeSet(&p)
	}
	return !ok || !beyond && set&(set-1) == 0
}

// AllNodes is a set of nodes with room for each node that a kernel can have.
type AllNodes [16]uint64

// MemsAllowed returns the set of nodes that this process may use. ok is false if the kernel does
// not answer.
func MemsAllowed() (set AllNodes, ok bool) {
	const flag = 4 // MPOL_F_MEMS_ALLOWED
	_, errno := raw.Sys(syscall.SYS_GET_MEMPOLICY, 0, uintptr(unsafe.Pointer(&set)),
		64*uintptr(len(set)), 0, flag, 0)
	return set, errno == 0
}

// onlyFirst reports whether the set is node 0.
func onlyFirst(set *AllNodes) bool {
	rest := set[0] ^ 1
	for _, word := range set[1:] {
		rest |= word
	}
	return rest == 0
}
