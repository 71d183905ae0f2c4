package main

var manager = &object{
	title:  "`managers`",
	goType: "Share", with: instance, tool: "manager", method: "manager(s *stats.Share)", arg: "s",
	comment: []string{
		"Share is what an instance of a memory manager has of a device (package manager).",
		"",
		"\tBytesLive <= BytesPeak",
	},
	layout: "Manager Instances ManagerName Device Mode BytesTotal Id Name Group Manual " +
		"Proportion BytesCap BytesLive BytesPeak AllocCalls FreeCalls Refused Evictions",
	def:     "manager",
	meaning: "One memory manager (ta_mm_create), which shares a device's memory between instances.",
	figures: []figure{
		hidden("Manager", "uint64", "Number of its manager, from 1 on."),
		f("name", text, setting, plain,
			"Its name.").obvious().
			field("ManagerName", "[48]byte").
			write("w.named(\"name\", &s.ManagerName)"),
		f("device", count, setting, exact,
			"Ordinal of the device.").obvious(),
		f("mode", word, setting, plain,
			"Whether caps are enforced.").obvious().
			coded("names.mode", 1).
			note("0: passive, 1: active.").
			words("passive", "active"),
		f("bytes_total", bytes, setting, exact,
			"Bytes that it shares out.").obvious(),
		f("instance_count", count, setting, exact,
			"Its instances. A report lists 64 of all managers.").obvious().
			field("Instances", "uint64"),
		f("instances", list, nested, plain,
			"By the order of registration.").obvious().list(instance).tool("[]*instance"),
	},
}

var instance = &object{
	title: "A manager's `instances`",
	tool:  "instance", method: "share(s *stats.Share)", arg: "s",
	def:     "instance",
	meaning: "One instance of a memory manager.",
	figures: []figure{
		f("id", count, setting, exact,
			"Number given by the program.").obvious(),
		f("name", text, setting, plain,
			"Its name.").obvious().typed("[48]byte").write("w.named(\"name\", &s.Name)"),
		f("group", text, setting, plain,
			"Its group, whose caps are one budget.").
			typed("[48]byte").
			write("w.named(\"group\", &s.Group)"),
		f("pool", word, setting, plain,
			"Whether its proportion is given or an equal part of the rest.").
			field("Manual", "uint64").
			coded("names.pool", 1).
			note("1: manual.").
			words("automatic", "manual"),
		f("proportion", ratio, setting, plain,
			"Part of the manager's total.").obvious().
			field("Proportion", "uint64").
			note("In millionths.").
			write("w.key(\"proportion\")", "w.fraction(s.Proportion, 1_000_000)"),
		f("bytes_cap", bytes, setting, exact, "Its proportion of the total.").obvious(),
		f("bytes_live", bytes, gauge, exact,
			"Its blocks, and memory from elsewhere."),
		f("bytes_peak", bytes, peak, exact, "Largest bytes_live.").obvious(),
		f("alloc_calls", count, counter, exact,
			"Blocks allocated.").obvious(),
		f("free_calls", count, counter, exact,
			"Blocks freed.").obvious(),
		f("refused", count, counter, exact,
			"Allocations without room in its group's budget, on the device or on the host."),
		f("evictions", count, counter, exact,
			"Times that it was evicted.").obvious(),
	},
}
