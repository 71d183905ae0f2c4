package plan

import (
	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
	"tieralloc/internal/sysfs"
	"tieralloc/numa"
)

// Memory returns the bytes of memory of each tier: of its nodes, or of the control group's limit,
// whichever is less. They are 0 if they cannot be read.
func Memory(m *numa.Map) (bytes [4]uint64) {
	var limit cgroup.Memory
	cgroup.Read(&limit)
	for tier := uintptr(0); tier < uintptr(config.TierCount); tier++ {
		nodes := m.Tier[tier&3].Nodes
		if m.Simulated {
			nodes = m.Nodes
		}
		sum := uint64(0)
		for node := uintptr(0); node < 64; node++ {
			if nodes>>(node&63)&1 != 0 {
				sum += sysfs.Memory(node, "MemTotal:")
			}
		}
		if limit.Limit != 0 && sum != 0 {
			sum = min(sum, limit.Limit)
		}
		bytes[tier&3] = sum
	}
	return bytes
}
