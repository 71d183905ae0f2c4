package history

import (
	"math"

	"tieralloc/stats"
)

// Region is memory of one tier.
type Region struct {
	Start, End uintptr
	Tier       uint32
	Known      bool // Heat is known
	Heat       float64
}

// Most joined shifts: neighbours within 64 KiB << shift are one row.
const (
	apart    = 20 // so far only neighbours that adjoin, of one tier
	together = 48 // the whole address space
)

// Rows joins regions, which are in order and do not overlap, to at most stats.HistoryRows rows:
// first neighbours that adjoin in one tier, in blocks of memory as small as possible, then any. The
// heat of a row is the mean over its known bytes, its tier that of most of its bytes.
func Rows(regions []Region) []stats.HeatRow {
	for shift := 0; ; shift++ {
		rows := group(regions, min(shift, apart), max(0, shift-apart))
		if len(rows) <= stats.HistoryRows || shift == apart+together {
			return rows[:min(len(rows), stats.HistoryRows)]
		}
	}
}

// group makes rows of neighbours in blocks of 64 KiB << tight that adjoin and are alike, and of any
// in blocks of 64 KiB << loose. 0 joins none.
func group(regions []Region, tight, loose int) []stats.HeatRow {
	var rows []stats.HeatRow
	for first, i := 0, 0; i < len(regions); i++ {
		if i+1 < len(regions) {
			a, b := &regions[i], &regions[i+1]
			alike := a.End == b.Start && a.Tier == b.Tier
			if alike && within(a, b, tight) || within(a, b, loose) {
				continue
			}
		}
		rows = append(rows, row(regions[first:i+1]))
		first = i + 1
	}
	return rows
}

func within(a, b *Region, shift int) bool {
	return shift != 0 && a.Start>>(16+shift) == b.Start>>(16+shift)
}

// row is one row of regions. It has one region at least.
func row(regions []Region) stats.HeatRow {
	var tiers [4]uintptr
	var known, heat float64
	for i := range regions {
		r := &regions[i]
		bytes := r.End - r.Start
		tiers[r.Tier&3] += bytes
		if r.Known {
			known += float64(bytes)
			heat += float64(bytes) * r.Heat
		}
	}
	level := uint8(Unknown)
	if known > 0 {
		level = Level(heat / known)
	}
	most := 0
	for t := range tiers {
		if tiers[t] > tiers[most] {
			most = t
		}
	}
	start := regions[0].Start
	pages := (regions[len(regions)-1].End - start) / 4096
	return stats.HeatRow{Start: uint64(start), Pages: uint32(min(pages, math.MaxUint32)),
		Heat: level, Tier: uint8(most)}
}
