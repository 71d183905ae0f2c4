#!/usr/bin/env bash
# Runs the library's tests and measurements that need a CUDA device.
#
#   run.sh [-l LIB] [-o FOLDER] [-t SECONDS] [-r] [PART...]
#
# PARTS, each of at most 8 minutes; all of them without one:
#   unmodified   programs that know nothing of us, plain and preloaded: same results, time
#   sequences    host time per operation beside PyTorch's allocator and the driver's pool
#   warmup       the first cycle of a sequence, cold and after ta_cuda_warmup
#   reuse        no block is handed out while work on it is pending
#   limits       what PyTorch and CuPy see of a limit, and spilling
#   ipc          blocks opened in another process
#   train        a transformer trained in five ways: same losses
#   memcheck     compute-sanitizer finds nothing
#
#   -l LIB      the library, default build/libtieralloc.so
#   -o FOLDER   where programs are built and figures left, default a temporary one
#   -t SECONDS  how long the storm of part reuse goes on, default 20
#   -r          a device is required: without one this fails instead of saying so
#
# Needs nvcc, and python3 with PyTorch, CuPy and numba; what is missing, or fails without
# the library, is named and its rows are left out, or with -r fail. A table of all checks is
# printed at the end; rows "info" tell what the driver does by itself. Exit status: 0 all
# held, 1 some did not, 2 wrong use.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$here/../../python
lib=$here/../../build/libtieralloc.so out='' require='' seconds=20
all_parts=(unmodified sequences warmup reuse limits ipc train memcheck)
usage() {
	awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0" >&2
	exit 2
}
while getopts l:o:t:r option; do
	case $option in
	l) lib=$OPTARG ;;
	o) out=$OPTARG ;;
	t) seconds=$OPTARG ;;
	r) require=yes ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
parts=("$@")
((${#parts[@]})) || parts=("${all_parts[@]}")
for part in "${parts[@]}"; do
	[[ " ${all_parts[*]} " == *" $part "* ]] || { echo "run.sh: no part $part; there are: ${all_parts[*]}" >&2; exit 2; }
done
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "run.sh: -t $seconds: expected a number of seconds" >&2; exit 2; }
lib=$(readlink -f "$lib")
[[ -f $lib ]] || { echo "run.sh: no library $lib: run ./build.sh build" >&2; exit 2; }
out=${out:-$(mktemp -d)}
mkdir -p "$out" && out=$(readlink -f "$out")

table=()
row() { # RESULT WHAT [FIGURES]
	table+=("$(printf '%-5s %-52s %s' "$1" "$2" "${3:-}")")
	echo "${table[-1]}"
}
lack() { # WHAT REASON: not the library's fault
	if [[ -n $require ]]; then row FAIL "$1" "$2"; else row skip "$1" "$2"; fi
}
missing() { lack "$1" "is missing"; }
why() { echo "status $1: $(grep -v '^ *$' "$2" | tail -n 1 | cut -c1-160)"; } # STATUS LOG: a failed program's last words
log_of() { echo "$out/${1//[^A-Za-z0-9]/_}"; }                                  # WHAT: a name for files about it

# A program that hangs is ended, with status 124. Both may begin with NAME=VALUE.
plain() { timeout -k 10 240 env "$@"; }
preload() { timeout -k 10 240 env LD_PRELOAD="$lib" "$@"; }
has() { python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; }

# holds WHAT COMMAND...: must end with status 0; the last line that it prints is the figures.
holds() {
	local what=$1 log status
	shift
	log=$(log_of "$what").log
	"$@" >"$log" 2>&1
	status=$?
	if ((status == 0)); then row ok "$what" "$(tail -n 1 "$log")"; else row FAIL "$what" "$(why $status "$log")"; fi
	return $status
}

# compile NAME SOURCE [FLAGS...], once.
declare -A compiled
compile() {
	local name=$1 source=$2 log
	shift 2
	[[ -z ${compiled[$name]:-} ]] || return 0
	command -v nvcc >/dev/null || { missing "nvcc, for $source"; return 1; }
	log=$(log_of "$name").log
	if ! nvcc -std=c++17 -O2 -arch=native -Xcompiler -pthread -o "$out/$name" "$here/$source" "$@" -ldl >"$log" 2>&1; then
		cat "$log"
		row FAIL "$source does not compile" "$(grep -m1 error "$log")"
		return 1
	fi
	compiled[$name]=yes
}

if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
	if [[ -n $require ]]; then
		echo "run.sh: no CUDA device" >&2
		exit 1
	fi
	echo "run.sh: no CUDA device: nothing was run"
	exit 0
fi

# same NAME COMMAND...: plain, then preloaded with both ways of reuse. Each prints lines
# "WHAT NS [RESULT]". Results must agree, and pairs with the device idle be 5 times as fast.
same() {
	local name=$1 log want got mode status
	shift
	log=$(log_of "$name").err
	want=$(plain "$@" 2>"$log")
	status=$?
	if ((status != 0)); then
		lack "$name" "plain: $(why $status "$log")"
		return
	fi
	for mode in sync event; do
		got=$(preload TA_CUDA_REUSE=$mode "$@" 2>"$log")
		status=$?
		if ((status != 0)); then
			row FAIL "$name, $mode" "$(why $status "$log")"
			continue
		fi
		row "$(judge "$want" "$got")" "$name, $mode" "$(ratios "$want" "$got")"
	done
}
judge() {
	awk -v want="$1" -v got="$2" 'BEGIN {
		n = split(want, a, "\n"); m = split(got, b, "\n"); ok = n == m
		for (i = 1; i <= n; i++) {
			split(a[i], x, " "); split(b[i], y, " ")
			if (x[1] != y[1] || x[3] != y[3]) ok = 0
			if (x[1] == "pending" || x[1] == "torch") least = 0.95; else least = 5
			if (y[2] == 0 || x[2] / y[2] < least) ok = 0
		}
		print ok ? "ok" : "FAIL" }'
}
ratios() {
	awk -v want="$1" -v got="$2" 'BEGIN {
		n = split(want, a, "\n"); split(got, b, "\n")
		for (i = 1; i <= n; i++) {
			split(a[i], x, " "); split(b[i], y, " ")
			printf "%s %d -> %d ns, %.1f times; ", x[1], x[2], y[2], y[2] ? x[2] / y[2] : 0
		} }'
}

