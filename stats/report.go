// Package stats defines the figures of the library and publishes them while the process runs. Start
// with Report, which packages alloc, tiers and cudahook fill. LivePage is the file that shows the
// figures of a running process (livepage.go, livefile.go). The event ring holds events until the
// log takes them (ring.go). internal/statlist lists all figures with their units and their
// exactness, and generates the structures. Package document writes a report as JSON, package live
// reads live pages of other processes, and package logger writes the log.
//
// It is freestanding Go (docs/runtime.md). A report is written at exit, when the host is partly
// shut down, so it uses mappings of its own and never the heap.
package stats

import "tieralloc/internal/raw"

// Schema names the format of the report, and Version is its number for readers that compare. A key
// that changes its meaning or goes away raises both. New keys may appear within a version: the
// schema file of the same release lists them, and readers ignore keys that they do not know.
const (
	Schema  = "tieralloc.stats/1"
	Version = 1
)

// CallName returns the key of a function by its number, Call…. It is empty for an unused number.
func CallName(call uintptr) string { return callNames[call%uintptr(len(callNames))] }

// The tiers, in the order of Report.Tiers.
const (
	TierFast uint = iota
	TierNormal
	TierSlow
	TierCount
)

// Where the memory of the tiers is, the values of Report.Backend.
const (
	BackendSimulated uint64 = iota // wherever the kernel puts it
	BackendNuma                    // on the nodes of the tier
)

// What measures the use of memory, the values of Following.Source.
const (
	SourceNone            uint64 = iota
	SourceReferenced             // referenced bits in smaps
	SourceDamon                  // DAMON
	SourceWriteProtection        // PAGEMAP_SCAN
	SourceSoftDirty              // soft-dirty bits
)

// Sizes of the fixed arrays. They are powers of two, so that a masked index is in range.
const (
	ClassMax = 128 // size classes
	NodeMax  = 64  // NUMA nodes a report can name
	NameSize = 256 // bytes of a program's name: the kernel's NAME_MAX and one
	ShareMax = 64  // instances of memory managers that a report lists
	StackMax = 16  // frames of a site that a report lists
	SiteRoom = 64
)

// SiteMax is the number of sites that a report lists, at most SiteRoom.
const SiteMax = 50

// Frame is a call in the stack of a site: an address in a file, as the file itself has it, or
// without one in memory. Name is the address of the file's name.
type Frame struct {
	Name, NameLen uintptr
	Address       uint64

	Function, FunctionLen uintptr // of Python: Name is its file, and Address the line; else 0
}

// Sites are the sites that a report lists. It is in mapped memory, as a Report is, but in no live
// page.
type Sites struct {
	raw.OffHeap

	Count uint64
	List  [SiteRoom]Site
}

// Report is one snapshot of the counters. It is in mapped memory, all zero before it is filled, and
// belongs to one thread.
type Report struct {
	raw.OffHeap
	Figures
}

// SetName sets the group's name, truncated to NameSize bytes.
func (g *Group) SetName(addr, n uintptr) {
	n = min(n, NameSize)
	for i := uintptr(0); i < n; i++ {
		g.Name[i&(NameSize-1)] = raw.LoadByte(addr + i)
	}
	g.NameLen = uint64(n)
}

// SetProgram sets the program's name, truncated to NameSize bytes.
func (r *Figures) SetProgram(addr, n uintptr) {
	if n > NameSize {
		n = NameSize
	}
	for i := uintptr(0); i < n; i++ {
		r.Program[i&(NameSize-1)] = raw.LoadByte(addr + i)
	}
	r.ProgramLen = uint64(n)
}
