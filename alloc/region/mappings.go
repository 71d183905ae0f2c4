package region

import "tieralloc/alloc"

// Mappings has the kernel keep each region a mapping of its own, so that smaps tells how much of it
// was touched. Of neighbouring regions every other one gets a policy that differs in name only. The
// zero value is ready.
type Mappings struct {
	known map[uintptr]mapped // by start
	part  bool               // of the last call
	since int                // calls since all was done anew
}

// mapped is how a region was told apart.
type mapped struct {
	end   uintptr
	tier  uint32
	plain bool
}

// anewEvery is how many calls pass, at least, before all is done anew.
const anewEvery = 16

// TellApart does what is not done yet. distinguish is alloc.Distinguish. joined says that the last
// sample found regions in one mapping: then what is known is wrong, because the program or the heap
// changed policies.
//
// part says that there is memory beside the regions that is not among them, with the policy of its
// tier. Then the first and the last of a run of neighbours have the other policy.
func (m *Mappings) TellApart(regions []Region, joined, part bool,
	distinguish func(*alloc.Region, bool) bool) {
	if part != m.part {
		m.known, m.part = nil, part
	}
	if m.since++; joined && m.since >= anewEvery {
		m.known, m.since = nil, 0
	}
	known := make(map[uintptr]mapped, len(regions))
	end, plain := uintptr(0), false
	for i := range regions {
		r := &regions[i]
		was, ok := m.known[r.Start()]
		is := mapped{r.End(), r.Tier(), was.plain}
		ok = ok && was == is
		beside := r.Start() == end
		if !ok || beside && is.plain == plain || !beside && is.plain && part {
			is.plain = beside && !plain || !beside && !part
			ok = true
			for k := range r.Pieces {
				ok = distinguish(&r.Pieces[k], is.plain) && ok
			}
		}
		if ok {
			known[r.Start()] = is
		}
		end, plain = r.End(), is.plain
	}
	m.known = known
}

// Moved notes that a region lies in a tier by now, with the policy of that.
func (m *Mappings) Moved(r *Region, tier uint32) {
	if m.known != nil {
		m.known[r.Start()] = mapped{r.End(), tier, true}
	}
}
