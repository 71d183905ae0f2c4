package main

// row is a row, or a column, of a table of the tool. A column with > is aligned to the right.
type row struct {
	label string
	path  string // of the figure that it shows, by its keys with dots between them
	text  string // Go expression for the text; "": as the figure's unit asks for
}

// table is a table of the tool.
type table struct {
	variable string // in package main of the tool
	of       *object
	arg      string // what expressions call the object
	rows     []row
}

var tables = []table{
	{"tierFigures", tier, "t", []row{
		{"current", "bytes_current", ""},
		{"peak", "bytes_peak", ""},
		{"soft cap", "capacity_soft", ""},
		{"hard cap", "capacity_hard", ""},
		{"blocks allocated", "alloc_calls", ""},
		{"blocks freed", "free_calls", ""},
		{"bytes allocated", "bytes_total_alloc", ""},
		{"blocks entered", "blocks_entered", ""},
		{"blocks left", "blocks_left", ""},
		{"bytes entered", "bytes_entered", ""},
		{"bytes left", "bytes_left", ""},
		{"taken over soft cap", "soft_exceeded", ""},
		{"rerouted at soft cap", "rerouted", ""},
		{"met hard cap", "capacity_violations", ""},
		{"routed slow at hard cap", "routed_slow", ""},
		{"refused", "refused", ""},
		{"throttled to", "throttle_bw", "throttleWords(t)"},
		{"wait charged", "simulated_wait_ns", ""},
		{"sleeps", "throttle_sleeps", ""},
		{"overslept", "throttle_overshoot_ns", ""},
		{"moves out attempted", "migrations.attempted", ""},
		{"pages moved", "migrations.moved_pages", ""},
		{"pages not moved", "migrations.failed_pages", ""},
		{"moved in by the kernel", "kernel_moved_in", ""},
		{"moved out by the kernel", "kernel_moved_out", ""},
		{"huge pages", "hugepages", ""},
		{"mappings without them", "hugepage_fallbacks", ""},
		{"nodes", "nodes", "nodeWords(t.Nodes)"},
	}},
	{"deviceFigures", device, "d", []row{
		{"bus", "pci", ""},
		{"memory", "bytes_device", ""},
		{"policy", "reuse", `d.Reuse + ", " + d.Suballoc + ", " + d.OnHardcap`},
		{"memory of segments", "managed", "d.kind()"},
		{"soft cap", "tiers.fast.capacity_soft", ""},
		{"hard cap", "tiers.fast.capacity_hard", ""},
		{"reserved", "bytes_reserved", ""},
		{"reserved at most", "bytes_reserved_peak", ""},
		{"live", "bytes_live", ""},
		{"live at most", "bytes_peak", ""},
		{"asked for", "bytes_asked", ""},
		{"live blocks", "blocks_live", ""},
		{"cached for a stream", "bytes_cached_local", ""},
		{"cached for all", "bytes_cached_global", ""},
		{"pending", "bytes_pending", ""},
		{"held", "bytes_held", ""},
		{"private", "bytes_private", ""},
		{"of the driver's own", "bytes_foreign", ""},
		{"spilled to the host", "bytes_spilled", ""},
		{"fragmentation", "fragmentation_ratio", ""},
		{"allocations", "alloc_calls", ""},
		{"frees", "free_calls", ""},
		{"hits of the stream", "hits_local", ""},
		{"hits of all", "hits_global", ""},
		{"hits by a part", "hits_split", ""},
		{"misses", "misses", ""},
		{"left to the driver", "foreign_calls", ""},
		{"efficiency", "efficiency", ""},
		{"refused", "refused", ""},
		{"driver had none", "driver_refused", ""},
		{"spills", "spills", ""},
		{"waits", "waits", ""},
		{"segments", "segments", ""},
		{"given back", "bytes_released", ""},
		{"throttled to", "tiers.fast.throttle_bw", "throttleWords(d.Tiers.Fast)"},
		{"wait charged", "tiers.fast.simulated_wait_ns",
			"duration(d.Tiers.Fast.SimulatedWaitNs + d.Tiers.Slow.SimulatedWaitNs)"},
		{"bad frees", "frees_invalid", ""},
		{"unknown frees", "frees_unknown", ""},
	}},
	{"instanceFigures", instance, "i", []row{
		{"instance", "name", ""},
		{">number", "id", "strconv.FormatUint(i.Id, 10)"},
		{"group", "group", ""},
		{"pool", "pool", ""},
		{">part", "proportion", ""},
		{">cap", "bytes_cap", ""},
		{">live", "bytes_live", ""},
		{">peak", "bytes_peak", ""},
		{">allocs", "alloc_calls", ""},
		{">frees", "free_calls", ""},
		{">refused", "refused", ""},
		{">evicted", "evictions", ""},
	}},
	{"siteFigures", site, "s", []row{
		{">allocated", "bytes_total_alloc", ""},
		{">blocks", "blocks_total_alloc", ""},
		{">freed", "blocks_total_freed", ""},
		{">live", "bytes_live", ""},
		{">peak", "bytes_peak", ""},
		{">size", "size_median", ""},
		{">lifetime", "lifetime_median_ns", "s.lifetime()"},
		{"hint", "hint", ""},
		{"tier", "tier", ""},
		{"calls", "stack", "s.calls()"},
	}},
}
