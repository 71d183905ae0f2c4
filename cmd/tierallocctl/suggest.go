package main

import "slices"

// nearest returns the word of list that name most likely misspells, or "" if more than a third of
// its letters differ from every word.
func nearest(name string, list []string) string {
	best, at := "", len(name)/3+1
	for _, word := range list {
		if d := edits(name, word); d < at {
			best, at = word, d
		}
	}
	return best
}

// edits returns the number of insertions, deletions, replacements and swaps of neighbours that turn
// a into b (the optimal string alignment distance).
func edits(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = slices.Min([]int{last[j] + change, last[j+1] + 1, row[j] + 1})
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
