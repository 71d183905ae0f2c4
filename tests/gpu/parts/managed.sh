# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Parts managed, manager and heap: managed memory, and the manager of a device's memory. Each
# program keeps to a few GiB.

# launcher NAME...: the first of them that is there; each can launch kernels from Python.
launcher() {
	local name
	for name; do
		if has "$name"; then echo "$name"; return; fi
	done
	return 1
}

managed() {
	local with what
	if with=$(launcher cupy numba cuda.core); then
		for what in properties functions batch together; do
			holds "managed, example $what, $with" '^[1-9][0-9]* values right$' \
				preload PYTHONPATH="$python" python3 "$here/examples.py" "$what" "$with"
		done
	else
		missing "CuPy, numba or cuda.core"
	fi
	prefetches
}

# The program prints "WAY NS" for each of raw, batch and single: medians of interleaved calls.
prefetches() {
	compile prefetch prefetch.cu || return
	local log=$out/prefetch.txt status
	preload "$out/prefetch" >"$log" 2>"$log.err"
	status=$?
	if ((status == 3)); then lack "managed, prefetch of 64" "$(tail -n 1 "$log.err")"; return; fi
	((status == 0)) || { row FAIL "managed, prefetch of 64" "$(why "$status" "$log.err")"; return; }
	# At most 5% above the driver's own call. Whether one by one is faster is the driver's affair.
	local single
	single=$(way single "$log")
	verdict "managed, prefetch of 64, beside the driver's" "$(way raw "$log")" "$(way batch "$log")" 0.95238 "$((single > 0))" ", one by one $single ns"
}
way() { grep "^$1 " "$2" >"$2.$1"; column_least 2 1 "$2.$1"; }

manager() {
	local with what
	with=$(launcher cupy numba) || { missing "CuPy or numba"; return; }
	for what in chunks limit eviction; do
		holds "manager, $what, $with" '^[1-9][0-9]* .* right$' \
			preload PYTHONPATH="$python" python3 "$here/manager.py" "$what" "$with"
	done
}

# agrees NAME WORDS COMMAND...: each run prints a line "WORD NS [RESULT]" for each of the words.
# The words and results of a plain run, and of runs on managed memory that prefers the device
# (hot, and warm, which is no hint) or the host (cold), must be the same. The library's report tells
# that managed memory was what they had.
agrees() {
	local name=$1 words=$2 how log status word
	shift 2
	log=$(log_of "heap $name")
	plain "$@" >"$log.plain" 2>"$log.err"
	status=$?
	((status == 0)) || { lack "heap, $name" "plain: $(why "$status" "$log.err")"; return; }
	for word in $words; do
		grep -q "^$word [0-9]" "$log.plain" || { row FAIL "heap, $name" "plain: no line $word"; return; }
	done
	for how in hot warm cold; do
		rm -f "$log".*.json
		preload TA_CUDA_MANAGED=1 TA_DEFAULT_HINT=$how TA_STATS_FILE="$log.%e.json" "$@" >"$log.$how" 2>"$log.err"
		status=$?
		if ((status != 0)); then
			row FAIL "heap, $name, $how" "$(why "$status" "$log.err")"
		elif ! cmp -s <(cut -d' ' -f1,3 "$log.plain") <(cut -d' ' -f1,3 "$log.$how"); then
			row FAIL "heap, $name, $how" "other results: $(paste -sd, "$log.$how")"
		elif ! reported '"managed": *true' || ! reported '"map_managed": *[1-9]'; then
			row FAIL "heap, $name, $how" "no managed memory in the report"
		elif [[ $how == cold ]] && ! reported '"bytes_total_spilled": *[1-9]'; then
			row FAIL "heap, $name, $how" "nothing on the host in the report"
		else
			row ok "heap, $name, $how" "the same $(wc -l <"$log.$how") result(s)"
		fi
	done
}
reported() { cat "$log".*.json 2>/dev/null | grep -q "$1"; }
heap() {
	compile loop_static loop.cu && agrees "C++, static cudart" "idle pending" "$out/loop_static" 20
	if has cupy; then agrees "cupy without a pool" cupy python3 "$here/frameworks.py" cupy; else missing cupy; fi
	if has torch; then
		agrees "PyTorch without its cache" torch PYTORCH_NO_CUDA_MEMORY_CACHING=1 python3 "$here/frameworks.py" torch
	else
		missing torch
	fi
}
