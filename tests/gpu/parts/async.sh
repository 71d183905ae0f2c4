# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Part async: cudaMallocAsync served by the heap.

heap_report=
by_heap() { preload TA_CUDA_ASYNC=heap TA_STATS_FILE="$heap_report" "$@"; }
# beside WHAT LEAST COMMAND...: five times in turn with the driver's pool and with the heap. The
# command prints a line "WORD NS RESULT"; results must agree, and the heap must have served.
beside() {
	local what=$1 least=$2 log mode status
	shift 2
	log=$(log_of "$what")
	heap_report=$log.%e.json
	rm -f "$log".{plain,by_heap} "$log".*.json
	for _ in 1 2 3 4 5; do
		for mode in plain by_heap; do
			"$mode" "$@" >>"$log.$mode" 2>"$log.err"
			status=$?
			((status == 0)) && continue
			if [[ $mode == plain ]]; then lack "$what" "plain: $(why "$status" "$log.err")"; else row FAIL "$what" "$(why "$status" "$log.err")"; fi
			return
		done
	done
	grep -Eqs '"hits_local": *[1-9]' "$log".*.json || { row FAIL "$what" "the heap has reused no block"; return; }
	verdict "$what" "$(column_median 2 5 "$log.plain")" "$(column_median 2 5 "$log.by_heap")" "$least" \
		"$(cut -d' ' -f3 "$log.plain" "$log.by_heap" | sort -u | wc -l)"
}

async() {
	local mode
	compile async async.cu || return
	holds "async, control: a mistake is seen" "$under" preload TA_CUDA_ASYNC=heap "$out/async" control
	for mode in sync event; do
		holds "async, frees under a kernel, $mode" "$under" preload TA_CUDA_ASYNC=heap TA_CUDA_REUSE="$mode" "$out/async" under
		holds "async, storm, $mode" "$storm" preload TA_CUDA_ASYNC=heap TA_CUDA_REUSE="$mode" "$out/async" storm "$seconds"
	done
	beside "async, a pair beside the driver's pool" 1 "$out/async" time
	if has torch; then
		beside "async, PyTorch, backend:cudaMallocAsync" 0.9 PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync python3 "$here/frameworks.py" torch
	else
		missing torch
	fi
	if has cupy; then
		beside "async, CuPy, MemoryAsyncPool" 0.9 python3 "$here/frameworks.py" cupy_async
	else
		missing cupy
	fi
}
