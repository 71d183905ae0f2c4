#!/usr/bin/env bash
# Runs the public tests of cubie's memory manager with package tieralloc in its place.
#
#   tests/python/cubie.sh CHECKOUT [PYTEST ARGS]
#
# CHECKOUT is a copy of github.com/ccam80/cubie, of a version whose arrays are numba's (to January 2026,
# efed7af7). The device is the machine's, or else the fake driver's of tests/cuda, for which numba is
# a stand-in. PYTHON names another Python than the system's; it needs NumPy and pytest.
set -euo pipefail

if (($# < 1)) || [[ ! -d $1/tests/memory ]]; then
	sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
checkout=$(cd -- "$1" && pwd -P)
shift
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd -- "$here/../.." && pwd -P)
python=${PYTHON:-/usr/bin/python3}
[[ -f $root/build/libtieralloc.so ]] || {
	echo "cubie.sh: build/libtieralloc.so is missing: ./build.sh build" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

drivers=${LD_LIBRARY_PATH:-}
if ! "$python" -c 'import ctypes; exit(ctypes.CDLL("libcuda.so.1").cuInit(0) != 0)' 2>/dev/null; then
	gcc -O1 -pthread -shared -fPIC -fvisibility=hidden -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -DFAKE_CUDA=13 \
		-I "$root/tests/cuda/fake" -I "$root/interpose" -o "$work/libcuda.so.1" "$root"/tests/cuda/fake/*.c
	drivers=$work
fi
mkdir "$work/memory"
for name in conftest test_array_requests test_memmgmt test_stream_groups; do
	cp -- "$checkout/tests/memory/$name.py" "$work/memory/"
done
cd -- "$work"
FAKE_MEMORY=${FAKE_MEMORY:-8589934592} PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/python:$here/testdata LD_LIBRARY_PATH=$drivers \
	LD_PRELOAD=$root/build/libtieralloc.so "$python" -m pytest -q -rxX -p no:cacheprovider -p cubie_tests memory "$@"
