// Package background is the control plane's part of the heap: with TA_BACKGROUND=1 it
// moves spans between tiers, purges, and keeps the live page fresh while the program
// does not come by a slow path itself.
//
// It is ordinary Go. Its init runs when the Go runtime starts, which is only when the
// control plane is asked for; nothing calls it from C.
package background

import (
	"syscall"
	"time"

	"tieralloc/internal/config"
	"tieralloc/interpose"
)

func init() {
	if config.InForce.Background {
		go run()
	}
}

// period is how often it looks. A step of migration is some megabytes, so that at this
// pace a few GB/s are possible.
const period = 2 * time.Millisecond

// idlePeriod is how often it looks when there is nothing to move.
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

// rest sleeps in the kernel, and reports false where a filter refuses that. It is no time.Sleep,
// for timers need the runtime's poller, which ends the process when the host closes all descriptors
// that it finds.
func rest(d time.Duration) bool {
	t := syscall.NsecToTimespec(int64(d))
	err := syscall.Nanosleep(&t, nil)
	return err == nil || err == syscall.EINTR
}
