package follow

import (
	"testing"
	"time"
)

// TestCredit: in the long run no more goes than the rate, and after a pause that of a second.
func TestCredit(t *testing.T) {
	var c Credit
	if got := c.Budget(100, time.Hour); got != 100 {
		t.Errorf("%d bytes at first", got)
	}
	c.Spend(150) // a region is larger than the budget
	for at, want := range []uint64{0, 50, 100, 100} {
		if got := c.Budget(100, time.Hour+time.Duration(at)*time.Second); got != want {
			t.Errorf("%d bytes after %d s", got, at)
		}
	}
	if c.Budget(0, 0) != ^uint64(0) {
		t.Error("no rate is a bound")
	}
}
