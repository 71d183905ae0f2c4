// Package background is the control plane's part of the heap. With TA_BACKGROUND=1 it moves spans
// between tiers, purges, and updates the live page even if the program takes no slow path. With
// TA_ON_SOFTCAP=follow it moves memory by its use (follow.go). With TA_SLOW_BACKEND=swap it has the
// coldest memory paged out instead (pageout.go). With TA_PROFILE_HEAT=1 it measures heat for the
// heap profile (watch.go).
//
// It is ordinary Go. Its init runs when the Go runtime starts, which happens only if the control
// plane is asked for. C never calls it.
package background

import (
	"syscall"
	"time"

	"tieralloc/alloc"
	"tieralloc/internal/config"
	"tieralloc/interpose"
)

func init() {
	if config.InForce.Background {
		go run()
	}
	switch {
	case alloc.Paging:
		go pageOut()
	case alloc.Following:
		go followUse()
	case alloc.Watching:
		go watch()
	}
}

// period is the time between two calls of Service while spans are to be moved. A step of migration
// is some megabytes, so this period allows a few GB/s.
const period = 2 * time.Millisecond

// idlePeriod is the time between two calls if there is nothing to move.
const idlePeriod = 50 * time.Millisecond

func run() {
	for {
		wait := idlePeriod
		if interpose.Service() {
			wait = period
		}
		if !rest(wait) {
			interpose.ControlFails()
			return
		}
	}
}

// rest sleeps in the kernel. It reports false if a filter of system calls refuses that. It does not
// use time.Sleep: timers need the runtime's poller, which ends the process if the host closes all
// descriptors.
func rest(d time.Duration) bool {
	t := syscall.NsecToTimespec(int64(d))
	err := syscall.Nanosleep(&t, nil)
	return err == nil || err == syscall.EINTR
}
