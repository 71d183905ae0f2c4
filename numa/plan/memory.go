package plan

import (
	"tieralloc/internal/cgroup"
	"tieralloc/internal/config"
	"tieralloc/internal/sysfs"
	"tieralloc/numa"
)

// Memory is how much memory each tier has, in bytes: what its nodes have, or what the control group
// of this process may use, whichever is less; 0 where that cannot be read.
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
