package background

import (
	"tieralloc/internal/config"
	"tieralloc/stats"
	"tieralloc/tiers"
	"tieralloc/tiers/follow"
	"tieralloc/tiers/heat"
)

// kinds is how the report counts a move, by its cause.
var kinds = [...]uintptr{follow.CapExceeded: tiers.DownSoftcap, follow.Room: tiers.UpRoom,
	follow.Hotter: tiers.UpHotter, follow.Colder: tiers.DownColder}

// count has the report show the last sample.
func (f *follower) count() {
	tiers.CountSource(sourceOf(f.sources[0]))
	var hot, cold [config.TierCount]uint64
	for i, isHot := range follow.Hot(f.planned) {
		r := &f.list.All[i]
		switch {
		case isHot:
			hot[r.Tier()] += uint64(r.Bytes())
		case f.planned[i].Known:
			cold[r.Tier()] += uint64(r.Bytes())
		}
	}
	tiers.CountSample(len(f.planned), &hot, &cold)
}

// sourceOf is the report's number of a source.
func sourceOf(s heat.Source) uint64 {
	switch s.(type) {
	case *heat.Referenced:
		return stats.SourceReferenced
	case *heat.Damon:
		return stats.SourceDamon
	case *heat.Written:
		return stats.SourceWriteProtection
	case *heat.SoftDirty:
		return stats.SourceSoftDirty
	}
	return stats.SourceNone
}
