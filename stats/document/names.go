package document

import (
	"tieralloc/internal/config"
	"tieralloc/stats"
)

// These tables hold the words for codes that package config has no words for. They are padded to a
// power of two. No report of this library has a code beyond a table; a damaged live page may have
// one, and then shows another word or none.

// backendNames are the words of Report.Backend.
var backendNames = [2]string{stats.BackendSimulated: "simulated", stats.BackendNuma: "numa"}

// throttleNames are the words of TA_THROTTLE.
var throttleNames = [2]string{"account", "sleep"}

// hugeNames are the words for config.Huge….
var hugeNames = [8]string{
	config.HugeAuto: "auto", config.HugeOff: "off", config.HugeThp: "thp",
	config.Huge2M: "2M", config.Huge1G: "1G",
}

// sourceNames are the words of Following.Source.
var sourceNames = [8]string{stats.SourceNone: "none", stats.SourceReferenced: "referenced_bits",
	stats.SourceDamon: "damon", stats.SourceWriteProtection: "write_protection",
	stats.SourceSoftDirty: "soft_dirty"}

// deviceTierNames are the keys of a device's "tiers".
var deviceTierNames = [2]string{stats.DeviceFast: "fast", stats.DeviceSlow: "slow"}

// The words of a device's policy, by the truth values of config.CUDA.
var (
	reuseNames    = [2]string{"sync", "event"}
	suballocNames = [2]string{"small", "all"}
	spillNames    = [2]string{"fail", "spill"}
)

// The words of a manager's codes.
var (
	modeNames = [2]string{"passive", "active"}
	poolNames = [2]string{"automatic", "manual"}
)