# steady NAME COMMAND...: as same, for what must not become slower: medians of 5 runs,
# interleaved, at most 5% above plain.
steady() {
	local name=$1 log mode status
	shift
	log=$(log_of "$name")
	rm -f "$log".{plain,sync,event}
	for _ in 1 2 3 4 5; do
		for mode in plain sync event; do
			if [[ $mode == plain ]]; then plain "$@"; else preload TA_CUDA_REUSE=$mode "$@"; fi >>"$log.$mode" 2>"$log.err"
			status=$?
			((status == 0)) && continue
			if [[ $mode == plain ]]; then lack "$name" "plain: $(why $status "$log.err")"; else row FAIL "$name, $mode" "$(why $status "$log.err")"; fi
			return
		done
	done
	for mode in sync event; do
		awk -v before="$(column_median 2 "$log.plain")" -v now="$(column_median 2 "$log.$mode")" \
			-v results="$(cut -d' ' -f3 "$log.plain" "$log.$mode" | sort -u | wc -l)" \
			'BEGIN { print (results == 1 && now > 0 && now <= 1.05 * before) ? "ok" : "FAIL"
				printf "%d -> %d ns, %.3f of plain, %d result(s)\n", before, now, now / before, results }' >"$log.verdict"
		row "$(sed -n 1p "$log.verdict")" "$name, $mode" "$(sed -n 2p "$log.verdict")"
	done
}
column_median() { cut -d' ' -f"$1" "$2" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] + 0 }'; }

unmodified() {
	compile loop_static loop.cu && same "C++, static cudart" "$out/loop_static"
	compile loop_shared loop.cu -cudart shared && same "C++, shared cudart" "$out/loop_shared"
	local f
	for f in cupy numba; do
		if has $f; then same "$f without a pool" python3 "$here/frameworks.py" $f; else missing $f; fi
	done
	if has torch; then
		same "PyTorch without its cache" PYTORCH_NO_CUDA_MEMORY_CACHING=1 python3 "$here/frameworks.py" torch
		steady "PyTorch as it is" python3 "$here/frameworks.py" torch
	else
		missing torch
	fi
}

