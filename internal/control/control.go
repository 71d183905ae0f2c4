// Package control is the control plane: ordinary Go that runs when the settings ask for it. Its
// init runs after those of its parts, and lets the host go on.
package control

import (
	_ "tieralloc/alloc/background"
	"tieralloc/interpose"
	_ "tieralloc/stats/logger"
)

func init() { interpose.RuntimeReady() }
