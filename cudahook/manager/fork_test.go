package manager

import (
	"testing"

	"tieralloc/stats"
)

// TestNoWait: who must not wait leaves the lock to the thread that holds it. A fork goes without,
// and a report has no managers; the child frees the lock.
func TestNoWait(t *testing.T) {
	r := newRig(t, 1<<30)
	r.register(1, "", -1)
	const me, other = 8, 16
	var to [stats.ShareMax]stats.Share
	if n := Report(me, false, &to); n == 0 {
		t.Error("the free lock is not taken")
	}
	lock.Take(other)
	if Holds(me) || !Holds(other) {
		t.Error("the lock is taken for another thread's")
	}
	if n := Report(me, false, &to); n != 0 {
		t.Errorf("%d rows while another thread is at a manager", n)
	}
	if ForkPrepare(me, false) {
		t.Error("the lock is taken twice")
	}
	ForkChild(me, false)
	if lock.Held() {
		t.Error("the lock is held in the child")
	}
}
