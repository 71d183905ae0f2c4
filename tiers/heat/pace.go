package heat

import (
	"math"
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
	// quarter, after much has moved, and when other tiers serve the program than before.
	settling = 12

	// otherDepth is a change of Taken.Depth: another eighth of the touches is of the next tier.
	otherDepth = 1.0 / 8

	// All samples together may take hasteCredit and 1/hasteShare of a core before haste ends.
	hasteCredit = 10 * time.Second
	hasteShare  = 50
)

// Pace says how long to wait between two samples. The zero value begins.
type Pace struct {
	calm  int           // samples since there was a reason for haste
	size  uintptr       // of the heap when it gave one
	depth float64       // in the mean of the last samples
	spent time.Duration // processor time of all samples
}

// Taken is a sample that was taken, and what came of it.
type Taken struct {
	Cost  time.Duration // in processor time
	At    time.Duration // since the first one
	Size  uintptr       // of the heap, in bytes
	Moved uintptr       // bytes that moved after it
	Depth float64       // the number of the tier that serves a touch, in the mean
}

// Wait is how long to wait after a sample: within the budget, but for haste.
func (p *Pace) Wait(s Taken) time.Duration {
	p.spent += s.Cost
	p.calm++
	if s.Size > p.size+p.size/4 {
		p.calm, p.size = 0, s.Size
	}
	if s.Moved > s.Size/64 || math.Abs(s.Depth-p.depth) > otherDepth {
		p.calm = 0
	}
	p.depth += (s.Depth - p.depth) / 2
	if p.calm < settling && p.spent < hasteCredit+s.At/hasteShare {
		s.Cost /= hasty
	}
	return max(Shortest, s.Cost*Budget)
}

// Depth is the number of the tier that serves a touch, in the mean, by rates of regions that lie in
// such tiers. It is 0 if nothing was touched.
func Depth(rates []Rate, tier func(region int) uint32) float64 {
	var sum, all float64
	for i, r := range rates {
		sum += r.PerSecond * float64(tier(i))
		all += r.PerSecond
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// ThreadTime is the processor time of the calling thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	// The clock cannot fail for the own thread, and a failed one would cost no more than the pace.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
