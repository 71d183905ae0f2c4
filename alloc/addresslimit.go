package alloc

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// addressLimit is how many bytes of addresses the process may have (RLIMIT_AS), or 0 if no limit is
// known. The kernel is asked once, at boot: later a filter of system calls may end the process for
// the question. A limit that the program sets later becomes known when the kernel refuses a
// mapping. A limit that is raised later stays as it was.
var addressLimit uintptr

// askAddressLimit asks for the limit, at boot.
func askAddressLimit() {
	const (
		rlimitAS = 9
		none     = ^uintptr(0)
	)
	limit := [2]uintptr{none, none} // now, and at most; unchanged where the kernel does not tell
	raw.Sys(syscall.SYS_PRLIMIT64, 0, rlimitAS, 0, uintptr(unsafe.Pointer(&limit)), 0, 0)
	if limit[0] != none {
		addressLimit = max(limit[0], 1)
	}
}

// limitAddresses notes that the process cannot have n more bytes of addresses, and keeps none for
// later. Precondition: poolLock is held.
func limitAddresses(n uintptr) {
	dropRoom()
	if now := uintptr(pool.count.mapped) + n; addressLimit == 0 || now < addressLimit {
		addressLimit = now
	}
}

// reservable reports whether the kernel has n more bytes of addresses, and a mapping for them.
func reservable(n uintptr) bool {
	at := raw.Reserve(n)
	if at != 0 {
		raw.Unmap(at, n)
	}
	return at != 0
}
