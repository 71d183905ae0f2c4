package cudahook

import (
	"sync/atomic"

	"tieralloc/stats"
)

// Report fills in the figures of the devices that were used, and returns how many they are. In a
// signal handler that interrupted a step, the figures of that heap may be inconsistent. Without
// wait it leaves out a heap whose lock another thread holds. Precondition: to is zero.
func Report(token uintptr, wait bool, to *[stats.DeviceMax]stats.Device) (n uint64) {
	for i := uint64(0); i < deviceMax && n < stats.DeviceMax; i++ {
		if reportOn(token, wait, i, &to[n&(stats.DeviceMax-1)], settings.leaks) {
			n++
		}
	}
	return n
}

// reportOn fills in the figures of one device. It reports false if the device was not used. With
// leaks it also lists live blocks.
func reportOn(token uintptr, wait bool, ordinal uint64, s *stats.Device, leaks bool) bool {
	d := &devices[ordinal&(deviceMax-1)]
	if atomic.LoadUint64(&d.memory) == 0 {
		return false
	}
	s.Ordinal = ordinal
	d.report(s)
	mine := tableLock.TakeIf(token, wait)
	if mine || tableLock.HeldBy(token) {
		d.past.report(s)
	}
	if mine {
		tableLock.Release()
	}
	for j := range usedHeaps() {
		h := &heaps[j]
		if h.device != d {
			continue
		}
		mine := h.lock.TakeIf(token, wait)
		if mine || h.lock.HeldBy(token) {
			h.report(s)
			if leaks && h.context != 0 {
				h.reportLeaks(s)
			}
		}
		if mine {
			h.lock.Release()
		}
	}
	return true
}

// report fills in the figures that the device has itself.
func (d *device) report(s *stats.Device) {
	s.BytesDevice = d.memory
	s.Reuse, s.Suballoc, s.OnHardcap = flag(settings.event), flag(settings.all),
		flag(settings.spill)
	s.Managed = atomic.LoadUint64(&d.managed)
	s.SegmentSize, s.CacheLimit = d.segment, d.cacheLimit
	s.StreamLocal, s.GlobalLimit = d.exactLimit, d.globals
	s.FreesUnknown = atomic.LoadUint64(&freesUnknown)
	s.BytesForeign = atomic.LoadUint64(&d.foreign)
	fast, slow := &s.Tiers[stats.DeviceFast], &s.Tiers[stats.DeviceSlow]
	fast.BytesCurrent, fast.BytesPeak = atomic.LoadUint64(&d.reserved), atomic.LoadUint64(&d.peak)
	slow.BytesCurrent, slow.BytesPeak = atomic.LoadUint64(&d.host), atomic.LoadUint64(&d.hostPeak)
	s.BytesSpilled = slow.BytesCurrent
	fast.SimulatedWaitNs = atomic.LoadUint64(&d.waitNs)
	slow.CapacityHard = cap0(d.hostHard)
	slow.Refused = atomic.LoadUint64(&d.hostRefused)
	fast.CapacitySoft, fast.CapacityHard = cap0(d.soft), cap0(d.hard)
	fast.CapacityViolations = atomic.LoadUint64(&d.violations)
	fast.SoftExceeded = atomic.LoadUint64(&d.softExceeded)
	fast.Refused = atomic.LoadUint64(&d.refused)
	fast.ThrottleSleeps = atomic.LoadUint64(&d.sleeps)
	fast.ThrottleOvershootNs = atomic.LoadUint64(&d.overshoot)
	fast.ThrottleBW, fast.ThrottleLatNs = settings.bw, settings.lat
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// cap0 returns a cap in the form of reports: 0 for none.
func cap0(n uint64) uint64 {
	if n == ^uint64(0) {
		return 0
	}
	return n
}

// report adds the figures of a heap.
func (h *heap) report(s *stats.Device) {
	h.count.report(s)
	if h.context == 0 {
		return
	}
	s.Contexts++
	s.Uuid, s.Pci = h.uuid, h.pci
	s.LargestFree = max(s.LargestFree, h.largest())
}

// report adds figures.
func (c *counts) report(s *stats.Device) {
	s.AllocCalls += c.hitLocal + c.hitGlobal + c.hitSplit + c.misses + c.foreignCalls + c.refused
	s.FreeCalls += c.frees
	s.HitsLocal += c.hitLocal
	s.HitsGlobal += c.hitGlobal
	s.HitsSplit += c.hitSplit
	s.Misses += c.misses
	s.ForeignCalls += c.foreignCalls
	s.Refused += c.refused
	s.Waits += c.waits
	s.FreesInvalid += c.wrongFrees
	s.BlocksLive += c.side[0].blocks + c.side[1].blocks + c.foreignBlocks
	s.BytesAsked += c.asked
	s.BytesAskedPeak += c.askedPeak
	s.BytesLive += c.side[0].live
	s.BytesPeak += c.livePeak
	s.BytesReserved += c.reserved
	s.BytesReservedPeak += c.reservedPeak
	s.BytesCachedLocal += c.side[0].local
	s.BytesCachedGlobal += c.side[0].global
	s.BytesPending += c.side[0].pending
	s.BytesHeld += c.side[0].held
	s.BytesPrivate += c.side[0].private
	s.BytesLost += c.side[0].lost
	s.BytesAsleep += c.asleep
	s.Segments += c.segments
	s.Splits += c.splits
	s.Merges += c.merges
	s.BlocksWarmed += c.warmed
	s.Spills += c.spills
	s.BytesTotalSpilled += c.spilled
	s.Releases += c.releases
	s.BytesReleased += c.released
	s.DriverRefused += c.driverRefused
	s.Pressures += c.pressures
	for i := range s.Tiers {
		t, k := &s.Tiers[i], &c.side[i]
		t.AllocCalls += k.allocs
		t.FreeCalls += k.frees
		t.BytesTotalAlloc += k.total
		t.BytesTotalFreed += k.totalFreed
	}
	s.Tiers[stats.DeviceFast].RoutedSlow += c.side[1].allocs
	c.reportCalls(&s.DriverCalls)
}

func (counted *counts) reportCalls(to *stats.DriverCalls) {
	c := &counted.calls
	to.Map += c[ActMap]
	to.MapManaged += c[ActMapManaged]
	to.Unmap += c[ActUnmap]
	to.Zero += c[ActZero]
	to.Synchronize += c[ActSynchronize]
	to.EventCreate += c[ActEventCreate]
	to.EventRecord += c[ActEventRecord] + c[ActEventRecordContext]
	to.EventQuery += c[ActEventQuery]
	to.StreamWait += c[ActStreamWait]
	to.Info += c[ActInfo]
}

// reportLeaks lists live blocks, as many as fit.
func (h *heap) reportLeaks(s *stats.Device) {
	for i := uintptr(0); h.table.base != 0 && i <= h.table.mask &&
		s.LeakCount < stats.LeakMax; i++ {
		e := h.table.at(i)
		if e.key == 0 || e.block.state != stateInUse && e.block.state != stateForeign {
			continue
		}
		l := &s.Leaks[s.LeakCount&(stats.LeakMax-1)]
		s.LeakCount++
		l.Address, l.Bytes = e.key, e.block.asked
		l.Number = e.block.number & (1<<numberIndex - 1)
		if t := e.block.cache; t != nil && t.stream != streamEvery {
			l.Stream = t.stream
		}
	}
}
