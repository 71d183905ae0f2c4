// Package heat measures how often the process touches each region of its memory, and estimates from
// that which regions are hot.
//
// A [Source] is one way to ask the kernel. [Sources] lists them, best first, and [First] starts the
// first that works and tells the regions apart. A source may fail later, when the process loses a
// right; the caller then calls First with the sources that follow.
//
// A sample is an estimate of touches per second. An [Estimate] makes a mean of samples, and follows
// regions that come, go, split and join.
//
// Sampling costs processor time. [Period] says how long to wait between two samples so that it
// stays within [Budget].
//
// It is ordinary Go for the control plane. It keeps files open only where the kernel demands it,
// because the program may close every descriptor, and it opens none through package os, whose
// poller does not survive that.
package heat
