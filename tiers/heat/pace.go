package heat

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Budget is the share of one core that sampling may take: 1/200.
const Budget = 200

// Shortest is the least time between two samples. A shorter one says no more: migration is slower.
const Shortest = time.Second

// Period is how long to wait after a sample that took so much processor time.
func Period(cost time.Duration) time.Duration {
	return max(Shortest, cost*Budget)
}

// Timed samples a source, and returns the processor time of that as well. It counts the time of
// the thread, the kernel's part included, and so not the window, in which the thread sleeps.
func Timed(s Source, rates []float64) (resolution uintptr, cost time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	resolution, err = s.Sample(rates)
	return resolution, threadTime() - before, err
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	// The clock cannot fail for the own thread, and a failed one would cost no more than the pace.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
