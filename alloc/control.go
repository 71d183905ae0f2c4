package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// PlacementControl places the n bytes at addr, fresh memory of the control plane, on the slowest
// tier's nodes: no tier is charged for it, so it must not take room in a faster tier. The kernel
// does not promote it. It gets no huge pages, of which the Go runtime would touch little more than
// the beginning.
func PlacementControl(addr, n uintptr) {
	slow := placements[config.TierSlow&(placementSlots-1)].nodes
	if slow.Mode != numa.Default {
		slow.Mode &^= numa.Balanced
		slow.Promote = 0
		numa.Bind(addr, n, &slow, false)
	}
	raw.Sys(sysMadvise, addr, n, madvNoHugePage, 0, 0, 0)
}
