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
