# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Parts warmup, reuse and peer.

# Required is faster; the goal is 38 times.
warmup() {
	compile warmup warmup.cu || return
	local how status
	rm -f "$out"/warmup.{cold,warm}
	for _ in 1 2 3 4 5; do
		for how in cold warm; do
			preload "$out/warmup" "$how" >>"$out/warmup.$how" 2>"$out/warmup.err"
			status=$?
			((status == 0)) || { row FAIL "warm-up, $how" "$(why "$status" "$out/warmup.err")"; return; }
		done
	done
	verdict "warm-up, transformer, first cycle" "$(column_median 1 5 "$out/warmup.cold")" "$(column_median 1 5 "$out/warmup.warm")" 1 1 " (goal 38)"
}

# informs WHAT COMMAND...: what the driver does without the library.
informs() {
	local what=$1 log
	shift
	log=$(log_of "$what").log
	"$@" >"$log" 2>&1
	row info "$what" "$(why $? "$log")"
}
under='^[1-9][0-9]* frees under a kernel' # what the program reuse ends with
storm='^[1-9][0-9]* operations'
reuse() {
	compile reuse reuse.cu && compile storm storm.cu || return
	local mode
	informs "reuse, cudaFree, the driver alone" plain "$out/reuse" plain driver
	holds "reuse, control: a mistake is seen" "$under" preload "$out/reuse" control
	for mode in sync event; do
		holds "reuse, cudaFree, $mode" "$under" preload TA_CUDA_REUSE="$mode" "$out/reuse" plain "$mode"
		holds "reuse, cudaFree, SUBALLOC=all, $mode" "$under" preload TA_CUDA_REUSE="$mode" TA_CUDA_SUBALLOC=all "$out/reuse" plain "$mode"
		holds "reuse, ta_cuda_free, $mode" "$under" preload TA_CUDA_REUSE="$mode" "$out/reuse" ordered
		holds "reuse, storm, $mode" "$storm" preload TA_CUDA_REUSE="$mode" "$out/storm" "$seconds"
	done
}

peer() {
	local mode
	((gpus > 1)) || { lack "reuse, two devices" "there is one"; return; }
	compile reuse reuse.cu || return
	for mode in sync event; do
		holds "reuse, two devices, $mode" "$under" preload TA_CUDA_REUSE="$mode" "$out/reuse" peer "$mode"
	done
}
