//go:build lockrank

package alloc

func init() {
	RankLocks()
}
