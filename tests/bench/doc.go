// Package bench compares the library with the C library's malloc, and with other
// allocators where they are installed (libmimalloc2.0, libjemalloc2 and
// libtcmalloc-minimal4 in Debian) or named by -peers NAME=PATH,... (absolute).
//
// The programs in document are TierAlloc's two, as ./build.sh build leaves them in build/benchmark.
//
// Other benchmarks hold the library with some variables set against itself without
// them: idle tiers, each kind of rule, throttled tiers, hints, and demotion.
//
// BenchmarkTiering boots guests of a fast and a slow memory node, in which a plugin of QEMU's
// counts which node serves the accesses of programs, by who decides where their pages lie
// (tests/numa/vm.sh). It takes some minutes for each of its workloads.
//
// Speeds drift on a shared machine, so allocators take turns within one run, and
// what is reported is their ratio: the median over the rounds of (time of the
// allocator in the round / time of the first one in the same round). Start-up and
// threads that work together are timed by the clock, one thread alone by what it had of a
// processor. Nothing here passes or fails on a time.
package bench
