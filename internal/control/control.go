// Package control is the control plane as a whole: ordinary Go that runs when the
// configuration asks for it. Its init comes after those of its parts, when all of them
// stand, and lets the host go on.
package control

import (
	_ "tieralloc/alloc/background"
	"tieralloc/interpose"
	_ "tieralloc/stats/logger"
)

func init() { interpose.RuntimeReady() }
