package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// TestDearer: times measured on a virtual machine whose free memory its host had, or had not.
func TestDearer(t *testing.T) {
	for _, c := range []struct {
		ordinary, huge uint64
		dear           bool
	}{
		{15_000, 240_000, false},
		{13_100, 5_093_000, true},
		{138_700, 5_093_000, false}, // the host had the ordinary pages, too
		{20_000, 370_000, false},
		{0, 1, true},
	} {
		if got := dearer(c.ordinary, c.huge); got != c.dear {
			t.Errorf("%d ns for ordinary pages, %d for a huge one: dear is %v", c.ordinary, c.huge,
				got)
		}
	}
}

// TestHugeCost: what a look showed holds until its time is over, and then there is another.
func TestHugeCost(t *testing.T) {
	haveTransparent(t)
	newWorld(t)
	for _, dear := range []uint32{0, 1} {
		hugeCost.until, hugeCost.dear = raw.Clock(raw.ClockMono)+1<<50, dear
		if hugeDear() != (dear == 1) {
			t.Errorf("with %d, another look too early", dear)
		}
	}
	hugeCost.until, hugeCost.dear = 1, 2 // no look leaves a 2
	before := raw.Clock(raw.ClockMono)
	dear, after := hugeDear(), raw.Clock(raw.ClockMono)
	if hugeCost.dear > 1 || (hugeCost.dear == 1) != dear {
		t.Errorf("after a look: %d, and hugeDear says %v", hugeCost.dear, dear)
	}
	fresh := uint64(cheapFresh)
	if dear {
		fresh = dearFresh
	}
	if hugeCost.until < before+fresh || hugeCost.until > after+fresh {
		t.Errorf("another look after %d ns", hugeCost.until-before)
	}
	if ordinary, huge, ok := pageTimes(); ok && (ordinary == 0 || huge == 0) {
		t.Errorf("%d ns for ordinary pages, %d for a huge one", ordinary, huge)
	}
}

// TestHugeDear: where they are dear a huge block has ordinary pages (a segment: TestAutoSegments).
func TestHugeDear(t *testing.T) {
	haveTransparent(t)
	newWorld(t)
	h := mustAcquire(t, 8)
	const size = autoHeap + 6<<20
	for _, dear := range []uint32{0, 1} {
		hugeCost.dear, autoHuge.streak, autoHuge.dense, autoHuge.turn = dear, autoStreak, size, 0
		if got := asked(t, mustServe(t, h, size)); got != (dear == 0) {
			t.Errorf("dear is %d, and huge pages were asked for: %v", dear, got)
		}
	}
}
