package numa

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// area is a mapping of the program, by /proc's maps and numa_maps together.
type area struct {
	start, end uint64
	policy     string
	words      []string      // further words of numa_maps
	bytes      map[int]int64 // by node
}

// policyWords are the policies in whose name numa_maps has a blank.
var policyWords = strings.NewReplacer("prefer (many)", "prefer(many)", "weighted interleave",
	"weighted-interleave")

// areas reads the two files that guest.h's maps() leaves.
func (r *results) areas(t *testing.T) []area {
	t.Helper()
	ends := map[uint64]uint64{}
	for line := range strings.Lines(r.read(t, "maps")) {
		var start, end uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			t.Fatalf("maps: %q: %v", line, err)
		}
		ends[start] = end
	}
	var all []area
	for line := range strings.Lines(r.read(t, "numa_maps")) {
		fields := strings.Fields(policyWords.Replace(line))
		start, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil || len(fields) < 2 {
			t.Fatalf("numa_maps: %q: %v", line, err)
		}
		a := area{start: start, end: ends[start], policy: fields[1], words: fields[2:],
			bytes: map[int]int64{}}
		unit, counts := int64(4096), map[int]int64{}
		for _, word := range a.words {
			var node int
			var n int64
			if _, err := fmt.Sscanf(word, "N%d=%d", &node, &n); err == nil {
				counts[node] += n
			} else if _, err := fmt.Sscanf(word, "kernelpagesize_kB=%d", &n); err == nil {
				unit = n << 10
			}
		}
		for node, n := range counts {
			a.bytes[node] = n * unit
		}
		if a.end == 0 {
			t.Fatalf("maps has no %x", a.start)
		}
		all = append(all, a)
	}
	return all
}

// blockAreas are the mappings in which the blocks of some size are that plain.c has
// listed; size 0 stands for all.
func (r *results) blockAreas(t *testing.T, size int64) []area {
	t.Helper()
	all := r.areas(t)
	found := map[int]bool{}
	for line := range strings.Lines(r.read(t, "blocks")) {
		var at uint64
		var n int64
		if _, err := fmt.Sscanf(line, "%x %d", &at, &n); err != nil {
			t.Fatalf("blocks: %q: %v", line, err)
		}
		if size != 0 && n != size {
			continue
		}
		for at, end := at, at+uint64(n); at < end; { // it may reach over several
			i := slices.IndexFunc(all, func(a area) bool { return a.start <= at && at < a.end })
			if i < 0 {
				t.Fatalf("no mapping has the address %x", at)
			}
			found[i] = true
			at = all[i].end
		}
	}
	var some []area
	for _, i := range slices.Sorted(maps.Keys(found)) {
		some = append(some, all[i])
	}
	return some
}

// onlyOn fails the test unless everything in the areas is on the nodes.
func onlyOn(t *testing.T, areas []area, nodes ...int) {
	t.Helper()
	for _, a := range areas {
		for node, n := range a.bytes {
			if n != 0 && !slices.Contains(nodes, node) {
				t.Errorf("%x-%x (%s) has %d KiB on node %d, beside nodes %v: %v", a.start, a.end,
					a.policy, n>>10, node, nodes, a.bytes)
			}
		}
	}
}

// sum adds up areas by node.
func sum(areas []area) map[int]int64 {
	total := map[int]int64{}
	for _, a := range areas {
		for node, n := range a.bytes {
			total[node] += n
		}
	}
	return total
}

// hugeBytes is how much of the program is in transparent huge pages, by its copy of smaps.
func (r *results) hugeBytes(t *testing.T) (bytes int64) {
	t.Helper()
	for line := range strings.Lines(r.read(t, "smaps")) {
		var kib int64
		if _, err := fmt.Sscanf(line, "AnonHugePages: %d kB", &kib); err == nil {
			bytes += kib << 10
		}
	}
	return bytes
}
