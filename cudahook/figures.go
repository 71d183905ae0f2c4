package cudahook

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Figures are those of a device that a program may ask for as often as it likes, under the names of
// stats.Device. No other heap is walked for them, and no text is made.
type Figures struct {
	raw.OffHeap
	Size                                uint64 // ta_cuda_stats.size
	AllocCalls, FreeCalls               uint64
	HitsLocal, HitsGlobal, HitsSplit    uint64
	Misses, ForeignCalls, Refused       uint64
	FreesInvalid                        uint64
	BlocksLive, BytesLive, BytesPeak    uint64
	BytesReserved                       uint64
	BytesCachedLocal, BytesCachedGlobal uint64
	LargestFree                         uint64
	Segments, Splits, Merges            uint64
	BlocksWarmed, BytesReleased         uint64
	BytesDevice, BytesCurrent           uint64 // BytesCurrent, CapacityHard: of the tier DeviceFast
	CapacityHard                        uint64
	SegmentSize, CacheLimit             uint64
	StreamLocal, GlobalLimit            uint64
	Recording                           uint64 // 1: events are kept for History
}

// FiguresOf fills in what is known of a device, zeros but for its settings where it was not used
// yet. It reports false for a number that is no device's, and where devices are not served.
// Precondition: to is zero.
func FiguresOf(token uintptr, ordinal uint64, to *Figures) bool {
	if ordinal >= deviceMax || !wake(token) || !settings.enabled {
		return false
	}
	d := &devices[ordinal&(deviceMax-1)]
	k := &d.knobs
	if d.segment == 0 {
		k = &settings.knobs
	}
	to.SegmentSize, to.CacheLimit, to.StreamLocal, to.GlobalLimit, to.Recording = k.segment,
		k.cache, k.quicks, k.globals, k.record
	var s stats.Device
	if !reportOn(token, ordinal, &s, false) {
		return true
	}
	to.AllocCalls, to.FreeCalls = s.AllocCalls, s.FreeCalls
	to.HitsLocal, to.HitsGlobal, to.HitsSplit = s.HitsLocal, s.HitsGlobal, s.HitsSplit
	to.Misses, to.ForeignCalls, to.Refused = s.Misses, s.ForeignCalls, s.Refused
	to.FreesInvalid = s.FreesInvalid
	to.BlocksLive, to.BytesLive, to.BytesPeak = s.BlocksLive, s.BytesLive, s.BytesPeak
	to.BytesReserved = s.BytesReserved
	to.BytesCachedLocal, to.BytesCachedGlobal = s.BytesCachedLocal, s.BytesCachedGlobal
	to.LargestFree = s.LargestFree
	to.Segments, to.Splits, to.Merges = s.Segments, s.Splits, s.Merges
	to.BlocksWarmed, to.BytesReleased = s.BlocksWarmed, s.BytesReleased
	fast := &s.Tiers[stats.DeviceFast]
	to.BytesDevice, to.BytesCurrent, to.CapacityHard = s.BytesDevice, fast.BytesCurrent,
		fast.CapacityHard
	return true
}
