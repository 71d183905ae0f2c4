package region

import (
	"cmp"
	"math"
	"slices"

	"tieralloc/alloc"
)

// Region is pieces of the heap that lie one behind the other in one tier, and move together. It has
// a piece at least.
type Region struct {
	Pieces []alloc.Region
}

// Start is the address of the first byte.
func (r *Region) Start() uintptr { return r.Pieces[0].Start }

// End is the address behind the last byte.
func (r *Region) End() uintptr {
	last := &r.Pieces[len(r.Pieces)-1]
	return last.Start + last.Bytes
}

// Bytes is its size.
func (r *Region) Bytes() uintptr { return r.End() - r.Start() }

// Tier is where it lies, config's number.
func (r *Region) Tier() uint32 { return r.Pieces[0].Tier }

// List lists what of the heap is in use.
type List struct {
	// All are the regions in the order of their addresses.
	All []Region

	survey alloc.Survey
	pieces []alloc.Region
}

// Renew makes the list anew. next is alloc.SurveyNext. most is how many regions are told apart at
// most: if there are more, neighbours are one region, and there are at most joined of them. That
// does not bound it where neighbours differ in tier or rank.
func (l *List) Renew(next func(*alloc.Survey) int, most, joined int) {
	l.survey, l.pieces = alloc.Survey{}, l.pieces[:0]
	for n := next(&l.survey); n > 0; n = next(&l.survey) {
		l.pieces = append(l.pieces, l.survey.Regions[:n]...)
	}
	// mostly sorted already; stable, because that is less code than SortFunc
	slices.SortStableFunc(l.pieces, func(a, b alloc.Region) int {
		return cmp.Compare(a.Start, b.Start)
	})
	l.pieces = apart(l.pieces)
	if len(l.pieces) > most {
		most = joined
	}
	l.All = group(l.All, l.pieces, most)
}

// RenewPart makes the list anew of at most so many pieces, each a region of its own. If there are
// more, it takes those in some blocks of memory of partBytes, which are chosen by chance and stay
// chosen while the heap keeps its size: part says so. Before and behind a run of neighbours there
// may be memory that is not listed, so a run has an odd number (see Mappings).
func (l *List) RenewPart(next func(*alloc.Survey) int, most int) (part bool) {
	l.Renew(next, math.MaxInt, 0)
	if len(l.pieces) <= most {
		return false
	}
	chosen := uint64(float64(most) / float64(len(l.pieces)) * (1 << 32))
	l.All = slices.DeleteFunc(l.All, func(r Region) bool {
		return uint64(r.Start()/partBytes)*0x9e3779b97f4a7c15>>32 >= chosen
	})
	l.All = oddRuns(l.All)
	return true
}

// partBytes is large enough for few runs to have memory that is not listed beside them, and small
// enough for many blocks, so that chance chooses neither hot nor cold ones.
const partBytes = 2 << 20

// oddRuns drops the last of the neighbours of each run that has an even number.
func oddRuns(all []Region) []Region {
	kept := all[:0]
	for first := 0; first < len(all); {
		end := first + 1
		for end < len(all) && all[end].Start() == all[end-1].End() {
			end++
		}
		kept = append(kept, all[first:end-(end-first+1)%2]...)
		first = end
	}
	return kept
}

// Bytes is the size of all regions.
func (l *List) Bytes() (n uintptr) {
	for i := range l.All {
		n += l.All[i].Bytes()
	}
	return n
}

// apart drops pieces that overlap the one before: the heap changed while it was listed.
func apart(pieces []alloc.Region) []alloc.Region {
	end := uintptr(0)
	return slices.DeleteFunc(pieces, func(r alloc.Region) bool {
		if r.Start < end {
			return true
		}
		end = r.Start + r.Bytes
		return false
	})
}

// largestShift bounds the blocks of memory in which neighbours are one region: to 64 GiB.
const largestShift = 20

// group joins neighbouring pieces that lie in the same aligned block of memory, as small a block as
// keeps the number of regions within most.
func group(all []Region, pieces []alloc.Region, most int) []Region {
	for shift := 0; ; shift++ {
		all = all[:0]
		first := 0
		for i := range pieces {
			if i+1 < len(pieces) && joins(&pieces[i], &pieces[i+1], shift) {
				continue
			}
			all = append(all, Region{pieces[first : i+1]})
			first = i + 1
		}
		if len(all) <= most || shift == largestShift {
			return all
		}
	}
}

// joins reports whether two pieces are one region where those of one aligned block are: of 64 KiB
// at shift 0, which has no two, of twice as much at 1, and so on.
func joins(a, b *alloc.Region, shift int) bool {
	return shift != 0 && a.Start+a.Bytes == b.Start && a.Tier == b.Tier && a.Rank == b.Rank &&
		a.Fixed == b.Fixed && a.Start>>(16+shift) == b.Start>>(16+shift)
}
