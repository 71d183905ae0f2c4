package region

import (
	"slices"

	"tieralloc/alloc"
)

// Mappings has the kernel keep each region a mapping of its own, so that smaps tells how much of it
// was touched. Of neighbouring regions every other one gets a policy that differs in name only. The
// zero value is ready.
type Mappings struct {
	known map[uintptr]mapped // by start
	since int                // calls since all was done anew
}

// mapped is how a region was told apart.
type mapped struct {
	end    uintptr
	tier   uint32
	plain  bool
	pieces []alloc.Region // if not plain
}

// same reports that a region is told apart.
func (m mapped) same(r *Region) bool { return m.end == r.End() && m.tier == r.Tier() }

// anewEvery is how many calls pass, at least, before all is done anew.
const anewEvery = 16

// TellApart separates the regions that are not separate yet. distinguish is alloc.Distinguish.
// joined says that the last sample found regions in one mapping: then the notes are wrong, because
// the program or the heap changed policies.
//
// There may be memory beside the regions that is not among them, with the policy of its tier: free
// memory, or regions that are not told apart now. So the first of a run of neighbours has the other
// policy, and what was among the regions of the last call has the policy of its tier again.
func (m *Mappings) TellApart(regions []Region, joined bool,
	distinguish func(*alloc.Region, bool) bool) {
	if m.since++; joined && m.since >= anewEvery {
		m.known, m.since = nil, 0
	}
	known := make(map[uintptr]mapped, len(regions))
	end, plain := uintptr(0), false
	for i := range regions {
		r := &regions[i]
		is, ok := m.known[r.Start()]
		ok = ok && is.same(r)
		beside := r.Start() == end
		if !ok || is.plain && (!beside || plain) || !is.plain && beside && !plain {
			is = mapped{end: r.End(), tier: r.Tier(), plain: beside && !plain}
			ok = distinguishAll(r.Pieces, is.plain, distinguish)
			if !is.plain {
				is.pieces = slices.Clone(r.Pieces)
			}
		}
		if ok {
			known[r.Start()] = is
		}
		end, plain = r.End(), is.plain
	}
	for start, was := range m.known {
		if is, ok := known[start]; !was.plain && !(ok && is.end == was.end) {
			distinguishAll(was.pieces, true, distinguish)
		}
	}
	m.known = known
}

// distinguishAll reports whether it could be done for all pieces.
func distinguishAll(pieces []alloc.Region, plain bool,
	distinguish func(*alloc.Region, bool) bool) bool {
	ok := true
	for i := range pieces {
		ok = distinguish(&pieces[i], plain) && ok
	}
	return ok
}

// Moved notes that a region lies in a tier by now, with the policy of that.
func (m *Mappings) Moved(r *Region, tier uint32) {
	if m.known != nil {
		m.known[r.Start()] = mapped{end: r.End(), tier: tier, plain: true}
	}
}
