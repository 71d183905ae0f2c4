# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Parts limits and ipc.

limits() {
	if has torch; then
		holds "limit of 8 GiB, PyTorch" "^8 GiB seen" preload TA_CUDA_HARD=8G python3 "$here/limits.py" torch
		holds "limit of 8 GiB, PyTorch, pluggable" "^8 GiB seen" preload TA_CUDA_HARD=8G PYTHONPATH="$python" python3 "$here/limits.py" pluggable
	else
		missing torch
	fi
	if has cupy; then
		holds "limit of 8 GiB, CuPy" "^8 GiB seen" preload TA_CUDA_HARD=8G python3 "$here/limits.py" cupy
		holds "limit of 1 GiB, spill, CuPy" "^[1-9][0-9]* spills" \
			preload TA_CUDA_HARD=1G TA_CUDA_ON_HARDCAP=spill PYTHONPATH="$python" python3 "$here/limits.py" spill
	else
		missing cupy
	fi
}

# opened WHAT STATUSES OUTPUT COMMAND...: ends with one of the statuses, and its lines, joined
# by commas, are as the pattern OUTPUT says.
opened() {
	local what=$1 statuses=$2 want=$3 got log status
	shift 3
	log=$(log_of "$what").log
	"$@" >"$log" 2>&1
	status=$?
	got=$(paste -sd, "$log")
	# shellcheck disable=SC2053 # a pattern
	if [[ " $statuses " == *" $status "* && $got == $want ]]; then
		row ok "$what" "$got"
	else
		row FAIL "$what" "status $status: ${got:0:200}"
	fi
}
ipc() {
	compile ipc ipc.cu || return
	local mode log status plainly all="small right,small_too right,large right" known="small r*,small_too r*,large r*"
	log=$out/ipc_plain.txt
	plain "$out/ipc" - >"$log" 2>&1
	status=$?
	plainly=$(paste -sd, "$log")
	# shellcheck disable=SC2053 # a pattern
	if [[ " 0 3 " != *" $status "* || $plainly != *right* || $plainly != $known ]]; then
		lack "ipc" "plain: $(why "$status" "$log")"
		return
	fi
	row info "ipc, the driver alone" "$plainly"
	for mode in small all; do
		opened "ipc, SUBALLOC=$mode" 0 "$all" preload TA_CUDA_SUBALLOC="$mode" "$out/ipc" "$lib"
		# A process without the library may be refused a block, never given another's bytes.
		opened "ipc, SUBALLOC=$mode, to a plain process" "0 3" "$known" preload TA_CUDA_SUBALLOC="$mode" "$out/ipc" -
	done
	opened "ipc, from a plain process" "$status" "$plainly" plain "$out/ipc" "$lib"
}
