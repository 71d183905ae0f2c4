package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// PlacementControl gives the n bytes at addr, fresh memory of the control plane, to the slowest
// tier's nodes: no tier is charged with it, so it is not to take room where room is scarce. It
// keeps the kernel's promotion away, and huge pages, of which the Go runtime would touch little
// more than the beginning.
func PlacementControl(addr, n uintptr) {
	slow := placements[config.TierSlow&(placementSlots-1)].nodes
	if slow.Mode != numa.Default {
		slow.Mode &^= numa.Balanced
		slow.Promote = 0
		numa.Bind(addr, n, &slow, false)
	}
	raw.Sys(sysMadvise, addr, n, madvNoHugePage, 0, 0, 0)
}
