package process

import (
	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/internal/config"
	"tieralloc/tiers"
)

// configuredHint is TA_DEFAULT_HINT.
var configuredHint uint32

// SetDefaultHint makes hint the process's default, TA_DEFAULT_HINT for tiers.NoHint, and
// returns the one before. The thread of h goes by it from now on.
func SetDefaultHint(h *alloc.Heap, hint uintptr) (before uintptr) {
	before = uintptr(config.InForce.DefaultHint)
	if hint == tiers.NoHint {
		hint = uintptr(configuredHint)
	}
	config.InForce.DefaultHint = uint32(hint)
	alloc.SetDefaultHint(h, uint32(hint))
	cudahook.SetDefaultHint(uint32(hint))
	return before
}
