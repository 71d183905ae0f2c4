package profile

import "tieralloc/internal/lockrank"

// rankLocks gives the locks of the table their place in the order.
func (t *table) rankLocks() {
	for i := uintptr(0); i < lockCount; i++ {
		t.lockAt(i).SetRank(lockrank.Profile)
	}
}
