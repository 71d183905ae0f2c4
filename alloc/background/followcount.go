package background

import (
	"tieralloc/alloc/region"
	"tieralloc/internal/config"
	"tieralloc/stats"
	"tieralloc/stats/history"
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
	stats.KeepSample(history.Rows(f.rows()))
}

// rows is the last sample for the live page.
func (f *follower) rows() []history.Region {
	all := make([]history.Region, len(f.planned))
	for i := range all {
		p := &f.planned[i]
		all[i] = history.Region{Start: p.Start, End: p.End, Tier: f.list.All[i].Tier(),
			Known: p.Known, Heat: p.Heat}
	}
	return all
}

// heatCauses is how the live page names a move, by its cause.
var heatCauses = [...]uint8{follow.CapExceeded: stats.HeatCapExceeded,
	follow.Room: stats.HeatRoom, follow.Hotter: stats.HeatHotter, follow.Colder: stats.HeatColder}

// keep has the live page show a move of so many bytes of a region.
func keep(r *region.Region, bytes uintptr, to uint8, cause uint8) {
	stats.KeepMove(stats.HeatMove{Start: uint64(r.Start()), End: uint64(r.End()),
		Bytes: uint64(bytes), From: uint8(r.Tier()), To: to, Cause: cause})
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
