package process

import (
	"tieralloc/alloc"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// ControlStop does without the control plane, which could not be started.
func ControlStop() {
	stats.LogStop()
	alloc.Background = false
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
		update(token, liveBudget)
	}
	return more
}
