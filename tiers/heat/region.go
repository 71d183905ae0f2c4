package heat

import (
	"cmp"
	"slices"
)

// RegionBytes is the size of the regions that Regions makes: that of a huge page.
const RegionBytes = 2 << 20

// Range is memory from Start up to, but not including, End.
type Range struct{ Start, End uintptr }

// from is the index of the first region that ends above an address.
func from(regions []Range, addr uintptr) int {
	i, _ := slices.BinarySearchFunc(regions, addr, func(r Range, addr uintptr) int {
		if r.End <= addr {
			return -1
		}
		return cmp.Compare(r.End, addr)
	})
	return i
}

// overlap is how many bytes two ranges share.
func overlap(a, b Range) uintptr {
	start, end := max(a.Start, b.Start), min(a.End, b.End)
	if end <= start {
		return 0
	}
	return end - start
}

// bytesOf is how many bytes regions have together.
func bytesOf(regions []Range) (bytes uintptr) {
	for _, r := range regions {
		bytes += r.End - r.Start
	}
	return bytes
}

// sharing is how many bytes of a range are of regions, if it overlaps two or more, else 0.
func sharing(regions []Range, r Range) (bytes uintptr) {
	first := from(regions, r.Start)
	i := first
	for ; i < len(regions) && regions[i].Start < r.End; i++ {
		bytes += overlap(regions[i], r)
	}
	if i-first < 2 {
		return 0
	}
	return bytes
}

// spread adds the tally of a range to those of the regions that it overlaps, by their shares of it.
func spread(regions []Range, tallies []tally, r Range, t tally) {
	for i := from(regions, r.Start); i < len(regions) && regions[i].Start < r.End; i++ {
		share := float64(overlap(regions[i], r)) / float64(r.End-r.Start)
		tallies[i].touched += share * t.touched
		tallies[i].pages += share * t.pages
	}
}

// spans are the least ranges that hold all regions without holding anything else.
func spans(regions []Range) []Range {
	var all []Range
	for _, r := range regions {
		if last := len(all) - 1; last >= 0 && all[last].End == r.Start {
			all[last].End = r.End
		} else {
			all = append(all, r)
		}
	}
	return all
}
