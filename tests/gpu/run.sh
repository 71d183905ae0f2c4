#!/usr/bin/env bash
# Runs the library's tests and measurements that need a CUDA device.
#
#   run.sh [-l LIB] [-o FOLDER] [-t SECONDS] [-r] [PART...]
#
# PARTS, all of them without one. A part ends within 8 minutes; what has not been run by then fails.
#   unmodified   programs that know nothing of us, plain and preloaded: same results, time
#   sequences    host time per operation beside PyTorch's allocator and the driver's pool
#   warmup       the first cycle of a sequence, cold and after ta_cuda_warmup
#   reuse        no block is handed out while work on it is pending
#   peer         the same with the work on another device; needs two
#   limits       what PyTorch and CuPy see of a limit, and spilling
#   ipc          blocks opened in another process
#   train        a transformer trained in five ways: same losses
#   memcheck     compute-sanitizer finds nothing
#
#   -l LIB      the library, default build/libtieralloc.so
#   -o FOLDER   where programs are built and figures left, default a temporary one
#   -t SECONDS  how long each storm of part reuse goes on, 1 to 120, default 20
#   -r          all that a part needs is required: without it this fails instead of saying so
#
# Needs a CUDA device, nvcc, and python3 with PyTorch, CuPy and numba; what is missing, or fails
# without the library, is named and its rows are left out, or with -r fail. A table of all
# checks is printed at the end; rows "info" tell what the driver does by itself. Exit status: 0
# all held, 1 some did not, 2 wrong use.

# shellcheck disable=SC2317 # parts, and what runs programs, are called by names in variables
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$here/../../python
lib=$here/../../build/libtieralloc.so out='' require='' seconds=20
all_parts=(unmodified sequences warmup reuse peer limits ipc train memcheck)
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
if ! [[ $seconds =~ ^[1-9][0-9]{0,2}$ ]] || ((seconds > 120)); then
	echo "run.sh: -t $seconds: expected 1 to 120 seconds" >&2
	exit 2
fi
lib=$(readlink -f "$lib")
[[ -f $lib ]] || { echo "run.sh: no library $lib: run ./build.sh build" >&2; exit 2; }
out=${out:-$(mktemp -d)}
mkdir -p "$out" && out=$(readlink -f "$out")

table=() one_failed=0
row() { # RESULT WHAT [FIGURES]
	case $1 in ok | info | skip) ;; *) one_failed=1 ;; esac
	table+=("$(printf '%-5s %-52s %s' "$1" "$2" "${3:-}")")
	echo "${table[-1]}"
}
lack() { # WHAT REASON: not the library's fault
	if [[ -n $require ]]; then row FAIL "$1" "$2"; else row skip "$1" "$2"; fi
}
missing() { lack "$1" "is missing"; }
why() { # STATUS LOG: a failed program's last words
	local late=''
	(($1 != 124 && $1 != 137)) || late="out of time: "
	echo "${late}status $1: $(grep -v '^ *$' "$2" | tail -n 1 | cut -c1-160)"
}
log_of() { echo "$out/${1//[^A-Za-z0-9]/_}"; } # WHAT: a name for files about it

# A program that hangs, or goes on when its part has had its time, is ended with status 124.
part_end=0
within() { # SECONDS COMMAND...
	local left=$((part_end - SECONDS)) most=$1
	shift
	((left > 0)) || { echo "not begun: the part's time was over" >&2; return 124; }
	timeout -k 10 $((left < most ? left : most)) "$@"
}
# Both may begin with NAME=VALUE.
plain() { within 240 env "$@"; }
preload() { within 240 env LD_PRELOAD="$lib" "$@"; }
has() { python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; }

# holds WHAT PATTERN COMMAND...: must end with status 0 and print a line that the regular
# expression describes, its figures.
holds() {
	local what=$1 pattern=$2 log status figures
	shift 2
	log=$(log_of "$what").log
	"$@" >"$log" 2>&1
	status=$?
	figures=$(grep -E -- "$pattern" "$log" | tail -n 1)
	if ((status == 0)) && [[ -n $figures ]]; then
		row ok "$what" "$figures"
	else
		row FAIL "$what" "$(why "$status" "$log")"
	fi
}

# compile NAME SOURCE [FLAGS...], once.
declare -A compiled
compile() {
	local name=$1 source=$2 log
	shift 2
	[[ -z ${compiled[$name]:-} ]] || return 0
	command -v nvcc >/dev/null || { missing "nvcc, for $source"; return 1; }
	log=$(log_of "$name").log
	if ! within 240 nvcc -std=c++17 -O2 -arch=native -Xcompiler -pthread -o "$out/$name" "$here/$source" "$@" -ldl >"$log" 2>&1; then
		cat "$log"
		row FAIL "$source does not compile" "$(grep -m1 error "$log")"
		return 1
	fi
	compiled[$name]=yes
}

gpus=$(nvidia-smi -L 2>/dev/null | grep -c GPU)
if ((gpus == 0)); then
	if [[ -n $require ]]; then
		echo "run.sh: no CUDA device" >&2
		exit 1
	fi
	echo "run.sh: no CUDA device: nothing was run"
	exit 0
fi

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
# The least of a column of so many positive numbers; 0 where there are fewer or others.
column_least() { # COLUMN LINES FILE
	cut -d' ' -f"$1" "$3" | sort -g | awk -v n="$2" 'NR == 1 { least = $1 } { bad += !($1 > 0) } END { print NR == n && !bad ? least : 0 }'
}
# The median of a column of so many positive numbers; 0 where there are fewer or others.
column_median() { # COLUMN LINES FILE
	cut -d' ' -f"$1" "$3" | sort -g |
		awk -v n="$2" '{ v[NR] = $1; bad += !($1 > 0) } END { print NR == n && !bad ? v[int((n + 1) / 2)] : 0 }'
}
# A row: BEFORE / NOW must be at least LEAST times, and RESULTS be 1.
verdict() { # WHAT BEFORE NOW LEAST RESULTS [TEXT]
	local figures
	figures=$(awk -v before="$2" -v now="$3" -v least="$4" -v results="$5" 'BEGIN {
		ok = before > 0 && now > 0 && before / now >= least && results == 1
		factor = now > 0 ? before / now : 0
		printf "%s %.0f -> %.0f ns, %.3f times as fast, %d result(s)\n", (ok ? "ok" : "FAIL"), before, now, factor, results }')
	row "${figures%% *}" "$1" "${figures#* }${6:-}"
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
	# Three rounds, or as many as there is time for.
	while ((rounds < 3 && (rounds == 0 || SECONDS + took < part_end))); do
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

for part in "${parts[@]}"; do
	echo "== $part"
	part_end=$((SECONDS + 460)) rows=${#table[@]}
	$part
	((${#table[@]} > rows)) || row FAIL "$part" "nothing was checked"
done
echo
printf '%s\n' "${table[@]}"
exit "$one_failed"
