package alloc

import "tieralloc/internal/lockrank"

// RankLocks gives the locks of the package their places in the order.
func RankLocks() {
	heapsLock.SetRank(lockrank.Heaps)
	poolLock.SetRank(lockrank.Pool)
}
