package alloc

import "tieralloc/stats/profile"

// With TA_PROFILE_RATE=auto a thread's samples are thinned where noting them takes more than a
// share of its time: its next ones are drawn twice as far apart. Each counts by the level at which
// it was drawn (package profile), which depends on samples before it alone; so sums stay unbiased.

// Thinning is set at boot if samples are thinned.
var Thinning bool

const (
	// the frees of sampled blocks, which are not timed, take as much again
	thinShare = 200
	// Notes may take so many nanoseconds beyond their share before samples are thinned, and a
	// quarter of that before each further step: a short program is profiled as if a rate were set.
	thinAfter = 5e5
	thinMost  = 10 // at the default rate a sample in 512 MiB
)

// A thinning is that of a thread.
//
//	samples are drawn profile.Rate << level bytes apart, in the mean
//	debt = thinShare · time in notes - time between them, since the level changed;
//	|debt| <= thinShare · thinAfter
type thinning struct {
	level uint8
	debt  int64  // nanoseconds
	noted uint64 // when the last note ended
}

// note follows a note from start to end, monotonic times in nanoseconds.
func (t *thinning) note(start, end uint64) {
	const most = thinShare * thinAfter
	if t.noted != 0 {
		t.debt -= int64(min(start-min(start, t.noted), 2*most))
	}
	t.debt += int64(min(end-min(end, start), thinAfter)) * thinShare
	t.noted = end
	up := int64(most)
	if t.level != 0 {
		up /= 4
	}
	switch {
	case t.debt > up:
		t.level, t.debt = min(t.level+1, thinMost), 0
	case t.debt < -most:
		t.level, t.debt = t.level-min(t.level, 1), 0
	}
}

// thinningLevel is the level at which the thread's samples are drawn.
func (t *Thread) thinningLevel() uint8 {
	if t.Base == nil || t.Base.Rations == nil {
		return 0
	}
	return t.Base.Rations.thinning.level
}

// SampleTook follows what SampleEnd has noted, and what lasted from start to end.
func SampleTook(h *Heap, start, end uint64) {
	if r := h.Thread.Base.Rations; Thinning && r != nil {
		r.thinning.note(start, end)
	}
}

// distance draws the bytes of huge blocks up to the next sample.
func (h *Heap) distance() {
	h.untilLevel = h.Thread.thinningLevel()
	h.until = profile.Distance(h.untilLevel)
}
