package process

import (
	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/cudahook/manager"
	"tieralloc/internal/lockrank"
)

// rankLocks gives all locks of the data plane their places in the order.
func rankLocks() {
	reportLock.SetRank(lockrank.Report)
	profileLock.SetRank(lockrank.Snapshot)
	snapshotLock.SetRank(lockrank.DeviceSnapshot)
	cudahook.RankLocks()
	manager.RankLocks()
	alloc.RankLocks()
}
