package numa

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
)

// Single reports whether at most one node of this machine has memory, or none can be
// told, or this process may only use node 0. It costs a system call where the process may
// use no other node, else it reads one file: all that the start of a process needs on most
// machines.
func Single() bool {
	set, ok := MemsAllowed()
	return ok && onlyFirst(&set) || single()
}

// single is Single by sysfs alone.
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

// AllNodes is a set with room for each node that a kernel could have.
type AllNodes [16]uint64

// MemsAllowed is the set of nodes that the kernel lets this process use, where it says so.
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
