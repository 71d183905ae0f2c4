package region

import (
	"math/rand/v2"
	"testing"

	"tieralloc/alloc"
	"tieralloc/tiers/heat"
)

// kernel has the policy of each slice of memory. Slices that adjoin are one mapping if they have
// the same.
type kernel struct {
	other map[uintptr]bool // not the plain policy
	n     uintptr          // slices
}

func (k *kernel) distinguish(r *alloc.Region, plain bool) bool {
	for at := r.Start / slice; at < (r.Start+r.Bytes)/slice; at++ {
		k.other[at] = !plain
	}
	return true
}

// mapping is the slices from first up to before end that are one mapping with a region.
func (k *kernel) mapping(r *Region) (first, end uintptr) {
	first, end = r.Start()/slice, r.End()/slice
	for first > 1 && k.other[first-1] == k.other[first] {
		first--
	}
	for end <= k.n && k.other[end] == k.other[end-1] {
		end++
	}
	return first, end
}

// mappings is how many there are.
func (k *kernel) mappings() (n int) {
	for at := uintptr(2); at <= k.n; at++ {
		if k.other[at] != k.other[at-1] {
			n++
		}
	}
	return n + 1
}

// sample measures regions a part after the other. A touch of a slice counts for its mapping.
func (k *kernel) sample(t *testing.T, l *List, m *Mappings, most int,
	touches func(at uintptr) float64) []heat.Rate {
	rates, seen := make([]heat.Rate, len(l.All)), make([]int, len(l.All))
	for _, part := range l.Parts(most) {
		var regions []Region
		for _, i := range part {
			regions = append(regions, l.All[i])
			seen[i]++
		}
		m.TellApart(regions, false, k.distinguish)
		if n := k.mappings(); n > 2*most+4*longestRun {
			t.Errorf("%d mappings, to tell apart %d", n, most)
		}
		for _, i := range part {
			first, end := k.mapping(&l.All[i])
			sum := 0.0
			for at := first; at < end; at++ {
				sum += touches(at)
			}
			size := float64(l.All[i].Bytes() / slice)
			rates[i] = heat.Rate{PerSecond: sum * size / float64(end-first), Look: 1}
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("region %d of %d is in %d parts", i, len(seen), n)
		}
	}
	return rates
}

// TestParts: what is hot is found where each block of a large heap lies among cold ones, though the
// kernel tells apart a few of them only at a time. The heap changes from sample to sample, and has
// free memory between its regions.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, most := range []int{20_000, 6000, 2000, 600} {
		const n = 10_000
		k := kernel{map[uintptr]bool{}, n}
		hot := func(at uintptr) bool { return at%4 == 1 }
		var l List
		var m Mappings
		for range 4 {
			pieces := tiled(rng, n)
			inUse := map[uintptr]bool{}
			for i := range pieces {
				inUse[pieces[i].Start/slice] = true
			}
			l.Renew(surveyOf(pieces), n, n)
			rates := k.sample(t, &l, &m, most, func(at uintptr) float64 {
				if hot(at) && inUse[at] {
					return 100
				}
				return 0
			})
			for i := range l.All {
				isHot := hot(l.All[i].Start() / slice)
				if isHot != (rates[i].PerSecond > 10) || !isHot && rates[i].PerSecond > 0 {
					t.Fatalf("%d at a time: region %d of %d has rate %.1f, hot %v", most, i,
						len(l.All), rates[i].PerSecond, isHot)
				}
			}
		}
	}
}

// TestPartsAlike: each part has about as many regions as the others, from everywhere.
func TestPartsAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var l List
	l.Renew(surveyOf(tiled(rng, 20_000)), 20_000, 20_000)
	parts := l.Parts(4000)
	for p, part := range parts {
		first := 0
		for _, i := range part {
			if i < len(l.All)/2 {
				first++
			}
		}
		even := len(l.All) / len(parts)
		if len(part) < even*9/10 || len(part) > even*11/10 || first < even*4/10 ||
			first > even*6/10 {
			t.Errorf("part %d of %d: %d regions, %d in the first half", p, len(parts), len(part),
				first)
		}
	}
	l.Renew(surveyOf(nil), 1, 1)
	if parts := l.Parts(4000); len(parts) != 1 || len(parts[0]) != 0 {
		t.Errorf("parts of nothing: %v", parts)
	}
}
