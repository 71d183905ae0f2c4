package region

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tieralloc/alloc"
)

const slice = 64 << 10

// piece is n slices from the at-th slice of the address space on.
func piece(at, n uintptr, tier uint32) alloc.Region {
	return alloc.Region{Block: at * slice, Start: at * slice, Bytes: n * slice, Tier: tier}
}

// surveyOf lists pieces some at a time.
func surveyOf(pieces []alloc.Region) func(*alloc.Survey) int {
	return func(s *alloc.Survey) int {
		n := copy(s.Regions[:min(7, len(pieces))], pieces)
		pieces = pieces[n:]
		return n
	}
}

// TestRenew: regions are in order and do not overlap, whatever the heap did while it was listed.
func TestRenew(t *testing.T) {
	var l List
	pieces := []alloc.Region{piece(9, 4, 0), piece(2, 1, 1), piece(9, 4, 0), piece(3, 2, 1),
		piece(11, 8, 0), piece(20, 1, 2)}
	l.Renew(surveyOf(pieces), 100, 100)
	var starts []uintptr
	for i := range l.All {
		starts = append(starts, l.All[i].Start()/slice)
	}
	if !slices.Equal(starts, []uintptr{2, 3, 9, 20}) || l.Bytes() != 8*slice {
		t.Errorf("regions at %d, %d bytes", starts, l.Bytes())
	}
	if l.Renew(surveyOf(tiled(rand.New(rand.NewPCG(1, 2)), 1000)), 500, 200); len(l.All) > 200 {
		t.Errorf("%d regions, not 200", len(l.All))
	}
	l.Renew(surveyOf(nil), 100, 100)
	if len(l.All) != 0 || l.Bytes() != 0 {
		t.Errorf("%d regions of an empty heap", len(l.All))
	}
}

// TestGroup: neighbours are one region where there would be too many, if they lie in one tier and
// nothing lies between them.
func TestGroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var pieces []alloc.Region
	for at := uintptr(1); len(pieces) < 5000; {
		p := piece(at, 1+uintptr(rng.IntN(4)), uint32(rng.IntN(20)/19))
		pieces = append(pieces, p)
		if at += p.Bytes / slice; rng.IntN(100) == 0 {
			at++
		}
	}
	for _, most := range []int{10000, 1000, 600} {
		all := group(nil, pieces, most)
		if len(all) > most || most < 5000 && len(all) < most/8 {
			t.Errorf("%d regions, at most %d", len(all), most)
		}
		var again []alloc.Region
		for i := range all {
			r := &all[i]
			again = append(again, r.Pieces...)
			sum := uintptr(0)
			for _, p := range r.Pieces {
				sum += p.Bytes
				if p.Tier != r.Tier() {
					t.Fatalf("a region lies in tiers %d and %d", p.Tier, r.Tier())
				}
			}
			if sum != r.Bytes() {
				t.Fatalf("a region of %d bytes has pieces of %d", r.Bytes(), sum)
			}
		}
		if !slices.Equal(again, pieces) {
			t.Fatal("pieces are lost")
		}
	}
	if all := group(nil, pieces, 1); len(all) == 0 {
		t.Error("no region")
	}
}

// TestTellApart: of two regions that adjoin one has the plain policy and the other has not, however
// the heap changes; nothing is done twice.
func TestTellApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	plain, calls := map[uintptr]bool{}, 0
	distinguish := func(r *alloc.Region, p bool) bool {
		calls++
		plain[r.Start] = p
		return true
	}
	var m Mappings
	all := group(nil, tiled(rng, 300), 1000)
	for round := range 40 {
		calls = 0
		m.TellApart(all, round == 30, distinguish)
		for i := 1; i < len(all); i++ {
			if all[i].Start() == all[i-1].End() &&
				plain[all[i].Start()] == plain[all[i-1].Start()] {
				t.Fatalf("round %d: regions %d and %d look alike", round, i-1, i)
			}
		}
		switch {
		case round == 0 || round == 30:
			if calls != len(all) {
				t.Errorf("round %d: %d of %d regions", round, calls, len(all))
			}
		case round%2 == 1 && calls > 0:
			t.Errorf("round %d: %d calls for nothing", round, calls)
		}
		if round%2 == 1 { // some end, some begin, one moves
			all = group(nil, tiled(rng, 300), 1000)
			all[7].Pieces[0].Tier = 2
			plain[all[7].Start()] = true
			m.Moved(&all[7], 2)
		}
	}
}

// TestRenewPart: of a large heap a part is listed, in whole blocks of memory that stay the same.
// Each region is told apart from what lies beside it.
func TestRenewPart(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pieces := tiled(rng, 20_000)
	var l List
	if l.RenewPart(surveyOf(pieces), len(pieces)) || len(l.All) != len(pieces) {
		t.Fatalf("%d regions of %d", len(l.All), len(pieces))
	}
	const most = 4000
	part := l.RenewPart(surveyOf(pieces), most)
	if !part || len(l.All) < most*3/4 || len(l.All) > most*5/4 {
		t.Fatalf("%d regions, not %d", len(l.All), most)
	}
	first := slices.Clone(l.All)
	plain := map[uintptr]bool{}
	var m Mappings
	m.TellApart(l.All, false, func(r *alloc.Region, p bool) bool {
		plain[r.Start] = p
		return true
	})
	blocks := map[uintptr]bool{}
	for i := range l.All {
		r := &l.All[i]
		blocks[r.Start()/partBytes] = true
		before := i > 0 && l.All[i-1].End() == r.Start()
		behind := i+1 < len(l.All) && l.All[i+1].Start() == r.End()
		if before && plain[r.Start()] == plain[l.All[i-1].Start()] ||
			(!before || !behind) && plain[r.Start()] {
			t.Fatalf("region %d of %d: %v beside others: %v, %v", i, len(l.All),
				plain[r.Start()], before, behind)
		}
	}
	if len(blocks) < 50 {
		t.Errorf("they are in %d blocks", len(blocks))
	}
	if l.RenewPart(surveyOf(pieces), most); !slices.EqualFunc(first, l.All,
		func(a, b Region) bool { return a.Start() == b.Start() }) {
		t.Error("other regions the second time")
	}
}

// tiled is pieces that adjoin, but for a tenth of them that are left out.
func tiled(rng *rand.Rand, n int) (pieces []alloc.Region) {
	for at := range uintptr(n) {
		if rng.IntN(10) > 0 {
			pieces = append(pieces, piece(1+at, 1, 0))
		}
	}
	return pieces
}

// TestNotDistinguished: what could not be done is tried again.
func TestNotDistinguished(t *testing.T) {
	var m Mappings
	all := group(nil, []alloc.Region{piece(1, 1, 0), piece(2, 1, 0)}, 10)
	for range 2 {
		calls := 0
		m.TellApart(all, false, func(*alloc.Region, bool) bool { calls++; return false })
		if calls != 2 {
			t.Errorf("%d calls for 2 regions", calls)
		}
	}
}
