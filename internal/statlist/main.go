// Command statlist holds the list of all figures of the report: for each its key, unit, kind,
// meaning and exactness. From the list it writes
//
//	stats/figures.go             the structures of package stats, and with them the live page
//	stats/document/figures.go    the functions that write the figures as JSON
//	docs/stats.schema.json       the schema
//	docs/statistics.md           a page of all keys
//	cmd/tierallocctl/figures.go  the tool's types for a report, and its tables
//	interpose/tieralloc.h        the fields of ta_stats, ta_tier_stats and ta_cuda_stats
//
// The list is in list_report.go, list_heap.go, list_tiers.go, list_following.go, list_devices.go,
// list_managers.go and list_sites.go. list_tables.go lists the figures of the tool's tables, and
// list_public.go those of the structures of tieralloc.h. A test compares the files with the list.
package main

import (
	"fmt"
	"os"
)

//go:generate go run . ../..

// objects are all objects of the report.
var objects = []*object{report, calls, heap, sizeClass, policy, policyGroup, hints, hostTiers, tier,
	migrations, following, moves, device, driverCalls, deviceTiers, deviceTier, leak,
	manager, instance, site}

// outputs lists the generated files. Each function gets the current contents of its file.
var outputs = []struct {
	path  string
	write func(old string) string
}{
	{"stats/figures.go", func(string) string { return string(structs()) }},
	{"stats/document/figures.go", func(string) string { return string(writers()) }},
	{"docs/stats.schema.json", func(string) string { return string(schema()) }},
	{"docs/statistics.md", func(string) string { return string(page()) }},
	{"cmd/tierallocctl/figures.go", func(string) string { return string(reader()) }},
	{"interpose/tieralloc.h", publicHeader},
}

func main() {
	if err := os.Chdir(os.Args[1]); err != nil {
		fail(err)
	}
	for _, o := range outputs {
		old, _ := os.ReadFile(o.path)
		if err := os.WriteFile(o.path, []byte(o.write(string(old))), 0o644); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "statlist:", err)
	os.Exit(1)
}
