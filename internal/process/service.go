package process

import (
	"sync/atomic"

	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/profile"
	"tieralloc/tiers"
)

// Reasons why the control plane is stopped.
const (
	StopLimit   = iota // there is a limit on memory
	StopHost           // the program is about to do what no other thread, and no line, may disturb
	StopThread         // a thread of the Go runtime could not be created
	StopMemory         // the Go runtime could not get memory
	StopFailure        // another failure
	StopMalloc         // the program has a malloc of its own, which may be for one thread only
)

var (
	controlStopped uint32
	unserved       bool // a forked child without a control plane
)

// ControlStop stops the control plane and prints one line, but none for StopHost, nor where a
// program with a malloc of its own loses background work, of which it has none. Several threads may
// find that it cannot go on, each for its own reason.
func ControlStop(why uintptr) {
	if !atomic.CompareAndSwapUint32(&controlStopped, 0, 1) {
		return
	}
	stats.LogStop()
	if flags != nil && !writes() {
		flags.Reports = 0
	}
	alloc.Background = false
	if alloc.Following {
		tiers.FollowByAge()
	}
	what := "TA_LOG or TA_BACKGROUND failed; they end here"
	switch why {
	case StopHost:
		return
	case StopMalloc:
		if config.InForce.Log == config.LogOff {
			return
		}
		what = "TA_LOG has no effect in a program with a malloc of its own"
	case StopLimit:
		what = "TA_LOG and TA_BACKGROUND have no effect under a limit on memory (ulimit -v, " +
			"ulimit -d)"
	case StopThread:
		what = "no thread for TA_LOG or TA_BACKGROUND; they end here"
	case StopMemory:
		what = "no memory for TA_LOG or TA_BACKGROUND; they end here"
	}
	var l raw.Line
	l.Text("tieralloc: ")
	l.Text(what)
	l.Tell()
}

// ControlDue reports whether there is work for the control plane: an event of the log or, if the
// process has run for a while, background work. That is not in a process with less memory than one
// huge page that nobody watches, such as a shell, whose own calls do the little there is.
func ControlDue(awhile bool) bool {
	const least = 2 << 20
	return stats.LogDue() || awhile && config.InForce.Background &&
		(config.InForce.Live || alloc.Committed() >= least)
}

// ControlAgain notes that a forked child will have a control plane.
func ControlAgain() {
	unserved = false
	if config.InForce.Log != config.LogOff {
		stats.LogStart(config.InForce.Log)
	}
	if alloc.Following {
		tiers.Follow()
	}
}

// Service does the work that is due in the heap, writes the profile and updates the live page. Its
// token belongs to no thread of the program. It reports whether to call again at once.
func Service(token uintptr) (more bool) {
	if unserved {
		return false
	}
	alloc.Background = atomic.LoadUint32(&controlStopped) == 0
	now := raw.Clock(raw.ClockMono)
	more = alloc.Service(token, now)
	if profile.Due() {
		writeDue(token, now)
	}
	if stats.LiveDue(now) {
		update(token)
	}
	return more
}
