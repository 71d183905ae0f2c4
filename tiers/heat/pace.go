package heat

import (
	"time"

	"golang.org/x/sys/unix"
)

// Budget is the share of one core that sampling may take: 1/200.
const Budget = 200

// Shortest is the least time between two samples. A shorter one says no more: migration is slower.
const Shortest = time.Second

const (
	// hasty is how many times the budget sampling may take in haste: while it is not yet known what
	// is hot.
	hasty = 50

	// settling is how many samples are taken in haste at first, after the heap has grown by a
	// quarter, and after much has moved.
	settling = 12

	// All samples together may take hasteCredit and 1/hasteShare of a core before haste ends.
	hasteCredit = 10 * time.Second
	hasteShare  = 50
)

// Pace says how long to wait between two samples. The zero value begins.
type Pace struct {
	calm  int           // samples since there was a reason for haste
	size  uintptr       // of the heap when it gave one
	spent time.Duration // processor time of all samples
}

// Wait is how long to wait after a sample that took so much processor time, if the first one was
// taken elapsed ago: within the budget, but for haste. moved bytes moved after the sample, size is
// that of the heap.
func (p *Pace) Wait(cost, elapsed time.Duration, moved, size uintptr) time.Duration {
	p.spent += cost
	grown := size > p.size+p.size/4
	if grown {
		p.size = size
	}
	if p.calm++; grown || moved > size/64 {
		p.calm = 0
	}
	if p.calm < settling && p.spent < hasteCredit+elapsed/hasteShare {
		cost /= hasty
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
