// Package lockrank names the library's locks and the order in which a thread may take them. It is
// below package raw, whose Lock checks itself against the table in the debug build (build tag
// lockrank, ./build.sh debug). docs/architecture.md shows the table; a test compares the two.
package lockrank

// Rank is a lock's place in the order. All locks of one kind have one rank.
type Rank uint32

// The ranks, in the order of the table.
const (
	_ Rank = iota
	Contexts
	Stdio
	Deepbind
	Reserved
	DeviceSnapshot
	Trace
	History
	Report
	Snapshot
	Table
	DeviceHeap
	Managers
	Profile
	Heaps
	Pool
	Count
)

// Lock is a row of the table.
type Lock struct {
	Name   string // as the code calls it
	Guards string
	Under  Set // what a thread may hold when it begins to wait for the lock
}

// Set is a set of ranks: bit r stands for rank r.
type Set uint32

// Locks is the table. A lock is taken under such only as stand above it, so that no circle of
// threads that wait for each other can form. Where a set has the lock's own rank, the lock of the
// lower address is taken first.
var Locks = [Count]Lock{
	Contexts: {"ta_cuda_lives_lock",
		"C: contexts, while the driver makes or ends one; held during driver calls", 0},
	Stdio: {"_IO_list_lock",
		"libc: its open files; our fork handler takes it before libc's fork does", 1 << Contexts},
	Deepbind: {"libc_deepbind.c:lock",
		"C: libc's symbols of the malloc family, while they are redirected", 1 << Contexts},
	Reserved:       {"boot_reserved.c:mutex", "C: addresses that the Go runtime has reserved", 0},
	DeviceSnapshot: {"snapshotLock", "the writing of a snapshot of the devices", 1 << Contexts},
	Trace:          {"trace.lock", "the file of the device trace", 1 << Contexts},
	History:        {"history.lock", "recorded device events", 1<<Contexts | 1<<DeviceSnapshot},
	// A signal handler that interrupts a holder of one of those above may exit or fork; one that
	// interrupts a holder of any lock may allocate.
	Report:   {"reportLock", "the writing of the report at exit", 1<<Report - 2},
	Snapshot: {"profileLock", "the writing of the profile", 1<<Snapshot - 2},
	Table: {"tableLock", "the list of device heaps, peers, figures of ended contexts",
		1<<Table - 2},
	DeviceHeap: {"heap.lock", "one device heap; several only in fork",
		1<<DeviceHeap - 2 | 1<<DeviceHeap},
	Managers: {"manager.lock", "all memory managers", 1<<Managers - 2},
	Profile: {"profile.lock", "the samples of a heap profile",
		1<<Profile - 2 | 1<<Profile},
	Heaps: {"heapsLock", "abandoned threads", 1<<Heaps - 2},
	Pool:  {"poolLock", "everything in `poolState`", 1<<Pool - 2},
}

// Allows reports whether a thread that holds a lock of one rank may wait for one of another.
func Allows(held, wanted Rank) bool { return Locks[wanted%Count].Under>>held&1 != 0 }
