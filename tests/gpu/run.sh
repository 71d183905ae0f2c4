#!/usr/bin/env bash
# Runs the library's tests and measurements that need a CUDA device.
#
#   run.sh [-l LIB] [-o FOLDER] [-r] [PART...]
#
# PARTS, each of at most 8 minutes; all of them without one:
#   unmodified   programs that know nothing of us, plain and preloaded: same results, time
#   sequences    host time per operation beside PyTorch's allocator and the driver's pool
#
#   -l LIB      the library, default build/libtieralloc.so
#   -o FOLDER   where programs are built and figures left, default a temporary one
#   -r          a device is required: without one this fails instead of saying so
#
# Needs nvcc, and python3 with PyTorch, CuPy and numba; what is missing is named and its
# rows are left out, or with -r fail. A table of all checks is printed at the end. Exit
# status: 0 all held, 1 some did not, 2 wrong use.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lib=$here/../../build/libtieralloc.so out='' require=''
while getopts l:o:r option; do
	case $option in
	l) lib=$OPTARG ;;
	o) out=$OPTARG ;;
	r) require=yes ;;
	*) sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))
lib=$(readlink -f "$lib")
[[ -f $lib ]] || { echo "run.sh: no library $lib: run ./build.sh build" >&2; exit 2; }
out=${out:-$(mktemp -d)}
mkdir -p "$out"
parts=("${@:-}")
[[ -n ${parts[0]} ]] || parts=(unmodified sequences)

table=()
row() { # RESULT WHAT [FIGURES]
	table+=("$(printf '%-5s %-52s %s' "$1" "$2" "${3:-}")")
	echo "${table[-1]}"
}
missing() { # WHAT: something that a row needs is not there
	if [[ -n $require ]]; then row FAIL "$1" "is missing"; else row skip "$1" "is missing"; fi
}
preload() { env LD_PRELOAD="$lib" "$@"; } # may begin with NAME=VALUE
has() { python3 -c "import $1" 2>/dev/null; }

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
	local name=$1 want got mode
	shift
	if ! want=$("$@" 2>"$out/$name.err"); then
		row FAIL "$name, plain" "$(tail -1 "$out/$name.err")"
		return
	fi
	for mode in sync event; do
		if ! got=$(preload TA_CUDA_REUSE=$mode "$@" 2>"$out/$name.err"); then
			row FAIL "$name, $mode" "$(tail -1 "$out/$name.err")"
			continue
		fi
		row "$(judge "$name" "$want" "$got")" "$name, $mode" "$(ratios "$want" "$got")"
	done
}
judge() {
	awk -v want="$2" -v got="$3" 'BEGIN {
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

unmodified() {
	if command -v nvcc >/dev/null; then
		nvcc -O2 -o "$out/loop_static" "$here/loop.cu" && nvcc -O2 -cudart shared -o "$out/loop_shared" "$here/loop.cu" || { row FAIL "nvcc"; return; }
		same "C++, static cudart" "$out/loop_static"
		same "C++, shared cudart" "$out/loop_shared"
	else
		missing "nvcc"
	fi
	local f
	for f in cupy numba; do
		if has $f; then same "$f without a pool" python3 "$here/frameworks.py" $f; else missing $f; fi
	done
	if has torch; then
		same "PyTorch without its cache" env PYTORCH_NO_CUDA_MEMORY_CACHING=1 python3 "$here/frameworks.py" torch
		same "PyTorch as it is" python3 "$here/frameworks.py" torch
	else
		missing torch
	fi
}

sequences() {
	command -v nvcc >/dev/null && has torch || { missing "nvcc or torch"; return; }
	local site flags
	site=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))')
	flags="-I$site/include -I$site/include/torch/csrc/api/include -L$site/lib -Xlinker -rpath,$site/lib -Xlinker --no-as-needed -lc10_cuda -lc10 -ltorch_cuda -ltorch_cpu -ltorch"
	local abi
	abi=$(python3 -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
	nvcc -std=c++20 -O2 -DWITH_TORCH -D_GLIBCXX_USE_CXX11_ABI=$abi -cudart shared -o "$out/sequences" "$here/sequences.cpp" $flags -ldl >"$out/sequences.log" 2>&1 ||
		{ tail -20 "$out/sequences.log"; row FAIL "sequences.cpp does not compile"; return; }
	: >"$out/sequences.txt"
	local round s
	for round in 1 2 3; do
		for s in same_size large transformer pressure variable grad_accum random_4M random_64M; do
			preload "$out/sequences" ours 5 $s >>"$out/sequences.txt" 2>>"$out/sequences.err"
			"$out/sequences" torch 5 $s >>"$out/sequences.txt" 2>>"$out/sequences.err"
			"$out/sequences" pool 5 $s >>"$out/sequences.txt" 2>>"$out/sequences.err"
			PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$out/sequences" torch 5 $s 2>>"$out/sequences.err" | sed 's/^torch/expandable/' >>"$out/sequences.txt"
		done
	done
	sort -u "$out/sequences.err" | tail -5
	python3 "$here/summary.py" "$out/sequences.txt" >"$out/summary.txt"
	cat "$out/summary.txt"
	while read -r s verdict figures; do row "$verdict" "sequence $s" "$figures"; done < <(grep '^row ' "$out/summary.txt" | cut -d' ' -f2-)
}

for part in "${parts[@]}"; do
	echo "== $part"
	case $part in
	unmodified | sequences) $part ;;
	*) echo "run.sh: no part $part" >&2; exit 2 ;;
	esac
done
echo
printf '%s\n' "${table[@]}"
printf '%s\n' "${table[@]}" | grep -q '^FAIL' && exit 1
exit 0
