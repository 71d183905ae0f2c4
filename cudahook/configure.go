package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/config"
)

// knobs are the settings that the program may change while it runs. Each device has its own.
type knobs struct {
	segment    uint64 // bytes of a new segment that will be split
	cacheLimit uint64 // bytes of free blocks that a heap may keep
	exactLimit uint64 // blocks in the exact-size bins of a stream cache
	globals    uint64 // free blocks in global caches that a heap may keep
	firstFit   uint64 // 1: first fit, 0: best fit
	eager      uint64 // 1: freed blocks are merged at once; exact-size bins stay empty
	frayed     uint64 // in 1/65536: fragmentation above which a miss merges exact-size bins
	record     uint64 // 1: events are kept for History
}

// Keys of Configure.
const (
	ConfigSegmentSize uint64 = iota + 1 // bytes, a multiple of 2 MiB up to 64 GiB
	ConfigCacheLimit                    // bytes
	ConfigStreamLocal                   // blocks in the exact-size bins of a stream
	ConfigGlobal                        // free blocks in global caches
	ConfigCoalescing                    // 1: freed blocks are merged at once
	ConfigThreshold                     // fragmentation in 1/65536, up to 1
	ConfigStrategy                      // 0: best fit, 1: first fit
	ConfigPeak                          // resets the peaks; the value is ignored
	ConfigTrace                         // 1: events are kept for History, from now on
)

const (
	defaultExactLimit = 100
	maxSegment        = 64 << 30
	everyDevice       = ^uint64(0)
)

// Configure changes a setting of a device, or of all of them (device ^0). It returns 1. If the key
// or the value is invalid it changes nothing and returns 0, and also in a signal handler that
// interrupted the package's first use. Memory above a lowered limit is returned at the next free or
// OpTrim.
func Configure(token uintptr, device, key, value uint64) uint64 {
	if !wake(token) {
		return 0
	}
	k := settings.knobs
	if !k.set(key, value) || device != everyDevice && device >= deviceMax {
		return 0
	}
	for i := range devices {
		if d := &devices[i]; device == everyDevice || device == uint64(i) {
			d.tune()
			if key == ConfigTrace && value != 0 && d.knobs.record == 0 {
				d.beginHistory(token)
			}
			d.knobs.set(key, value)
			d.changed(token, key)
		}
	}
	setRecording()
	return 1
}

// set changes one setting. It reports false if the key or the value is invalid.
func (k *knobs) set(key, value uint64) bool {
	switch key {
	case ConfigSegmentSize:
		if value < smallBytes || value > maxSegment || value%mapUnit != 0 {
			return false
		}
		k.segment = value
	case ConfigCacheLimit:
		k.cacheLimit = value
	case ConfigStreamLocal:
		k.exactLimit = value
	case ConfigGlobal:
		k.globals = value
	case ConfigCoalescing:
		k.eager = value
		return value <= 1
	case ConfigThreshold:
		k.frayed = value
		return value <= config.ProportionOne
	case ConfigStrategy:
		k.firstFit = value
		return value <= 1
	case ConfigTrace:
		k.record = value
		return value <= 1
	default:
		return key == ConfigPeak
	}
	return true
}

// changed applies a changed setting to the heaps of a device at once.
func (d *device) changed(token uintptr, key uint64) {
	if key == ConfigPeak {
		atomic.StoreUint64(&d.peak, atomic.LoadUint64(&d.reserved))
		atomic.StoreUint64(&d.hostPeak, atomic.LoadUint64(&d.host))
	}
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) == 0 || !h.lock.Take(token) {
			continue
		}
		if h.device == d && key == ConfigPeak {
			c := &h.count
			c.askedPeak, c.livePeak, c.reservedPeak = c.asked, c.side[0].live+c.side[1].live,
				c.reserved
		} else if h.device == d && h.context != 0 {
			h.flushAll()
		}
		h.lock.Release()
	}
}

// frays reports whether the free memory that a stream cache may use is so fragmented that its
// exact-size bins are to be merged:
//
//	1 - largest block in bins / free bytes > frayed
//
// The size of the largest block is known to 1/32.
func (t *streamCache) frays(frayed uint64) bool {
	if frayed == 0 {
		return true
	}
	free, largest := t.free, t.largest()
	if g := t.pool.global; g != nil {
		free += g.free
		largest = max(largest, g.largest())
	}
	return free-min(largest, free) > free/config.ProportionOne*frayed
}

// largest returns a lower bound of the stream cache's largest block in bins.
func (t *streamCache) largest() (n uint64) {
	for i := range t.bins {
		n = max(n, t.bins[i].largest())
	}
	return n
}
