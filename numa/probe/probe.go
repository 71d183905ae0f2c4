// Package probe reads the machine's memory nodes from sysfs. It is freestanding Go
// (docs/runtime.md). It is separate from package numa because most processes never need it.
package probe

import (
	"math/bits"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/sysfs"
	"tieralloc/numa"
)

// Topology fills t from sysfs. If sysfs has no nodes it reports false, and t is one node, 0.
//
// Precondition: one call at a time.
func Topology(t *numa.Topology) bool {
	var p sysfs.Path
	p.Nodes("online")
	online, beyond, ok := sysfs.NodeSet(&p)
	if !ok || online == 0 {
		t.Only()
		return false
	}
	*t = numa.Topology{Online: online, Beyond: beyond}
	p.Nodes("has_memory")
	memory, _, memoryKnown := sysfs.NodeSet(&p)
	p.Nodes("has_cpu")
	cpus, _, cpusKnown := sysfs.NodeSet(&p)
	everywhere := !affinity()
	for set := online; set != 0; set &= set - 1 {
		n := uintptr(bits.TrailingZeros64(set))
		bit := uint64(1) << (n & 63)
		node := &t.Node[n&63]
		node.MemTotal = sysfs.Memory(n, "MemTotal:")
		if memoryKnown && memory&bit != 0 || !memoryKnown && node.MemTotal != 0 {
			t.Memory |= bit
		}
		some, mine := processors(n)
		if cpusKnown && cpus&bit != 0 || !cpusKnown && some {
			t.CPUs |= bit
			if mine || everywhere && some {
				t.Running |= bit
			}
		}
		distances(node, n, online)
		figures(node, n)
	}
	memoryTiers(t)
	t.Allowed = allowed(online)
	return true
}

// distances reads node n's row of the table of distances. It has a column for each online node, in
// order.
func distances(node *numa.Node, n uintptr, online uint64) {
	var p sysfs.Path
	p.Node(n, "/distance")
	var f sysfs.File
	if !f.Open(&p) {
		return
	}
	for set := online; set != 0; set &= set - 1 {
		f.Blanks()
		d, ok := f.Number(255)
		if !ok {
			break
		}
		node.Distance[bits.TrailingZeros64(set)&63] = uint8(d)
	}
	f.Close()
}

// figures reads the firmware's figures (ACPI HMAT, or CXL's own tables) of node n. Class 1 is for
// the nearest processors. Kernels before 5.11 have only class 0, in which a device may be the
// nearest.
func figures(node *numa.Node, n uintptr) {
	node.ReadLatency = initiator(n, "read_latency")
	node.WriteLatency = initiator(n, "write_latency")
	node.ReadBandwidth = initiator(n, "read_bandwidth")
	node.WriteBandwidth = initiator(n, "write_bandwidth")
}

func initiator(n uintptr, name string) uint32 {
	var p sysfs.Path
	p.Node(n, "/access1/initiators/")
	p.Text(name)
	v := sysfs.Figure(&p)
	if v == 0 {
		p.Node(n, "/access0/initiators/")
		p.Text(name)
		v = sysfs.Figure(&p)
	}
	return v
}

// processors reports whether node n has processors, and whether the calling thread may run on one
// of them. Precondition: affinity was called.
func processors(n uintptr) (some, mine bool) {
	var p sysfs.Path
	p.Node(n, "/cpulist")
	var f sysfs.File
	if !f.Open(&p) {
		return false, false
	}
	for {
		low, high, ok := f.Span()
		if !ok {
			break
		}
		some = true
		for cpu := low; cpu <= min(high, maxProcessors-1); cpu++ {
			if mayRun[cpu/64&mayRunMask]>>(cpu&63)&1 != 0 {
				mine = true
			}
		}
	}
	f.Close()
	return some, mine
}

// maxProcessors is the largest number that Linux can be built for on amd64.
const maxProcessors = 8192

// mayRun has a bit for each processor on which the thread that calls Topology may run.
var mayRun [mayRunMask + 1]uint64

const mayRunMask = maxProcessors/64 - 1

// affinity fills mayRun. It reports false if the kernel does not answer.
func affinity() bool {
	mayRun = [mayRunMask + 1]uint64{}
	_, errno := raw.Sys(syscall.SYS_SCHED_GETAFFINITY, 0, maxProcessors/8,
		uintptr(unsafe.Pointer(&mayRun)), 0, 0, 0)
	return errno == 0
}

// allowed returns the set of nodes that this process may use. If the kernel does not answer it
// returns all, and Resolve finds out.
func allowed(online uint64) uint64 {
	set, ok := numa.MemsAllowed()
	if !ok {
		return online
	}
	return set[0]
}
