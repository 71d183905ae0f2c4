package main

import "tieralloc/internal/config"

var report = &object{
	title:  "The report",
	goType: "Figures", tool: "report", method: "report(r *stats.Report)", arg: "r",
	comment: []string{
		"Figures are what a report says. Ordinary Go, which cannot have a Report of its own, " +
			"keeps these.",
	},
	layout: "Pid StartUnixNs UptimeNs Calls CallsFailed Heap Policy HintBytes Backend NodeCount " +
		"NodesSampled Nodes Tiers Follows Following DeviceCount Devices ShareCount Shares " +
		"ProgramLen Program",
	figures: []figure{
		f("schema", word, setting, plain,
			"Name and version of the format. The version rises when a key changes its meaning or "+
				"goes away. Ignore unknown keys.").
			schema("{\"const\": \"tieralloc.stats/1\"}").
			write("w.word(\"schema\", stats.Schema)"),
		f("version", word, setting, plain,
			"The version as a number.").obvious().
			schema("{\"const\": 1}").
			write("w.count(\"version\", stats.Version)").
			tool("int"),
		f("library_version", text, setting, plain,
			"Version of the library.").obvious().
			write("w.word(\"library_version\", version.Number)"),
		f("pid", count, setting, plain,
			"The process, in its own PID namespace.").tool("int"),
		hidden("ProgramLen", "uint64", "Of Program; at most NameSize."),
		f("program", text, setting, plain,
			"Name of the program without folder, up to 256 bytes; invalid UTF-8 is "+
				"U+FFFD.").obvious().
			typed("[NameSize]byte").
			write("w.program(r)"),
		f("start_unix_ns", ns, setting, plain,
			"Time of load. Above 2^53: read it as an integer."),
		f("uptime_ns", ns, gauge, plain,
			"Time since the load.").obvious(),
		f("calls", group, nested, plain,
			"Calls by function, as the program named it.").
			of(calls).
			field("Calls", "[32]uint64").
			note("Indexed by Call…; only CallCount are used.").
			write("w.calls(r)").
			tool("map[string]uint64"),
		f("calls_failed", count, counter, exact,
			"Allocating calls that returned a null pointer or an error."),
		f("heap", group, nested, plain,
			"The CPU heap.").obvious().of(heap).field("Heap", "Heap").tool("*heap"),
		f("backend", word, setting, plain,
			"Whether tiers are ordinary memory or NUMA nodes.").obvious().
			coded("names.backend", 1).
			note("BackendSimulated or BackendNuma.").
			words("simulated", "numa"),
		f("policy", group, nested, plain,
			"The settings in effect.").obvious().of(policy).embedded("Policy"),
		f("hints", group, nested, plain,
			"Memory held for blocks of each hint.").obvious().
			of(hints).
			field("HintBytes", "[8]uint64").
			note("Indexed by config.Hint….").
			write("w.hints(r)").
			tool(""),
		hidden("NodeCount", "uint64",
			"Nodes in use; Tiers[t].BytesPerNode[i] is what tier t has on Nodes[i]."),
		f("nodes", list, setting, plain,
			"NUMA nodes; empty without the kernel's answer, and in a child that counts from its "+
				"fork.").
			typed("[NodeMax]uint64").
			write("w.nodes(r)").
			tool("[]int").
			schema(`{"type": "array", "items": {"$ref": "#/$defs/node"}}`),
		f("bytes_per_node_sampled", truth, setting, plain,
			"Whether bytes_per_node is scaled from 2048 pages of larger tiers.").
			field("NodesSampled", "uint64"),
		f("tiers", group, nested, plain,
			"The memory tiers.").obvious().
			of(hostTiers).
			field("Tiers", "[4]Tier").
			note("Indexed by Tier…; only TierCount are used.").
			write("w.tiers(r)").
			tool("hostTiers"),
		hidden("Follows", "uint64", "1: Following is set."),
		f("following", group, nested, plain,
			"What TA_ON_SOFTCAP=follow did. The key is absent when the process never "+
				"followed.").
			of(following).
			field("Following", "Following").
			write("w.following(r)").
			tool("*following"),
		hidden("DeviceCount", "uint64", "Devices in use."),
		f("devices", list, nested, plain,
			"CUDA devices. The key is absent when none was used.").
			list(device).
			field("Devices", "[DeviceMax]Device").
			write("w.devices(r)").
			tool("[]*device"),
		hidden("ShareCount", "uint64", "Shares in use."),
		f("managers", list, nested, plain,
			"Memory managers. The key is absent when none has instances.").
			list(manager).
			field("Shares", "[ShareMax]Share").
			note("Instances; those of one manager are one after the other.").
			write("w.managers(r)").
			tool("[]*manager"),
		f("sites", list, nested, plain,
			"The 50 stacks that allocated most bytes. The key is absent when there is no heap "+
				"profile (TA_PROFILE), and from a live page.").
			list(site).
			write("w.sites()").
			tool("[]*site"),
	},
}

