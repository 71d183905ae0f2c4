// Package numa binds memory to the memory nodes of the machine, and asks on which nodes pages lie.
// Package probe reads the nodes from sysfs, package plan assigns nodes to the tiers, and Bind in
// this package applies the result.
//
// It is freestanding Go (docs/runtime.md): no allocation, no panic, no runtime.
//
// A set of nodes is a word with a bit for each of the nodes 0 to 63. Linux allows 1024. The library
// leaves memory on nodes above 63 alone, and Topology.Beyond reports such nodes.
package numa

// Node describes one memory node, as sysfs does. A figure of 0 is not known.
type Node struct {
	Distance       [64]uint8 // from this node to the others, 10 to itself
	MemTotal       uint64    // bytes
	ReadLatency    uint32    // ns, as the nearest CPUs see it
	WriteLatency   uint32    // ns
	ReadBandwidth  uint32    // MB/s
	WriteBandwidth uint32    // MB/s
	MemoryTier     uint32    // the kernel's number, lower is faster; see Topology.Tiered
}

// Topology is the machine's memory nodes as sysfs describes them. At 6 KiB it belongs in static or
// mapped memory.
//
//	CPUs, Memory, Tiered ⊆ Online
//	Running ⊆ CPUs
type Topology struct {
	Online  uint64
	Memory  uint64 // nodes with memory
	CPUs    uint64 // nodes with processors
	Running uint64 // nodes with processors on which the calling thread may run
	Allowed uint64 // nodes whose memory this process may use (cpuset, container)
	Tiered  uint64 // nodes whose MemoryTier is known
	Beyond  bool   // a node above 63 is online
	Node    [64]Node
}

// Usable returns the set of nodes whose memory this process may use.
func (t *Topology) Usable() uint64 { return t.Memory & t.Allowed }

// Only sets t to a machine with one node, 0, without figures.
func (t *Topology) Only() {
	*t = Topology{} // a literal of these values would be a copy of the whole in the library
	t.Online, t.Memory, t.CPUs, t.Running, t.Allowed = 1, 1, 1, 1, 1
	t.Node[0].Distance[0] = LocalDistance
}

// Distances in the unit of ACPI's table (SLIT).
const (
	LocalDistance  = 10
	RemoteDistance = 20
)

// Map is the placement of each tier. The zero value is not valid.
//
//	Simulated ⇒ every Place is the zero value
//	¬Simulated ⇒ every Place has nodes, all of them usable
//	¬Simulated ⇒ of two tiers the Nodes are equal or have none in common
//	Pin.Nodes = Tier[config.TierFast].Nodes
type Map struct {
	Tier      [4]Place // by config's Tier numbers
	Pin       Place    // for PIN_FAST: the fast tier's nodes and no others
	Nodes     uint64   // every node with memory, usable or not
	Simulated bool     // the tiers are accounts only; the library does not place memory
	Moving    bool     // the kernel's NUMA balancing is on, and may move memory of some tier
}

// Accounts returns, for each tier, the first tier with the same nodes, which may be itself. Tiers
// of one account are one memory: their caps hold for all of them together.
func (m *Map) Accounts() (first [4]uintptr) {
	for tier := range first {
		for first[tier&3] < uintptr(tier) && (m.Simulated ||
			m.Tier[first[tier&3]&3].Nodes != m.Tier[tier&3].Nodes) {
			first[tier&3]++
		}
	}
	return first
}
