//go:build lockrank

package main

import (
	"tieralloc/internal/lockrank"
	"tieralloc/internal/raw"
)

import "C"

//export ta_go_lock_taken
func ta_go_lock_taken(token, rank, word uintptr) {
	raw.ForeignTaken(token, lockrank.Rank(rank), word)
}
