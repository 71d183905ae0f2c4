package bench

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// ways are contenders by name: the ways of testdata/bench_alloc.c to allocate.
func ways(b *testing.B, names ...string) []allocator {
	var all []allocator
	for _, name := range names {
		all = append(all, with(b, name))
	}
	return all
}

// BenchmarkBenchAlloc is what it takes to allocate and to release blocks of each hint
// with ta_alloc and ta_free, as multiples of malloc and free.
func BenchmarkBenchAlloc(b *testing.B) {
	program := testlib.CC(b, "bench_alloc.c", "-O2")
	var cases []string
	for _, what := range []string{"pair", "alloc", "release"} {
		for _, size := range []string{"64", "1024", "16384", "262144", "1048576", "4194304",
			"16777216"} {
			cases = append(cases, what+"/"+size)
		}
	}
	all := ways(b, "malloc", "warm", "hot", "cold", "pin_fast", "prefer_fast")
	contest{all, "ns", 5, 2}.run(b, cases, func(b *testing.B, a allocator, name string) float64 {
		what, size, _ := strings.Cut(name, "/")
		release := "ta_free"
		if a.name == "malloc" {
			release = "free"
		}
		return a.number(b, program, what, a.name, size, release)
	})
}

// BenchmarkMixedHints is a thread that allocates for one hint against one that allocates
// for two in turn, and frees both: from heaps beside each other.
func BenchmarkMixedHints(b *testing.B) {
	program := testlib.CC(b, "bench_alloc.c", "-O2")
	cases := []string{
		"pair/64/free", "pair/64/ta_free", "batch/64/free", "batch/64/ta_free",
		"batch/1024/free", "pair/65536/free", "batch/65536/free", "pair/16777216/free",
	}
	all := ways(b, "hot", "hot+cold", "malloc", "malloc+hot", "set_hot", "set_hot+set_cold")
	all = append(all, with(b, "set_hot+set_cold, a rule", "TA_RULES=size>=64M:cold"))
	contest{all, "ns", 5, 2}.run(b, cases, func(b *testing.B, a allocator, name string) float64 {
		part := strings.Split(name, "/")
		way, _, _ := strings.Cut(a.name, ",")
		return a.number(b, program, part[0], way, part[1], part[2])
	})
}
