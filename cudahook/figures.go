package cudahook

import "tieralloc/stats"

// FiguresOf fills in the figures of a device. For a device that was not used yet it fills in only
// the settings. It does not list live blocks or format text, so that a program may call it often.
// It reports false if the number is not a device's, and if the device heap is off.
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
	if !reportOn(token, true, ordinal, &s, false) {
		return true
	}
	to.From(&s)
	return true
}
