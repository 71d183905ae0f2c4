#!/bin/bash
# Clones the tree into this system, and does with it what the README tells a stranger to do.
# What the commands print goes to files, one each.
set -e
# shellcheck source=/dev/null
. /tests/environment
all=$TA_TEST_BARE_ALL
unset TA_TEST_BARE_ALL # a TA_ variable more is a setting to the library
git -c advice.detachedHead=false clone -q /tests/tree.bundle /srv/tieralloc
cd /srv/tieralloc
if setpriv --reuid=65534 --regid=65534 --clear-groups ./build.sh build >/tests/refused.out 2>&1; then exit 1; fi
say() { echo "$1: $SECONDS s"; }
bash /tests/first.sh >/tests/run.out 2>/tests/run.err
say "from the clone to the output"
build/tierallocctl verify -- sh -c 'git log -1 --format=%s; git status --short' >/tests/verify.out 2>&1
say "and a preload that is verified"
./build.sh install >/tests/install.out 2>&1
LD_PRELOAD=libtieralloc.so.1 TA_STATS_FILE=/tests/short.json git --version
tierallocctl verify -- git --version
./build.sh uninstall
./build.sh test ./internal/... ./tiers ./cudahook >/tests/test.out 2>&1
say "and the unit tests"
[ -z "$all" ] || {
	status=0
	bash /tests/second.sh >/tests/all.out 2>&1 </dev/null || status=$?
	say "and all tests, which ended with $status"
	exit "$status"
}
