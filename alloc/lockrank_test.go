//go:build lockrank

package alloc

import "tieralloc/stats/profile"

func init() {
	RankLocks()
	profile.RankLocks()
}
