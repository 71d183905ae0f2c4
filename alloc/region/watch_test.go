package region

import "testing"

// TestWatch: between two counts the heap has grown by what the process has, and what went is no
// growth.
func TestWatch(t *testing.T) {
	var w Watch
	if got := w.Resident(1000); got != 1000 || w.Wait() != soonest {
		t.Errorf("before a count: %d, wait %v", got, w.Wait())
	}
	w.Counted(800, 1000)
	for _, c := range []struct{ used, want uint64 }{{1000, 800}, {1300, 1100}, {900, 700},
		{100, 0}} {
		if got := w.Resident(c.used); got != c.want || w.Last() != got {
			t.Errorf("%d used: %d, not %d", c.used, got, c.want)
		}
	}
	w.Went(300)
	if got := w.Resident(700); got != 500 {
		t.Errorf("after 300 went: %d", got)
	}
	for range quiet + 1 {
		w.Resident(701)
	}
	if w.Wait() != seldom {
		t.Errorf("wait %v though nothing changes", w.Wait())
	}
	if w.Resident(900); w.Wait() != soonest {
		t.Errorf("wait %v though the heap grows", w.Wait())
	}
}
