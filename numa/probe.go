package numa

import (
	"math/bits"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// Single reports whether at most one node of this machine has memory, or none can be
// told, or this process may only use node 0. It costs a system call where the process may
// use no other node, else it reads one file: all that the start of a process needs on most
// machines.
func Single() bool {
	set, ok := memsAllowed()
	return ok && onlyFirst(&set) || single()
}

// single is Single by sysfs alone.
func single() bool {
	var p path
	p.nodes("has_memory")
	set, beyond, ok := nodeSet(&p)
	if !ok {
		p.nodes("online")
		set, beyond, ok = nodeSet(&p)
	}
	return !ok || !beyond && set&(set-1) == 0
}

// Probe fills t from sysfs. It reports false where sysfs has no nodes; t is then
// one node, 0.
//
// Precondition: one call at a time.
func Probe(t *Topology) bool {
	var p path
	p.nodes("online")
	online, beyond, ok := nodeSet(&p)
	if !ok || online == 0 {
		t.only()
		return false
	}
	*t = Topology{Online: online, Beyond: beyond}
	p.nodes("has_memory")
	memory, _, memoryKnown := nodeSet(&p)
	p.nodes("has_cpu")
	cpus, _, cpusKnown := nodeSet(&p)
	everywhere := !affinity()
	for set := online; set != 0; set &= set - 1 {
		n := uintptr(bits.TrailingZeros64(set))
		bit := uint64(1) << (n & 63)
		node := &t.Node[n&63]
		node.MemTotal = memoryOf(n, "MemTotal:")
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
		node.distances(n, online)
		node.figures(n)
	}
	t.memoryTiers()
	t.Allowed = allowed(online)
	return true
}

// distances reads the row of the table of distances that belongs to node n. It has
// a column for each node that is online, in order.
func (node *Node) distances(n uintptr, online uint64) {
	var p path
	p.node(n, "/distance")
	var f file
	if !f.open(&p) {
		return
	}
	for set := online; set != 0; set &= set - 1 {
		f.blanks()
		d, ok := f.number(255)
		if !ok {
			break
		}
		node.Distance[bits.TrailingZeros64(set)&63] = uint8(d)
	}
	f.close()
}

// figures reads what the firmware (ACPI HMAT, or CXL's own tables) says of node n.
// Class 1 is what the nearest processors see; kernels before 5.11 have only class 0,
// where a device may be the nearest.
func (node *Node) figures(n uintptr) {
	node.ReadLatency = initiator(n, "read_latency")
	node.WriteLatency = initiator(n, "write_latency")
	node.ReadBandwidth = initiator(n, "read_bandwidth")
	node.WriteBandwidth = initiator(n, "write_bandwidth")
}

func initiator(n uintptr, name string) uint32 {
	var p path
	p.node(n, "/access1/initiators/")
	p.text(name)
	v := figure(&p)
	if v == 0 {
		p.node(n, "/access0/initiators/")
		p.text(name)
		v = figure(&p)
	}
	return v
}

// processors reports whether node n has any, and whether the calling thread may run
// on one of them. Precondition: affinity was called.
func processors(n uintptr) (some, mine bool) {
	var p path
	p.node(n, "/cpulist")
	var f file
	if !f.open(&p) {
		return false, false
	}
	for {
		low, high, ok := f.span()
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
	f.close()
	return some, mine
}

// maxProcessors is the most that Linux can be built for on amd64.
const maxProcessors = 8192

// mayRun has a bit for each processor on which the thread that calls Probe may run.
var mayRun [mayRunMask + 1]uint64

const mayRunMask = maxProcessors/64 - 1

// affinity fills mayRun. It reports false when the kernel does not tell.
func affinity() bool {
	mayRun = [mayRunMask + 1]uint64{}
	_, errno := raw.Sys(syscall.SYS_SCHED_GETAFFINITY, 0, maxProcessors/8, uintptr(unsafe.Pointer(&mayRun)), 0, 0, 0)
	return errno == 0
}

// allowed is the set of nodes that the kernel lets this process use. Where it does
// not say, it is all: Resolve then finds out.
func allowed(online uint64) uint64 {
	set, ok := memsAllowed()
	if !ok {
		return online
	}
	return set[0]
}

// allNodes is a set with room for each node that a kernel could have.
type allNodes [16]uint64

func memsAllowed() (set allNodes, ok bool) {
	const flag = 4 // MPOL_F_MEMS_ALLOWED
	_, errno := raw.Sys(syscall.SYS_GET_MEMPOLICY, 0, uintptr(unsafe.Pointer(&set)), 64*uintptr(len(set)), 0, flag, 0)
	return set, errno == 0
}

// onlyFirst reports whether the set is node 0.
func onlyFirst(set *allNodes) bool {
	rest := set[0] ^ 1
	for _, word := range set[1:] {
		rest |= word
	}
	return rest == 0
}
