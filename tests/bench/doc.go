// Package bench compares the library with the C library's malloc, and with other
// allocators where they are installed (libmimalloc2.0, libjemalloc2 and
// libtcmalloc-minimal4 in Debian).
//
// Speeds drift on a shared machine, so allocators take turns within one run, and
// what is reported is their ratio: the median over the rounds of (time of the
// allocator in the round / time of glibc in the same round). Nothing here passes
// or fails on a time.
package bench
