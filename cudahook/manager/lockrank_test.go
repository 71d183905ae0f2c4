//go:build lockrank

package manager

func init() { RankLocks() }
