package document

import (
	"tieralloc/internal/config"
	"tieralloc/stats"
)

// names are the words for codes that package config has no words for, padded to a power of two. No
// report of this library has a code beyond a table; a damaged live page may have one, and then
// shows another word or none. They are one variable because a process with settings writes to each
// memory page of such tables, and the linker sorts variables by size.
var names = struct {
	backend    [2]string // of Report.Backend
	throttle   [2]string // of TA_THROTTLE
	deviceTier [2]string // the keys of a device's "tiers"

	reuse, suballoc, spill [2]string // of a device's policy, by the truth values of config.CUDA
	mode, pool             [2]string // of a manager
	huge                   [8]string // of config.Huge…
	source                 [8]string // of Following.Source
}{
	backend:    [2]string{stats.BackendSimulated: "simulated", stats.BackendNuma: "numa"},
	throttle:   [2]string{"account", "sleep"},
	deviceTier: [2]string{stats.DeviceFast: "fast", stats.DeviceSlow: "slow"},
	reuse:      [2]string{"sync", "event"},
	suballoc:   [2]string{"small", "all"},
	spill:      [2]string{"fail", "spill"},
	mode:       [2]string{"passive", "active"},
	pool:       [2]string{"automatic", "manual"},
	huge: [8]string{config.HugeAuto: "auto", config.HugeOff: "off", config.HugeThp: "thp",
		config.Huge2M: "2M", config.Huge1G: "1G"},
	source: [8]string{stats.SourceNone: "none", stats.SourceReferenced: "referenced_bits",
		stats.SourceDamon: "damon", stats.SourceWriteProtection: "write_protection",
		stats.SourceSoftDirty: "soft_dirty"},
}
