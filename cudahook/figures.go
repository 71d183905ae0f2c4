package cudahook

import "tieralloc/stats"

// FiguresOf fills in the figures of a device; of one that was not used yet, only its settings. No
// other heap is walked for them, and no text is made, so a program may ask as often as it likes. It
// reports false for a number that is no device's, and where devices are not served.
//
// Precondition: to is zero.
func FiguresOf(token uintptr, ordinal uint64, to *stats.PublicDevice) bool {
	if ordinal >= deviceMax || !wake(token) || !settings.enabled {
		return false
	}
	d := &devices[ordinal&(deviceMax-1)]
	k := &d.knobs
	if d.segment == 0 {
		k = &settings.knobs
	}
	to.SegmentSize, to.CacheLimit, to.StreamLocal, to.GlobalLimit, to.Recording = k.segment,
		k.cacheLimit, k.exactLimit, k.globals, k.record
	var s stats.Device
	if !reportOn(token, ordinal, &s, false) {
		return true
	}
	to.From(&s)
	return true
}
