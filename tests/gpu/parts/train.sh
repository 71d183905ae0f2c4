# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Parts train and memcheck.

steps=30 # of train.py
train() {
	has torch || { missing torch; return; }
	local kind how log status
	for kind in eager side graph; do
		log=$out/train_${kind}
		plain python3 "$here/train.py" "$kind" >"$log.txt" 2>"$log.err"
		status=$?
		((status == 0)) || { lack "train, $kind" "plain: $(why "$status" "$log.err")"; continue; }
		for how in plain sync event pluggable; do
			log=$out/train_${kind}_$how
			case $how in
			plain) plain python3 "$here/train.py" "$kind" ;;
			sync | event) preload TA_CUDA_REUSE="$how" python3 "$here/train.py" "$kind" ;;
			pluggable) preload PYTHONPATH="$python" python3 "$here/train.py" "$kind" pluggable ;;
			esac >"$log.txt" 2>"$log.err"
			status=$?
			if ((status != 0)); then
				row FAIL "train, $kind, $how" "$(why "$status" "$log.err")"
			elif (($(grep -c '^[0-9]' "$log.txt") != steps)); then
				row FAIL "train, $kind, $how" "$(grep -c '^[0-9]' "$log.txt") losses, not $steps"
			elif ! cmp -s "$out/train_$kind.txt" "$log.txt"; then
				row FAIL "train, $kind, $how" "other losses: $(diff "$out/train_$kind.txt" "$log.txt" | grep -c '^>') of $(wc -l <"$log.txt")"
			else
				row ok "train, $kind, $how" "the same $(wc -l <"$log.txt") losses, the last $(tail -n 1 "$log.txt")"
			fi
		done
	done
}

held() { # PROGRAM PATTERN
	# shellcheck disable=SC2086 # the program's arguments
	holds "memcheck, $1" 'ERROR SUMMARY: 0 errors' preload "${checker[@]}" "$out"/$1
	grep -q -E -- "$2" "$(log_of "memcheck, $1").log" || row FAIL "memcheck, $1" "it has not run to its end"
}
memcheck() {
	command -v compute-sanitizer >/dev/null || { missing compute-sanitizer; return; }
	compile reuse reuse.cu && compile storm storm.cu && compile loop_static loop.cu || return
	local checker=(compute-sanitizer --tool memcheck --error-exitcode 9) log=$out/memcheck.log what status
	# First what it must find: some machines do not let it at the device.
	plain "${checker[@]}" "$out/reuse" outside >"$log" 2>&1
	if ! grep -q 'Invalid __global__ write' "$log"; then
		lack "memcheck" "refused: $(grep -m1 -i 'not supported\|error' "$log" | cut -c1-160)"
		return
	fi
	what="memcheck, control: a mistake is seen"
	preload "${checker[@]}" "$out/reuse" outside >"$log" 2>&1
	status=$?
	if grep -q 'Invalid __global__ write' "$log"; then row ok "$what"; else row FAIL "$what" "$(why "$status" "$log")"; fi
	# The program's own last line must be there, too: it has run.
	held "loop_static 3" '^pending [0-9]'
	held "reuse ordered" "$under"
	held "storm 3" "$storm"
}
