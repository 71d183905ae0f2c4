package process

import (
	"tieralloc/alloc"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Why the process does without the control plane.
const (
	StopLimit   = iota // there is a limit on memory from the start
	StopThread         // a thread of the Go runtime could not be made
	StopMemory         // the Go runtime could not get memory
	StopFailure        // it failed otherwise
)

// ControlStop does without the control plane from now on, and says so in one line.
func ControlStop(why uintptr) {
	stats.LogStop()
	alloc.Background = false
	var l raw.Line
	l.Text("tieralloc: ")
	switch why {
	case StopLimit:
		l.Text("TA_LOG and TA_BACKGROUND have no effect under a limit on memory (ulimit -v, " +
			"ulimit -d)")
	case StopThread:
		l.Text("no thread for TA_LOG or TA_BACKGROUND; they end here")
	case StopMemory:
		l.Text("no memory for TA_LOG or TA_BACKGROUND; they end here")
	default:
		l.Text("TA_LOG or TA_BACKGROUND failed; they end here")
	}
	l.Tell()
}

// Service does what is due in the heap, in the name of a token that is no thread's, and
// updates the live page. It reports whether to come again at once.
func Service(token uintptr) (more bool) {
	if forked {
		return false
	}
	now := raw.Clock(raw.ClockMono)
	more = alloc.Service(token, now)
	if stats.LiveDue(now) {
		update(token)
	}
	return more
}
