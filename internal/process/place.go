package process

import (
	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/numa"
	"tieralloc/numa/plan"
	"tieralloc/numa/probe"
)

var (
	topology numa.Topology
	tierMap  numa.Map
)

// placeTiers determines the nodes of the tiers. It prints one line on standard error for each bad
// setting and returns their number. On a machine of one node, and without a setting that names
// nodes, it only reads one file.
func placeTiers(envp uintptr) (bad uintptr) {
	named, parts := uint64(0), uint32(0)
	for i := range config.InForce.Tiers {
		t := &config.InForce.Tiers[i]
		named |= t.Nodes
		parts |= t.SoftPart | t.HardPart
	}
	if named == 0 && numa.Single() {
		tierMap.Nodes, tierMap.Simulated = 1, true
	} else {
		bad = resolve()
	}
	if parts != 0 {
		memory := plan.Memory(&tierMap)
		bad += config.InForce.SetParts(envp, &memory, 2)
	}
	if !tierMap.Simulated {
		account := tierMap.Accounts()
		bad += config.InForce.ShareCaps(envp, &account, 2)
	}
	alloc.SetPlacements(&config.InForce, &tierMap)
	alloc.SetKernelMoves(&config.InForce, &tierMap)
	return bad
}

// resolve fills topology and tierMap on a machine with several nodes.
func resolve() (bad uintptr) {
	probe.Topology(&topology)
	bad = plan.Resolve(&config.InForce, &topology, &tierMap, 2)
	bad += plan.RefuseBalance(&config.InForce, &tierMap, 2)
	plan.Balance(&config.InForce, &topology, &tierMap, numa.BalancingMode())
	return bad
}
