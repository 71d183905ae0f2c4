package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/tiers"
)

// Memory for PIN_FAST is made resident when it is handed out, on the fast nodes and no
// others, or refused. Binding untouched memory to a node (MPOL_BIND) would be wrong: a
// touch beyond what the node has ends in the kernel killing the process, not in
// ENOMEM. So the pages are first populated under a preference, which may be served
// from elsewhere, then looked at, and bound only when all of them are where they
// should be.
const madvPopulateWrite = 23 // Linux 5.14

// pinned is what memory of the pin place is bound to in the end.
var pinned numa.Place

// pin makes n bytes at addr resident on the fast nodes, for good, or reports false.
// Their contents are kept: they may be fresh or purged.
func pin(addr, n uintptr) bool {
	ok := pinNow(addr, n)
	if !ok {
		tiers.Unpinned()
	}
	return ok
}

func pinNow(addr, n uintptr) bool {
	free := uint64(0)
	for node := uintptr(0); node < 64; node++ {
		if pinned.Nodes>>node&1 != 0 {
			free += numa.MemFree(node)
		}
	}
	if uint64(n) > free {
		return false
	}
	prefer := placements[placementPin].nodes
	if numa.Bind(addr, n, &prefer, false) != 0 {
		return false
	}
	populate(addr, n)
	scratch := raw.Map(numa.ScratchBytes)
	if scratch == 0 {
		return false
	}
	var r numa.Residency
	numa.Count(addr, n, scratch, &r)
	unmapFresh(scratch, numa.ScratchBytes)
	here := uint64(0)
	for node := range r.Node {
		if pinned.Nodes>>(uint(node)&63)&1 != 0 {
			here += r.Node[node]
		}
	}
	return here == uint64(n) && numa.Bind(addr, n, &pinned, false) == 0
}

// populate touches every page.
func populate(addr, n uintptr) {
	if _, errno := raw.Sys(syscall.SYS_MADVISE, addr, n, madvPopulateWrite, 0, 0,
		0); errno != uintptr(syscall.EINVAL) {
		return
	}
	for at := uintptr(0); at < n; at += raw.Page {
		raw.StoreByte(addr+at, raw.LoadByte(addr+at))
	}
}
