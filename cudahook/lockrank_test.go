//go:build lockrank

package cudahook

func init() {
	RankLocks()
}