var calls = &object{
	title: "`calls`",
	names: "Call",
	each:  "Calls of",
	figures: []figure{
		f("malloc", count, counter, exact, "Calls of malloc."),
		f("free", count, counter, exact,
			"Calls of free (of a null pointer too)."),
		f("calloc", count, counter, exact, "Calls of calloc."),
		f("realloc", count, counter, exact, "Calls of realloc."),
		f("reallocarray", count, counter, exact, "Calls of reallocarray."),
		f("memalign", count, counter, exact, "Calls of memalign."),
		f("aligned_alloc", count, counter, exact, "Calls of aligned_alloc."),
		f("posix_memalign", count, counter, exact, "Calls of posix_memalign."),
		f("valloc", count, counter, exact, "Calls of valloc."),
		f("pvalloc", count, counter, exact, "Calls of pvalloc."),
		f("malloc_usable_size", count, counter, exact, "Calls of malloc_usable_size."),
		f("free_sized", count, counter, exact, "Calls of free_sized."),
		f("free_aligned_sized", count, counter, exact, "Calls of free_aligned_sized."),
		f("malloc_trim", count, counter, exact, "Calls of malloc_trim."),
		f("operator new", count, counter, exact,
			"Calls of operator new, with operator new[].").named("New"),
		f("operator delete", count, counter, exact,
			"Calls of operator delete, with operator delete[].").named("Delete"),
		f("ta_alloc", count, counter, exact, "Calls of ta_alloc."),
		f("ta_free", count, counter, exact, "Calls of ta_free."),
		f("ta_move", count, counter, exact, "Calls of ta_move."),
	},
}

var policy = &object{
	title:  "`policy`",
	goType: "Policy", tool: "policy", method: "policy(p *stats.Policy)", arg: "p",
	comment: []string{
		"Policy is the configuration in effect, in the codes of package config. Its first five " +
			"figures " +
			"are written as words.",
	},
	figures: []figure{
		f("default_hint", word, setting, plain,
			"Hint where no rule, thread or caller gives one (TA_DEFAULT_HINT).").
			config("HintWord", config.HintWord, config.HintCount).
			note("A config.Hint…."),
		f("on_softcap", word, setting, plain,
			"What happens over a soft cap (TA_ON_SOFTCAP).").
			config("SoftcapWord", config.SoftcapWord, config.SoftcapCount).
			note("A config.Softcap…."),
		f("on_hardcap", word, setting, plain,
			"What happens at a hard cap (TA_ON_HARDCAP).").
			config("HardcapWord", config.HardcapWord, config.HardcapCount).
			note("A config.Hardcap…."),
		f("throttle", word, setting, plain,
			"Whether charged time is also slept (TA_THROTTLE).").
			coded("names.throttle", 1).
			note("0: account, 1: sleep.").
			words("account", "sleep"),
		f("model", word, setting, plain,
			"Named costs of the tiers (TA_MODEL).").
			config("ModelWord", config.ModelWord, config.ModelCount).
			note("A config.Model…."),
		f("rules", count, setting, plain,
			"Rules in force (TA_RULES).").obvious(),
		f("grouped", truth, setting, plain,
			"Whether TA_GROUP is in force."),
		f("group", group, nested, plain,
			"The group of TA_GROUP. The key is absent when grouped is false.").
			of(policyGroup).
			field("Group", "Group").
			write("w.policyGroup(p)").
			tool("*policyGroup"),
	},
}

var policyGroup = &object{
	title:  "`policy.group`",
	goType: "Group", tool: "policyGroup", method: "group(g *stats.Group)", arg: "g",
	comment: []string{
		"Group is the group of processes that a process is a member of (package group).",
	},
	figures: []figure{
		hidden("NameLen", "uint64", "Of Name; at most NameSize."),
		f("name", text, setting, plain,
			"Up to 256 bytes; invalid UTF-8 is U+FFFD (TA_GROUP).").
			typed("[NameSize]byte").
			write("w.groupName(g)"),
		f("bytes_min", bytes, setting, exact,
			"What this process keeps of each cap (TA_GROUP_MIN); 0 also where the caps were too "+
				"small.").
			field("Min", "uint64"),
	},
}

var hints = &object{
	title: "`hints`",
	each:  "Spans of blocks with hint",
	figures: []figure{
		f("hot", bytes, gauge, inSpans, "Spans of blocks with hint HOT."),
		f("warm", bytes, gauge, inSpans, "Spans of blocks with hint WARM."),
		f("cold", bytes, gauge, inSpans, "Spans of blocks with hint COLD."),
		f("pin_fast", bytes, gauge, inSpans, "Spans of blocks with hint PIN_FAST."),
		f("prefer_fast", bytes, gauge, inSpans, "Spans of blocks with hint PREFER_FAST."),
	},
}
