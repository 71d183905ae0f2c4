//go:build lockrank

package cudahook

import "tieralloc/stats/profile"

func init() {
	RankLocks()
	profile.RankLocks()
}
