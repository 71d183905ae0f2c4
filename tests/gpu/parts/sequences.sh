# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Part sequences: host time beside PyTorch's allocator and the driver's pool.

sequence_names=(same_size large transformer pressure variable grad_accum random_4M random_64M)
# timed WHO SEQUENCE COMMAND...: adds the line that sequences prints, under a name.
timed() {
	local who=$1 sequence=$2 status
	shift 2
	"$@" "$sequence" >"$out/sequences.one" 2>"$out/sequences.err"
	status=$?
	((status == 0)) || { echo "$who, $sequence: $(why "$status" "$out/sequences.err")" | tee -a "$out/sequences.failed"; return; }
	sed "s/^torch/$who/" "$out/sequences.one" >>"$out/sequences.txt"
}
sequences() {
	command -v nvcc >/dev/null || { missing "nvcc, for sequences.cpp"; return; }
	has torch || { missing torch; return; }
	local site flags abi s rounds=0 began took=0
	{ read -r site && read -r abi; } < <(python3 -c 'import torch, os
print(os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI), sep="\n")' 2>"$out/sequences.log") ||
		{ lack sequences "PyTorch: $(why 1 "$out/sequences.log")"; return; }
	flags=(-I"$site/include" -I"$site/include/torch/csrc/api/include" -L"$site/lib" -Xlinker "-rpath,$site/lib" -Xlinker --no-as-needed
		-lc10_cuda -lc10 -ltorch_cuda -ltorch_cpu -ltorch)
	within 240 nvcc -std=c++20 -O2 -DWITH_TORCH -D_GLIBCXX_USE_CXX11_ABI="$abi" -cudart shared -o "$out/sequences" "$here/sequences.cpp" \
		"${flags[@]}" -ldl >"$out/sequences.log" 2>&1 ||
		{ tail -20 "$out/sequences.log"; row FAIL "sequences.cpp does not compile"; return; }
	: >"$out/sequences.txt"
	: >"$out/sequences.failed"
	# All rounds, or as many as there is time for.
	while ((rounds < most_rounds && (rounds == 0 || SECONDS + took < part_end))); do
		began=$SECONDS
		for s in "${sequence_names[@]}"; do
			timed ours "$s" preload "$out/sequences" ours 5
			timed torch "$s" plain "$out/sequences" torch 5
			timed pool "$s" plain "$out/sequences" pool 5
			timed expandable "$s" plain PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$out/sequences" torch 5
		done
		took=$((SECONDS - began + 5))
		rounds=$((rounds + 1))
	done
	python3 "$here/summary.py" "$out/sequences.txt" "$rounds" "${sequence_names[@]}" >"$out/summary.txt" 2>"$out/summary.err" ||
		row FAIL "sequences, summary" "$(why $? "$out/summary.err")"
	cat "$out/summary.txt"
	for s in "${sequence_names[@]}"; do
		local verdict=FAIL figures='' cause
		read -r verdict figures < <(sed -n "s/^row $s //p" "$out/summary.txt")
		cause=$(grep -m1 -E "^(ours|torch), $s: " "$out/sequences.failed")
		case $verdict in
		ok | FAIL) row "$verdict" "sequence $s" "$figures${cause:+; $cause}" ;;
		lack) lack "sequence $s" "$figures${cause:+; $cause}" ;;
		*) row FAIL "sequence $s" "no verdict" ;;
		esac
	done
}
