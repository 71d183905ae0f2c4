package config

// cost is the cost of a tier in a model.
type cost struct {
	bw  uint64 // bytes per second
	lat uint64 // nanoseconds
}

// cxl holds the costs of HBM or near memory, of DRAM, and of memory behind CXL under load.
var cxl = [4]cost{
	TierFast:   {50 << 30, 2 * microsecond},
	TierNormal: {20 << 30, 8 * microsecond},
	TierSlow:   {5 << 30, 40 * microsecond},
}

// applyModel sets those costs of the tiers that have no variable of their own. given has a bit for
// each variable that has a value.
func (s *Settings) applyModel(given *names) {
	if s.Model != ModelCXL {
		return
	}
	for tier := uintptr(0); tier < uintptr(TierCount); tier++ {
		t, c, first := &s.Tiers[tier&3], &cxl[tier&3], varTiers+tier*tierVars
		if !given.has(first + tierBW) {
			t.BW = c.bw
		}
		if !given.has(first + tierLat) {
			t.Lat = c.lat
		}
	}
}
