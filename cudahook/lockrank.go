package cudahook

import "tieralloc/internal/lockrank"

// RankLocks gives the locks of the package their places in the order.
func RankLocks() {
	trace.lock.SetRank(lockrank.Trace)
	history.lock.SetRank(lockrank.History)
	tableLock.SetRank(lockrank.Table)
	for i := range heaps {
		heaps[i].lock.SetRank(lockrank.DeviceHeap)
	}
}
