package stats

import (
	"tieralloc/internal/raw"
	"unsafe"
)

// A live page is a file that a process keeps mapped and other processes read
// (package stats/live), while it runs and after it was killed. It holds the two last
// reports; an update goes into the older one.
//
//	Published     updates that are complete; the last is in Buffers[Published&1]
//	Begun         updates that were started
//	Published <= Begun <= Published+1
//
// An update stores Begun, fills the buffer, and stores Published. A reader loads
// Published, copies the buffer, and loads Begun: the copy is whole if Begun is then at
// most one more than Published was, for only the update after that writes to the same
// buffer. (It is not enough that Published has not risen by two: the second update may
// be in the midst of it.) So neither waits for the other, and a writer that is killed
// at any point leaves a whole report behind.
const LiveMagic = 0x6576696c72656974 // "tierlive", as amd64 and arm64 store it

// States of a live page.
const (
	LiveRunning = 1 // the process has not ended, as far as it could say
	LiveExited  = 2 // it has ended, and the last report is its final one
)

// LivePage is the layout of the file.
type LivePage struct {
	raw.OffHeap
	Head    LiveHeader
	Buffers [2]LiveBuffer
}

// LiveSize is the size of the file in bytes.
const LiveSize = (unsafe.Sizeof(LivePage{}) + raw.Page - 1) &^ (raw.Page - 1)

// LiveHeader begins the file. Magic is stored last, and everything up to ProgramLen
// never changes after it. The layout of the header is that of every version: so the page of a
// process that has ended can be removed by a tool of another version.
type LiveHeader struct {
	Magic       uint64
	Version     uint64
	Size        uint64 // LiveSize
	Pid         uint64 // in the process's own PID namespace
	StartUnixNs uint64 // CLOCK_REALTIME when the library was loaded, or the process forked

	// These tell the process from a later one with its number. 0 or empty: there was no
	// /proc to read it from.
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
