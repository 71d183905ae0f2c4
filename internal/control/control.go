// Package control is the control plane: ordinary Go that runs if the settings ask for it. Its init
// runs after those of the packages that it imports, and lets the host continue.
package control

import (
	_ "tieralloc/alloc/background"
	"tieralloc/interpose"
	_ "tieralloc/stats/logger"
)

func init() { interpose.RuntimeReady() }
