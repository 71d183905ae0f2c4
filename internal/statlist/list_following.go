package main

var following = &object{
	title:  "`following`",
	goType: "Following", tool: "following", method: "follow(f *stats.Following)", arg: "f",
	comment: []string{"Following is what TA_ON_SOFTCAP=follow did."},
	figures: []figure{
		f("source", word, gauge, plain,
			"What measures how often memory is touched. none: nothing yet, or nothing works and "+
				"memory moves by age.").
			coded("sourceNames", 7).
			note("A Source….").
			words("none", "referenced_bits", "damon", "write_protection", "soft_dirty"),
		f("samples", count, counter, exact, "Samples taken."),
		f("regions", count, gauge, sampled,
			"Regions that the last sample told apart. A region moves as one."),
		f("thread_ns", ns, counter, plain,
			"Processor time of the thread that follows, up to its last sample and moves."),
		f("up_room", group, nested, plain,
			"Moves to a faster tier that had room.").ref(moves).field("UpRoom", "Moves"),
		f("up_hotter", group, nested, plain,
			"Moves to a faster tier in the place of colder memory.").
			ref(moves).
			field("UpHotter", "Moves"),
		f("down_colder", group, nested, plain,
			"Moves to a slower tier to make room for hotter memory.").
			ref(moves).
			field("DownColder", "Moves"),
		f("down_softcap", group, nested, plain,
			"Moves to a slower tier because the tier was over its soft cap.").
			ref(moves).
			field("DownSoftcap", "Moves"),
		f("refused", group, nested, plain,
			"Moves that failed: the memory cannot move now, or the kernel did not move all of "+
				"its pages. Pages that it did move count in migrations alone.").
			ref(moves).
			field("Refused", "Moves"),
		f("put_off", group, nested, plain,
			"Moves that were put off because the other tier was full.").
			ref(moves).
			field("PutOff", "Moves"),
		f("out_cold", group, nested, plain,
			"Paged out to swap, with TA_SLOW_BACKEND=swap, as the coldest. Here and below bytes "+
				"are those that were resident and are not any more.").
			ref(moves).
			field("OutCold", "Moves"),
		f("out_unknown", group, nested, plain,
			"Paged out to swap before it was known how often it is used.").
			ref(moves).
			field("OutUnknown", "Moves"),
		f("out_again", group, nested, plain,
			"Paged out to swap again soon after it had come back: nothing else of its hint was "+
				"left. If this keeps growing, what is in use does not fit under the cap.").
			ref(moves).
			field("OutAgain", "Moves"),
		f("out_refused", group, nested, plain,
			"What the kernel did not page out: locked or pinned memory, memory shared with a "+
				"forked child, or swap is full.").
			ref(moves).
			field("OutRefused", "Moves"),
		f("bytes_back", bytes, counter, sampled,
			"Bytes that came back from swap, as far as looks have seen."),
		f("bytes_resident", bytes, gauge, sampled,
			"Bytes of the heap in use that were resident at the last look, with "+
				"TA_SLOW_BACKEND=swap."),
	},
}

var moves = &object{
	title:  "Moves: `following.up_room` and so on",
	goType: "Moves", tool: "moves", method: "moves(m *stats.Moves)", arg: "m",
	comment: []string{"Moves counts moves of one kind."},
	def:     "moves",
	meaning: "Moves of one kind. A region of several blocks counts once for each kind that any " +
		"of them met.",
	figures: []figure{
		f("regions", count, counter, exact, "Regions that were to move."),
		f("bytes", bytes, counter, exact, "Size of their blocks that met this."),
	},
}
