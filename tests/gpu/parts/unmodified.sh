# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Part unmodified: programs that know nothing of us, plain and preloaded.

# interleaved NAME ROUNDS COMMAND...: plain, then preloaded with both ways of reuse, so many
# times; what they print is left in the log's .plain, .sync and .event. Status 1, and a row,
# where one of them failed.
interleaved() {
	local name=$1 rounds=$2 log mode status i
	shift 2
	log=$(log_of "$name")
	rm -f "$log".{plain,sync,event}
	for ((i = 0; i < rounds; i++)); do
		for mode in plain sync event; do
			if [[ $mode == plain ]]; then plain "$@"; else preload TA_CUDA_REUSE="$mode" "$@"; fi >>"$log.$mode" 2>"$log.err"
			status=$?
			((status == 0)) && continue
			if [[ $mode == plain ]]; then
				lack "$name" "plain: $(why "$status" "$log.err")"
			else
				row FAIL "$name, $mode" "$(why "$status" "$log.err")"
			fi
			return 1
		done
	done
}

# same NAME WORDS COMMAND...: each run prints a line "WORD NS [RESULT]" for each of the words.
# Results must agree, and pairs with the device idle be 5 times as fast by the median of 3.
same() {
	local name=$1 words=$2 log mode
	shift 2
	interleaved "$name" 3 "$@" || return
	log=$(log_of "$name")
	for mode in sync event; do
		row "$(judge "$words" "$log.plain" "$log.$mode")" "$name, $mode" "$(ratios "$words" "$log.plain" "$log.$mode")"
	done
}
# Of a word's lines in a file: the median of the second fields and the different third ones.
medians_awk='function of(file, word, f, n, i, line, v, results) {
		n = 0; of_results = ""
		while ((getline line < file) > 0) {
			split(line, f, " ")
			if (f[1] != word) continue
			v[++n] = f[2] + 0
			if (!(f[3] in results)) { results[f[3]]; of_results = of_results " " f[3] }
			for (i = n; i > 1 && v[i] < v[i - 1]; i--) { line = v[i]; v[i] = v[i - 1]; v[i - 1] = line }
		}
		close(file)
		of_lines = n
		return n ? v[int((n + 1) / 2)] : 0
	}'
judge() { # WORDS WANT GOT
	awk -v words="$1" -v want="$2" -v got="$3" "$medians_awk"' BEGIN {
		n = split(words, word, " ")
		ok = n > 0
		for (i = 1; i <= n; i++) {
			x = of(want, word[i]); lines = of_lines; results = of_results
			y = of(got, word[i])
			if (lines == 0 || lines != of_lines || results != of_results || split(results, r, " ") > 1) ok = 0
			least = word[i] == "pending" ? 0.95 : 5
			if (!(x > 0 && y > 0 && x / y >= least)) ok = 0
		}
		print ok ? "ok" : "FAIL" }'
}
ratios() {
	awk -v words="$1" -v want="$2" -v got="$3" "$medians_awk"' BEGIN {
		n = split(words, word, " ")
		for (i = 1; i <= n; i++) {
			x = of(want, word[i]); y = of(got, word[i])
			printf "%s %d -> %d ns, %.1f times; ", word[i], x, y, (y > 0 ? x / y : 0)
		} }'
}

# steady NAME COMMAND...: for what must not become slower: the fastest of 7 runs at most 5%
# above plain's, as what else a machine does only ever adds. Each run prints one line
# "WORD NS RESULT".
steady() {
	local name=$1 log mode
	shift
	interleaved "$name" 7 "$@" || return
	log=$(log_of "$name")
	for mode in sync event; do
		verdict "$name, $mode" "$(column_least 2 7 "$log.plain")" "$(column_least 2 7 "$log.$mode")" 0.95238 \
			"$(cut -d' ' -f3 "$log.plain" "$log.$mode" | sort -u | wc -l)"
	done
}

unmodified() {
	compile loop_static loop.cu && same "C++, static cudart" "idle pending" "$out/loop_static"
	compile loop_shared loop.cu -cudart shared && same "C++, shared cudart" "idle pending" "$out/loop_shared"
	local f
	for f in cupy numba; do
		if has "$f"; then same "$f without a pool" "$f" python3 "$here/frameworks.py" "$f"; else missing "$f"; fi
	done
	if has torch; then
		same "PyTorch without its cache" torch PYTORCH_NO_CUDA_MEMORY_CACHING=1 python3 "$here/frameworks.py" torch
		steady "PyTorch as it is" python3 "$here/frameworks.py" torch
	else
		missing torch
	fi
}
