package document

import "tieralloc/stats"

func (w *writer) tiers(r *stats.Report) {
	w.key("tiers")
	w.open('{')
	for i := uint(0); i < stats.TierCount; i++ {
		w.key(tierNames[i&3])
		w.tier(r, i)
	}
	w.close('}')
}

func (w *writer) tier(r *stats.Report, tier uint) {
	t := &r.Tiers[tier&3]
	w.open('{')
	w.count("alloc_calls", t.AllocCalls)
	w.count("free_calls", t.FreeCalls)
	w.count("bytes_current", t.BytesCurrent)
	w.count("bytes_peak", t.BytesPeak)
	w.count("bytes_total_alloc", t.BytesTotalAlloc)
	w.count("bytes_total_freed", t.BytesTotalFreed)
	w.count("blocks_entered", t.BlocksEntered)
	w.count("blocks_left", t.BlocksLeft)
	w.count("bytes_entered", t.BytesEntered)
	w.count("bytes_left", t.BytesLeft)
	w.count("simulated_wait_ns", t.SimulatedWaitNs)
	w.count("capacity_soft", t.CapacitySoft)
	w.count("capacity_hard", t.CapacityHard)
	w.count("kernel_moved_in", t.KernelMovedIn)
	w.count("kernel_moved_out", t.KernelMovedOut)
	w.count("capacity_violations", t.CapacityViolations)
	w.count("soft_exceeded", t.SoftExceeded)
	w.count("rerouted", t.Rerouted)
	w.count("routed_slow", t.RoutedSlow)
	w.count("refused", t.Refused)
	w.count("throttle_sleeps", t.ThrottleSleeps)
	w.count("throttle_overshoot_ns", t.ThrottleOvershootNs)
	w.count("throttle_bw", t.ThrottleBW)
	w.count("throttle_burst", t.ThrottleBurst)
	w.count("throttle_lat_ns", t.ThrottleLatNs)
	w.word("hugepages", hugeNames[t.HugePagesWanted&7])
	w.count("hugepage_fallbacks", t.HugeFallbacks)
	w.key("nodes")
	w.open('[')
	for i := uint64(0); i < stats.NodeMax; i++ {
		if t.TierNodes>>(i&63)&1 != 0 {
			w.item()
			w.dec(i)
		}
	}
	w.close(']')
	w.sameMemory(r, tier)
	w.key("bytes_per_node")
	w.open('{')
	for i := uint64(0); i < r.NodeCount && i < stats.NodeMax; i++ {
		w.item()
		w.put('"')
		w.dec(r.Nodes[i&(stats.NodeMax-1)])
		w.text("\": ")
		w.dec(t.BytesPerNode[i&(stats.NodeMax-1)])
	}
	w.close('}')
	w.migrations(&t.Migrations)
	w.close('}')
}

// sameMemory lists the tiers that are on the same nodes: their caps hold for all of them together.
func (w *writer) sameMemory(r *stats.Report, tier uint) {
	w.key("same_memory")
	w.open('[')
	for i := uint(0); i < stats.TierCount; i++ {
		if nodes := r.Tiers[tier&3].TierNodes; i != tier && nodes != 0 &&
			r.Tiers[i&3].TierNodes == nodes {
			w.item()
			w.put('"')
			w.text(tierNames[i&3])
			w.put('"')
		}
	}
	w.close(']')
}

func (w *writer) migrations(m *stats.Migrations) {
	w.key("migrations")
	w.open('{')
	w.count("attempted", m.Attempted)
	w.count("moved_pages", m.MovedPages)
	w.count("failed_pages", m.FailedPages)
	w.close('}')
}
