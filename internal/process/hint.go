package process

import (
	"tieralloc/alloc"
	"tieralloc/cudahook"
	"tieralloc/internal/config"
	"tieralloc/tiers"
)

// configuredHint is TA_DEFAULT_HINT.
var configuredHint uint32

// SetDefaultHint sets the default hint of the process and returns the one before. tiers.NoHint
// restores TA_DEFAULT_HINT. The thread of h uses it from now on.
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
