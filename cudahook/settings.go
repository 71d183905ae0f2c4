package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// settings is what setup was told.
var settings struct {
	raw.OffHeap
	enabled   bool
	event     bool
	all       bool
	spill     bool
	zero      bool
	sleep     bool
	leaks     bool
	managed   bool
	hint      uint64
	soft      uint64 // 0: none
	hard      uint64 // 0: none
	spillHard uint64 // 0: half of the host's memory
	part      uint64 // of the device's memory, in 1/65536; 0: none
	knobs
	bw, lat  uint64
	warmups  uint64
	warm     [16]config.Warm
	throttle bool
}

// awake is 1 when the settings are taken.
var awake uint32

// wake takes the settings at the first call that goes by them, so that a process without a driver
// does not. It reports false where a signal handler has interrupted that.
func wake(token uintptr) bool {
	if atomic.LoadUint32(&awake) != 0 {
		return true
	}
	if !tableLock.Take(token) {
		return false
	}
	if atomic.LoadUint32(&awake) == 0 {
		setup(&config.InForce.CUDA, config.InForce.DefaultHint, config.InForce.ThrottleSleep)
	}
	tableLock.Release()
	return true
}

// SetDefaultHint tells of another default hint of the process than setup was told.
func SetDefaultHint(hint uint32) { settings.hint = uint64(hint) }

// setup takes the settings. Called again, it forgets nothing but those. sleep: throttled requests
// wait, else they are only counted (TA_THROTTLE).
func setup(s *config.CUDA, defaultHint uint32, sleep bool) {
	settings.enabled = s.Enable
	settings.event, settings.all, settings.spill, settings.zero = s.ReuseEvent, s.SuballocAll,
		s.Spill, s.Zero
	settings.leaks, settings.managed = s.Leaks, s.Managed
	settings.hint = uint64(defaultHint)
	settings.soft, settings.hard, settings.part = s.Soft, s.Hard, s.Proportion
	settings.spillHard = s.SpillHard
	settings.segment = max(mapRounded(min(s.SegmentSize, maxSegment)), smallBytes)
	settings.cacheLimit = s.CacheLimit
	settings.exactLimit, settings.globals = defaultExactLimit, config.NoLimit
	settings.firstFit, settings.eager, settings.frayed = 0, 0, 0
	settings.bw, settings.lat = s.BW, s.Lat
	if tuned {
		for i := range devices {
			devices[i].knobs = settings.knobs
		}
	}
	settings.sleep = sleep
	settings.throttle = s.BW != 0 || s.Lat != 0
	setFastPath()
	settings.warmups = min(s.Warmups, 16)
	settings.warm = s.Warmup
	atomic.StoreUint32(&awake, 1)
}
