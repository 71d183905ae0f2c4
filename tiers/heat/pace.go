package heat

import (
	"time"

	"golang.org/x/sys/unix"
)

// Budget is the share of one core that sampling may take: 1/200.
const Budget = 200

// Shortest is the least time between two samples. A shorter one says no more: migration is slower.
const Shortest = time.Second

// Hasty is how many times the budget sampling may take for a while.
const Hasty = 50

// Period is how long to wait after a sample that took so much processor time, within the budget or,
// in haste, within Hasty times as much.
func Period(cost time.Duration, haste bool) time.Duration {
	if haste {
		cost /= Hasty
	}
	return max(Shortest, cost*Budget)
}

// ThreadTime is the processor time of the calling thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	// The clock cannot fail for the own thread, and a failed one would cost no more than the pace.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
