package region

import "time"

// Watch estimates how much of the heap is resident between two exact counts, from how much memory
// the process has. The zero value has counted nothing.
type Watch struct {
	resident, used uint64 // of the heap, and of the process, at the last count
	now            uint64 // the estimate
	steady         int    // looks since the estimate changed much
}

const (
	soonest  = 20 * time.Millisecond
	seldom   = 100 * time.Millisecond
	quiet    = 16 // looks without a change after which they become seldom
	muchLess = 64 // a change of this share is much
)

// Counted notes an exact count of the heap's resident bytes, and what the process had then.
func (w *Watch) Counted(resident, used uint64) {
	w.resident, w.used, w.now = resident, used, resident
}

// Went notes that so many bytes were paged out since the last count.
func (w *Watch) Went(bytes uint64) {
	w.resident -= min(bytes, w.resident)
	w.used -= min(bytes, w.used)
	w.now = w.resident
}

// Last is the estimate of the last look or count.
func (w *Watch) Last() uint64 { return w.now }

// Resident is how much of the heap is resident if the process has so many bytes now: all that came
// since the last count is taken to be the heap's.
func (w *Watch) Resident(used uint64) uint64 {
	was := w.now
	if w.now = w.resident + used; w.now > w.used {
		w.now -= w.used
	} else {
		w.now = 0
	}
	if w.now > was+was/muchLess || was > w.now+w.now/muchLess {
		w.steady = 0
	} else {
		w.steady++
	}
	return w.now
}

// Wait is how long to wait until the next look.
func (w *Watch) Wait() time.Duration {
	if w.steady < quiet {
		return soonest
	}
	return seldom
}
