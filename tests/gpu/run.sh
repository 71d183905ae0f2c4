#!/usr/bin/env bash
# Runs the library's tests and measurements that need a CUDA device.
#
#   run.sh [-l LIB] [-o FOLDER] [-n ROUNDS] [-t SECONDS] [-r] [PART...]
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
#   managed      examples of managed memory, and the host time of batched prefetches
#   manager      chunks, eviction and caps of the memory manager
#   heap         unmodified programs with TA_CUDA_MANAGED=1: same results
#   async        cudaMallocAsync served by the heap: no early reuse, time beside the driver's pool
#   regions      device memory sleeps and wakes at the same addresses, with its contents
#   memcheck     compute-sanitizer finds nothing
#
#   -l LIB      the library, default build/libtieralloc.so
#   -o FOLDER   where programs are built and figures left, default a temporary one
#   -n ROUNDS   how often part sequences runs each sequence at most, 1 to 9, default 3
#   -t SECONDS  how long each storm of parts reuse and async goes on, 1 to 120, default 20
#   -r          all that a part needs is required: without it this fails instead of saying so
#
# Needs a CUDA device, nvcc, and python3 with PyTorch, CuPy and numba; what is missing, or fails
# without the library, is named and its rows are left out, or with -r fail. A table of all
# checks is printed at the end; rows "info" tell what the driver does by itself. Exit status: 0
# all held, 1 some did not, 2 wrong use.

# shellcheck disable=SC2317 # parts, and what runs programs, are called by names in variables
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for the parts
python=$here/../../python
lib=$here/../../build/libtieralloc.so out='' require='' most_rounds=3 seconds=20
all_parts=(unmodified sequences warmup reuse peer limits ipc train managed manager heap async regions memcheck)
usage() {
	awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0" >&2
	exit 2
}
while getopts l:n:o:t:r option; do
	case $option in
	l) lib=$OPTARG ;;
	n) most_rounds=$OPTARG ;;
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
if ! [[ $most_rounds =~ ^[1-9]$ ]]; then
	echo "run.sh: -n $most_rounds: expected 1 to 9 rounds" >&2
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

# The least of a column of so many positive numbers; 0 where there are fewer or others.
column_least() { # COLUMN LINES FILE
	cut -d' ' -f"$1" "$3" | sort -g | awk -v n="$2" 'NR == 1 { least = $1 } { bad += !($1 + 0 > 0) } END { print NR == n && !bad ? least : 0 }'
}
# The median of a column of so many positive numbers; 0 where there are fewer or others.
column_median() { # COLUMN LINES FILE
	cut -d' ' -f"$1" "$3" | sort -g |
		awk -v n="$2" '{ v[NR] = $1; bad += !($1 + 0 > 0) } END { print NR == n && !bad ? v[int((n + 1) / 2)] : 0 }'
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

for file in "$here"/parts/*.sh; do
	# shellcheck source=/dev/null
	. "$file"
done
for part in "${parts[@]}"; do
	echo "== $part"
	part_end=$((SECONDS + 460)) rows=${#table[@]}
	$part
	((${#table[@]} > rows)) || row FAIL "$part" "nothing was checked"
done
echo
printf '%s\n' "${table[@]}"
exit "$one_failed"
