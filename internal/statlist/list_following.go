package main

var following = &object{
	title:  "`following`",
	goType: "Following", tool: "following", method: "follow(f *stats.Following)", arg: "f",
	comment: []string{"Following is what TA_ON_SOFTCAP=follow did."},
	figures: []figure{
		f("source", word, gauge, plain,
			"What measures use. none: nothing yet, or nothing works.").
			coded("names.source", 7).
			note("A Source….").
			words("none", "referenced_bits", "damon", "write_protection", "soft_dirty"),
		f("samples", count, counter, exact, "Samples taken.").obvious(),
		f("regions", count, gauge, sampled,
			"Regions in the last sample. Each moves as one."),
		f("thread_ns", ns, counter, plain,
			"Processor time of the following thread.").obvious(),
		f("up_room", group, nested, plain,
			"To a faster tier that had room.").ref(moves).field("UpRoom", "Moves"),
		f("up_hotter", group, nested, plain,
			"To a faster tier in place of colder memory.").
			ref(moves).
			field("UpHotter", "Moves"),
		f("down_colder", group, nested, plain,
			"To a slower tier to make room for hotter memory.").
			ref(moves).
			field("DownColder", "Moves"),
		f("down_softcap", group, nested, plain,
			"To a slower tier from one over its soft cap.").
			ref(moves).
			field("DownSoftcap", "Moves"),
		f("refused", group, nested, plain,
			"The memory could not move, or the kernel left some pages. Pages that moved count in "+
				"migrations alone.").
			ref(moves).
			field("Refused", "Moves"),
		f("put_off", group, nested, plain,
			"Put off because the other tier was full.").
			ref(moves).
			field("PutOff", "Moves"),
		f("out_cold", group, nested, plain,
			"With TA_SLOW_BACKEND=swap: the coldest, paged out. In all out_ keys, bytes were "+
				"resident and no longer are.").
			ref(moves).
			field("OutCold", "Moves"),
		f("out_unknown", group, nested, plain,
			"Paged out before its use was known.").
			ref(moves).
			field("OutUnknown", "Moves"),
		f("out_again", group, nested, plain,
			"Paged out again soon after it came back. If it keeps growing, the cap is too small "+
				"for the memory in use.").
			ref(moves).
			field("OutAgain", "Moves"),
		f("out_refused", group, nested, plain,
			"Not paged out: memory locked, pinned or shared with a forked child, or swap "+
				"full.").
			ref(moves).
			field("OutRefused", "Moves"),
		f("bytes_back", bytes, counter, sampled,
			"Memory that came back from swap."),
		f("bytes_resident", bytes, gauge, sampled,
			"With TA_SLOW_BACKEND=swap: memory in use that is resident."),
	},
}

var moves = &object{
	title:  "Moves: `following.up_room` and so on",
	goType: "Moves", tool: "moves", method: "moves(m *stats.Moves)", arg: "m",
	comment: []string{"Moves counts moves of one kind."},
	def:     "moves",
	meaning: "Moves of one kind. A region may count for several kinds.",
	figures: []figure{
		f("regions", count, counter, exact,
			"Regions.").obvious(),
		f("bytes", bytes, counter, exact,
			"Size of their blocks.").obvious(),
	},
}