# timed WHO COMMAND...: adds what sequences prints, under a name.
timed() {
	local who=$1 status
	shift
	"$@" >"$out/sequences.one" 2>>"$out/sequences.err"
	status=$?
	((status == 0)) || echo "$who: status $status" >>"$out/sequences.err"
	sed "s/^torch/$who/" "$out/sequences.one" >>"$out/sequences.txt"
}
sequences() {
	command -v nvcc >/dev/null && has torch || { missing "nvcc or torch"; return; }
	local site flags
	site=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))')
	flags="-I$site/include -I$site/include/torch/csrc/api/include -L$site/lib -Xlinker -rpath,$site/lib -Xlinker --no-as-needed -lc10_cuda -lc10 -ltorch_cuda -ltorch_cpu -ltorch"
	local abi
	abi=$(python3 -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
	# shellcheck disable=SC2086 # flags are several
	nvcc -std=c++20 -O2 -DWITH_TORCH -D_GLIBCXX_USE_CXX11_ABI="$abi" -cudart shared -o "$out/sequences" "$here/sequences.cpp" $flags -ldl >"$out/sequences.log" 2>&1 ||
		{ tail -20 "$out/sequences.log"; row FAIL "sequences.cpp does not compile"; return; }
	: >"$out/sequences.txt"
	: >"$out/sequences.err"
	local s
	for _ in 1 2 3; do
		for s in same_size large transformer pressure variable grad_accum random_4M random_64M; do
			timed ours preload "$out/sequences" ours 5 $s
			timed torch plain "$out/sequences" torch 5 $s
			timed pool plain "$out/sequences" pool 5 $s
			timed expandable plain PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$out/sequences" torch 5 $s
		done
	done
	sort -u "$out/sequences.err" | tail -5
	python3 "$here/summary.py" "$out/sequences.txt" >"$out/summary.txt"
	cat "$out/summary.txt"
	while read -r s verdict figures; do row "$verdict" "sequence $s" "$figures"; done < <(grep '^row ' "$out/summary.txt" | cut -d' ' -f2-)
}

# Required is faster; the goal is 38 times.
warmup() {
	compile warmup warmup.cu || return
	local how status
	rm -f "$out"/warmup.{cold,warm}
	for _ in 1 2 3 4 5; do
		for how in cold warm; do
			preload "$out/warmup" $how >>"$out/warmup.$how" 2>"$out/warmup.err"
			status=$?
			((status == 0)) || { row FAIL "warm-up, $how" "$(why $status "$out/warmup.err")"; return; }
		done
	done
	awk -v cold="$(column_median 1 "$out/warmup.cold")" -v warm="$(column_median 1 "$out/warmup.warm")" \
		'BEGIN { print (warm > 0 && cold > warm) ? "ok" : "FAIL"
			printf "%.0f -> %.0f ns, %.1f times (goal 38)\n", cold, warm, warm ? cold / warm : 0 }' >"$out/warmup.verdict"
	row "$(sed -n 1p "$out/warmup.verdict")" "warm-up, transformer, first cycle" "$(sed -n 2p "$out/warmup.verdict")"
}

# informs WHAT COMMAND...: what the driver does without the library.
informs() {
	local what=$1 log
	shift
	log=$(log_of "$what").log
	"$@" >"$log" 2>&1
	row info "$what" "$(why $? "$log")"
}
reuse() {
	compile reuse reuse.cu && compile storm storm.cu || return
	local mode gpus
	gpus=$(nvidia-smi -L | grep -c GPU)
	informs "reuse, cudaFree, the driver alone" plain "$out/reuse" plain driver
	holds "reuse, control: a mistake is seen" preload "$out/reuse" control
	for mode in sync event; do
		holds "reuse, cudaFree, $mode" preload TA_CUDA_REUSE=$mode "$out/reuse" plain $mode
		holds "reuse, cudaFree, SUBALLOC=all, $mode" preload TA_CUDA_REUSE=$mode TA_CUDA_SUBALLOC=all "$out/reuse" plain $mode
		holds "reuse, ta_cuda_free, $mode" preload TA_CUDA_REUSE=$mode "$out/reuse" ordered
		holds "reuse, storm, $mode" timeout -k 10 $((seconds + 120)) env LD_PRELOAD="$lib" TA_CUDA_REUSE=$mode "$out/storm" "$seconds"
		if ((gpus > 1)); then
			holds "reuse, two devices, $mode" preload TA_CUDA_REUSE=$mode "$out/reuse" peer $mode
		else
			row skip "reuse, two devices, $mode" "there is one"
		fi
	done
}

limits() {
	if has torch; then
		holds "limit of 8 GiB, PyTorch" preload TA_CUDA_HARD=8G python3 "$here/limits.py" torch
		holds "limit of 8 GiB, PyTorch, pluggable" preload TA_CUDA_HARD=8G PYTHONPATH="$python" python3 "$here/limits.py" pluggable
	else
		missing torch
	fi
	if has cupy; then
		holds "limit of 8 GiB, CuPy" preload TA_CUDA_HARD=8G python3 "$here/limits.py" cupy
		holds "limit of 1 GiB, spill, CuPy" preload TA_CUDA_HARD=1G TA_CUDA_ON_HARDCAP=spill PYTHONPATH="$python" python3 "$here/limits.py" spill
	else
		missing cupy
	fi
}

