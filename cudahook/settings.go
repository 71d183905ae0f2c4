package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// settings are the arguments of setup.
var settings struct {
	raw.OffHeap
	enabled bool
	event   bool
	all     bool
	spill   bool
	zero    bool
	sleep   bool
	leaks   bool
	managed bool
	// expandable segments are used where the driver allows them
	expandable bool
	hint       uint64
	soft       uint64 // 0: none
	hard       uint64 // 0: none
	spillHard  uint64 // 0: half of the host's memory
	part       uint64 // of the device's memory, in 1/65536; 0: none
	knobs
	bw, lat  uint64
	warmups  uint64
	warm     [16]config.Warm
	throttle bool
	// a snapshot is written when a request is refused
	snapshots bool
}

// awake is 1 once setup was called.
var awake uint32

// wake calls setup at the first use of the package, so that a process without a driver never does.
// It reports false in a signal handler that interrupted that call.
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

// SetDefaultHint changes the process's default hint.
func SetDefaultHint(hint uint32) { settings.hint = uint64(hint) }

// setup sets the settings. It may be called again, and keeps all blocks. sleep: throttled requests
// sleep; otherwise their waiting time is only counted (TA_THROTTLE).
func setup(s *config.CUDA, defaultHint uint32, sleep bool) {
	settings.enabled = s.Enable
	settings.event, settings.all, settings.spill, settings.zero = s.ReuseEvent, s.SuballocAll,
		s.Spill, s.Zero
	settings.leaks, settings.managed, settings.expandable = s.Leaks, s.Managed, s.Expandable
	settings.hint = uint64(defaultHint)
	settings.soft, settings.hard, settings.part = s.Soft, s.Hard, s.Proportion
	settings.spillHard = s.SpillHard
	settings.segment = max(mapRounded(min(s.SegmentSize, maxSegment)), smallBytes)
	settings.cacheLimit = s.CacheLimit
	settings.exactLimit, settings.globals = defaultExactLimit, config.NoLimit
	settings.firstFit, settings.eager, settings.frayed = 0, 0, 0
	settings.bw, settings.lat = s.BW, s.Lat
	settings.snapshots, settings.record = s.Snapshots, flag(s.Snapshots)
	if tuned {
		for i := range devices {
			devices[i].knobs = settings.knobs
		}
	}
	settings.sleep = sleep
	settings.throttle = s.BW != 0 || s.Lat != 0
	if settings.snapshots {
		atomic.StoreUint32(&recording, 1)
	}
	setFastPath()
	settings.warmups = min(s.Warmups, 16)
	settings.warm = s.Warmup
	atomic.StoreUint32(&awake, 1)
}
