package region

// Parts splits the numbers of the regions into parts of about most regions at the most, for the
// kernel to tell apart those of one part at a time. Each part has memory from everywhere in the
// heap, so that a program uses all alike. If there are several parts, a run of neighbours in one
// has an odd number, because there is memory of others beside it (see Mappings).
func (l *List) Parts(most int) [][]int {
	parts := make([][]int, max(1, (len(l.All)+most-1)/most))
	part, left := 0, 0
	for i := range l.All {
		if len(parts) > 1 && left == 0 {
			beside := i > 0 && l.All[i-1].End() == l.All[i].Start()
			part, left = smallest(parts, part, beside), l.oddRun(i)
		}
		parts[part] = append(parts[part], i)
		left--
	}
	return parts
}

// smallest is the number of the smallest part. It is another one than part, if beside is set.
func smallest(parts [][]int, part int, beside bool) int {
	least := -1
	for p := range parts {
		if (!beside || p != part) && (least < 0 || len(parts[p]) < len(parts[least])) {
			least = p
		}
	}
	return least
}

// longestRun is an odd number.
const longestRun = 31

// oddRun is how many neighbours from the first on are one run.
func (l *List) oddRun(first int) int {
	n := 1
	for n < longestRun && first+n < len(l.All) &&
		l.All[first+n-1].End() == l.All[first+n].Start() {
		n++
	}
	return n - (n+1)%2
}
