package profile

import "tieralloc/internal/lockrank"

// RankLocks gives the lock of the package its place in the order.
func RankLocks() { lock.SetRank(lockrank.Profile) }
