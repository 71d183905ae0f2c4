// Command cpu compares this library's heap with the C library's and with other allocators,
// by programs: those of work/, each after a pattern that the literature on allocators knows, and
// real ones where they are installed.
//
// In every round each allocator runs the program once, and who begins changes from round to
// round. What is reported is the ratio to glibc in the same round: its median, and the range that
// holds the middle half of the rounds. Time is from start to end of the process; memory is the
// peak of what was resident, and where a workload prints it, what still is when its blocks
// are freed and some time has passed. That range is the spread: a ratio whose spread has 1 in it
// is marked, for the difference may be chance. The processor, the kernel and its setting for huge
// pages are printed, too, since the ratios depend on them.
//
// Of a server the time is its client's, which runs without a preloaded allocator. A program that is
// not installed is named and left out.
//
// With --scaling what is reported is how the time grows with the threads, each of which does as
// much as one alone would. --programs lets that run where there is no compiler: this command
// (CGO_ENABLED=0 go build), the programs and the libraries in one folder are all that it takes.
//
// glibc is preloaded, too: its allocator serves then even in programs that are linked with
// another (Debian's redis-server with jemalloc).
package main
