# Associative arrays and strings.
BEGIN {
	for (round = 1; round <= rounds; round++) {
		delete count
		delete row
		for (k = 1; k <= 60000; k++) {
			word = sprintf("w%x-%d", k * k % 9973, k % 40)
			count[word]++
			row[k] = word " " k " " round
		}
		text = ""
		for (word in count)
			total += length(word) * count[word]
		for (k = 1; k <= 60000; k++) {
			n = split(row[k], part, /[ -]/)
			total = (total * 31 + n + part[3]) % 1000000007
			if (k % 100 == 0)
				text = text row[k]
		}
		total += gsub(/w/, "<&>", text)
	}
	print total
}
