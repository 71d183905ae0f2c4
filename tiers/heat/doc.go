// Package heat measures how often the process uses each 2 MiB region of its memory, and estimates
// from that which regions are hot.
//
// A [Source] is one way to ask the kernel. [Sources] lists them, best first, and [First] starts the
// first that works. A source may fail later, when the process loses a right; the caller then calls
// First with the sources that follow.
//
// Sampling costs processor time. [Period] says how long to wait between two samples so that it
// stays within [Budget].
//
// It is ordinary Go for the control plane. It keeps files open only where the kernel demands it,
// because the program may close every descriptor, and it opens none through package os, whose
// poller does not survive that.
package heat