# opened WHAT STATUSES OUTPUT COMMAND...: ends with one of the statuses, and prints OUTPUT if
# that is not empty.
opened() {
	local what=$1 statuses=$2 want=$3 log status
	shift 3
	log=$(log_of "$what").log
	"$@" >"$log" 2>&1
	status=$?
	if [[ " $statuses " == *" $status "* && (-z $want || $want == "$(cat "$log")") ]]; then
		row ok "$what" "$(paste -sd, "$log")"
	else
		row FAIL "$what" "status $status: $(paste -sd, "$log" | cut -c1-200)"
	fi
}
ipc() {
	compile ipc ipc.cu || return
	local mode log status
	log=$out/ipc_plain.txt
	plain "$out/ipc" - >"$log" 2>&1
	status=$?
	if ! grep -q right "$log"; then
		lack "ipc" "plain: $(why $status "$log")"
		return
	fi
	row info "ipc, the driver alone" "$(paste -sd, "$log")"
	for mode in small all; do
		opened "ipc, SUBALLOC=$mode" 0 '' preload TA_CUDA_SUBALLOC=$mode "$out/ipc" "$lib"
		# A process without the library may be refused a block, never given another's bytes.
		opened "ipc, SUBALLOC=$mode, to a plain process" "0 3" '' preload TA_CUDA_SUBALLOC=$mode "$out/ipc" -
	done
	opened "ipc, from a plain process" $status "$(cat "$log")" plain "$out/ipc" "$lib"
}

train() {
	has torch || { missing torch; return; }
	local kind how log status
	for kind in eager side graph; do
		log=$out/train_${kind}
		plain python3 "$here/train.py" $kind >"$log.txt" 2>"$log.err"
		status=$?
		((status == 0)) || { lack "train, $kind" "plain: $(why $status "$log.err")"; continue; }
		for how in plain sync event pluggable; do
			log=$out/train_${kind}_$how
			case $how in
			plain) plain python3 "$here/train.py" $kind ;;
			sync | event) preload TA_CUDA_REUSE=$how python3 "$here/train.py" $kind ;;
			pluggable) preload PYTHONPATH="$python" python3 "$here/train.py" $kind pluggable ;;
			esac >"$log.txt" 2>"$log.err"
			status=$?
			if ((status != 0)); then
				row FAIL "train, $kind, $how" "$(why $status "$log.err")"
			elif ! cmp -s "$out/train_$kind.txt" "$log.txt"; then
				row FAIL "train, $kind, $how" "other losses: $(diff "$out/train_$kind.txt" "$log.txt" | grep -c '^>') of $(wc -l <"$log.txt")"
			else
				row ok "train, $kind, $how" "the same $(wc -l <"$log.txt") losses, the last $(tail -n 1 "$log.txt")"
			fi
		done
	done
}

memcheck() {
	command -v compute-sanitizer >/dev/null || { missing compute-sanitizer; return; }
	compile reuse reuse.cu && compile storm storm.cu && compile loop_static loop.cu || return
	local checker=(compute-sanitizer --tool memcheck --error-exitcode 9) log=$out/memcheck.log what status
	# First what it must find: some machines have no device for it.
	plain "${checker[@]}" "$out/reuse" outside >"$log" 2>&1
	if ! grep -q 'Invalid __global__ write' "$log"; then
		row skip "memcheck" "refused: $(grep -m1 -i 'not supported\|error' "$log" | cut -c1-160)"
		return
	fi
	what="memcheck, control: a mistake is seen"
	preload "${checker[@]}" "$out/reuse" outside >"$log" 2>&1
	status=$?
	if grep -q 'Invalid __global__ write' "$log"; then row ok "$what"; else row FAIL "$what" "$(why $status "$log")"; fi
	for what in "loop_static 3" "reuse ordered" "storm 3"; do
		# shellcheck disable=SC2086 # the program's arguments
		holds "memcheck, $what" preload "${checker[@]}" "$out"/$what
	done
}

for part in "${parts[@]}"; do
	echo "== $part"
	$part
done
echo
printf '%s\n' "${table[@]}"
printf '%s\n' "${table[@]}" | grep -q '^FAIL' && exit 1
exit 0
