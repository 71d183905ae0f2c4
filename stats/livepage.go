package stats

import (
	"tieralloc/internal/raw"
	"unsafe"
)

// A live page is a file that a process keeps mapped and other processes read (package stats/live),
// while it runs and after it was killed. It holds the last two reports. An update overwrites the
// older one.
//
//	Published     updates that are complete; the last is in Buffers[Published&1]
//	Begun         updates that were started
//	Published <= Begun <= Published+1
//
// An update stores Begun, fills the buffer, and stores Published. A reader loads Published, copies
// the buffer, and loads Begun. The copy is whole if Begun is then at most one more than Published
// was, because only the update after that writes to the same buffer. (Comparing Published with its
// earlier value is not enough: the second update may be writing the buffer without having published
// it.) Neither side waits for the other. A writer that is killed at any point leaves a whole report
// behind.
const LiveMagic = 0x6576696c72656974 // "tierlive", as amd64 and arm64 store it

// States of a live page.
const (
	LiveRunning = 1 // the process has not marked its end; it may have been killed
	LiveExited  = 2 // it has ended, and the last report is final
)

// LivePage is the layout of the file.
type LivePage struct {
	raw.OffHeap
	Head    LiveHeader
	Buffers [2]LiveBuffer
	Asks    [3]LiveAsk // by AskProfile, AskSnapshot and AskRegions
	Order   LiveOrder  // what AskRegions asks for
}

// LiveSize is the size of the file in bytes, without a LiveHistory.
const LiveSize = (unsafe.Sizeof(LivePage{}) + raw.Page - 1) &^ (raw.Page - 1)

// LiveHeader begins the file. Magic is stored last, and everything up to ProgramLen never changes
// after it. All versions have the same header, so that a tool of another version can remove the
// page of a process that has ended.
type LiveHeader struct {
	Magic       uint64
	Version     uint64
	Size        uint64 // of the file: LiveSize, and LiveHistorySize if a LiveHistory follows
	Pid         uint64 // in the process's own PID namespace
	StartUnixNs uint64 // CLOCK_REALTIME when the library was loaded, or the process forked

	// These distinguish the process from a later one with the same number. They are 0 or empty if
	// /proc could not be read.
	StartTicks   uint64   // start of the process, as /proc/PID/stat has it
	PidNamespace uint64   // inode of /proc/PID/ns/pid
	BootID       [40]byte // of the kernel: 36 characters and zeros

	Program    [NameSize]byte
	ProgramLen uint64 // <= NameSize

	State     uint64
	Begun     uint64
	Published uint64
}

// LiveBuffer is one report with the time of day of its update.
type LiveBuffer struct {
	UnixNs  uint64
	Figures Figures
}

// What a reader of a live page may ask for.
const (
	AskProfile  = 0 // the heap profile
	AskSnapshot = 1 // a snapshot of the devices
	AskRegions  = 2 // that regions of device memory sleep or wake (LiveOrder)
)

// LiveAsk is a request for a file, or, by AskRegions, for a text. A reader raises Asked. The
// process writes the rest when it updates the page, and trusts nothing here but Asked.
type LiveAsk struct {
	Asked   uint64 // wraps around
	Done    uint64 // the value of Asked that was answered last; stored after the fields below
	Errno   uint64 // 0: the file is written; ENODATA: no setting names one
	PathLen uint64 // 0: no file
	Path    [LivePathSize]byte
}

// LiveOrder says which regions sleep or wake. A reader writes it before it raises Asked. The answer
// begins with Until, so that a reader knows whose order was carried out if two came at once.
type LiveOrder struct {
	Until  uint64    // time of day in nanoseconds; it is not begun afterwards
	Kind   uint64    // OrderKeep, OrderDiscard or OrderWake
	Device uint64    // its ordinal, or OrderEvery
	Name   [2]uint64 // the region's, up to 15 bytes and zeros; 0: all regions
}

// What a LiveOrder asks for, and every device.
const (
	OrderKeep    = 0 // sleep; the host keeps the contents
	OrderDiscard = 1 // sleep; the contents are lost
	OrderWake    = 2
	OrderEvery   = 1<<64 - 1
)

// LivePathSize is the room for a path in a LiveAsk.
const LivePathSize = raw.Page
