package tiers

import "sync/atomic"

// Migrating reports whether spans move down from tiers over their soft cap.
func Migrating() bool { return atomic.LoadUint32(&policy.migrating) != 0 }

// FollowByAge has spans move as with TA_ON_SOFTCAP=demote, because their use cannot be seen.
func FollowByAge() { atomic.StoreUint32(&policy.migrating, 1) }

// Follow ends FollowByAge.
func Follow() { atomic.StoreUint32(&policy.migrating, 0) }

// MigrateBudget reports whether TA_MIGRATE_BW allows a step of migration to start at now, in
// monotonic nanoseconds.
func MigrateBudget(now uint64) bool { return clock.migrate.Copy(now-clock.start, 0) == 0 }

// MigrateCharge charges n bytes that were moved at now.
func MigrateCharge(now uint64, n uintptr) { clock.migrate.Copy(now-clock.start, n) }

// Moved counts one attempt to move a span out of a tier: the pages that were moved
// and those that the kernel would not move.
func Moved(from, movedPages, failedPages uintptr) {
	t := at(from)
	atomic.AddUint64(&t.attempted, 1)
	atomic.AddUint64(&t.movedPages, uint64(movedPages))
	atomic.AddUint64(&t.failedPages, uint64(failedPages))
}
