package alloc

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/raw"
)

// A process in a control group with a limit on memory is killed when the group needs more. So what
// nobody uses is held to a part of the limit, and goes back to the kernel when little is left.
//
// The group's files are read when the heap has grown: first beyond limitFirst, then by half of what
// was left. Without a limit they are read when the heap has doubled. One may be set or lowered at
// any time: so a process of more than limitFirst looks again after limitAgain, when it next comes
// by the slow path, or after pressureAgain where a limit or a figure of pressure is known
// (pressure.go). A small process opens no file, and a large one hardly any. A filter of system
// calls may end the process for opening a file. So the files are not read again when the program
// prepares one: a limit that was read stays in force.
const (
	limitFirst = 32 << 20
	// of the limit: what dirty spans may have, and cached huge blocks; what is left at least
	limitShare = 8
	// bytes that the heap may grow by without a look, and no less than a part of the limit
	limitStep  = 1 << 20
	limitSteps = 64
	limitAgain = 5e9 // nanoseconds
)

// limit begins as zeros: a read of initialised data makes 64 KiB around it resident.
var limit struct {
	// the group is looked at before more than limitFirst and so many bytes are committed
	beyond uintptr
	share  uintptr // of the limit in bytes, and one more; 0: no limit is known
	busy   uint32  // 1: a thread is looking
	again  uint64  // when the group is looked at without growth
}

// filterFlag is the address of a word that is not 0 when the program prepares a filter, or 0.
var filterFlag uintptr

// SetFilterFlag sets the address of the word that C sets when the program prepares a filter of
// system calls.
func SetFilterFlag(addr uintptr) { filterFlag = addr }

func filtered() bool { return filterFlag != 0 && raw.LoadByte(filterFlag) != 0 }

// limitMost is what dirty spans may have, and cached huge blocks.
func limitMost() uintptr { return limit.share - 1 }

// nearLimit reports, by a peek without the lock, whether n bytes more are reason to look at the
// group.
func nearLimit(n uintptr) bool {
	return uintptr(pool.count.committed)+n > limitFirst+limit.beyond
}

// limitOld reports, by a peek likewise, whether the last look is so long ago that there is to be
// another.
func limitOld(now uint64) bool {
	return now >= limit.again && (pool.count.committed > limitFirst || pressed())
}

// lookAtLimit looks at the group before n bytes more are committed, and reports whether so little
// is left that unused memory must be released. Precondition: no lock is held, and the caller has
// set limit.busy.
func lookAtLimit(now uint64, n uintptr) (short bool) {
	after := max(uintptr(pool.count.committed)+n, limitFirst)
	limit.again = now + limitAgain
	if filtered() {
		limit.beyond = 2*after - limitFirst
		setPressure(now, false)
		return false
	}
	var m cgroup.Memory
	if now >= pressure.again {
		stalled, known := cgroup.ReadBoth(&m)
		pressure.stalled = stalled
		pressure.again = now + limitAgain
		if known {
			pressure.again = now + pressureAgain
		}
	} else {
		cgroup.Read(&m)
	}
	if m.Limit != 0 {
		limit.again = now + pressureAgain
	}
	limit.again = min(limit.again, pressure.again)
	weigh(now, &m)
	if m.Limit == 0 {
		limit.share = 0
		limit.beyond = 2*after - limitFirst
		return pressed()
	}
	limit.share = uintptr(m.Limit)/limitShare + 1
	left := uintptr(m.Left())
	short = left < n+limitMost() || pressed()
	if short { // the caller releases unused memory
		left += unused()
		after = max(after-min(after, unused()), limitFirst)
	}
	limit.beyond = after + max(left/2, limitStep, uintptr(m.Limit)/limitSteps) - limitFirst
	return short
}

// unused returns, by a peek without the lock, the bytes of free spans and cached huge blocks.
func unused() uintptr { return pool.dirtyBytes + pool.cache.bytes }

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
	if now := uintptr(pool.count.mapped) + n; addressLimit == 0 || now < addressLimit {
		addressLimit = now
	}
	dropReservations()
}

// reservable reports whether the kernel has n more bytes of addresses, and a mapping for them.
func reservable(n uintptr) bool {
	at := raw.MapBarred(n)
	if at != 0 {
		raw.Unmap(at, n)
	}
	return at != 0
}
