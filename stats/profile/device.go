package profile

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// Every block of device memory is sampled, and counts for itself alone. The device heap
// (cudahook/sampled.go) tells of blocks by their numbers, which are never used again and are no
// addresses of the host. In the profile device memory has sample types of its own, so that no sum
// has memory of the host and of a device.

// Kinds of memory: of the host, of a device, managed by the driver (cuMemAllocManaged), and a
// device's that is on the host because the device was full (TA_CUDA_ON_HARDCAP=spill).
const (
	Host uint32 = iota
	Device
	Managed
	Spilled
)

// A group is the sites whose bytes may be added up: those of the host, or of a kind of memory on a
// device. It has a peak of its own.
const (
	Devices    = 16
	groupCount = 4 * Devices
)

func (s *Site) group() uintptr {
	if s.Kind == Host {
		return 0
	}
	return uintptr(s.Device&(Devices-1))<<2 | uintptr(s.Kind&3)
}

// weight is how many blocks a sample stands for.
func (s *Site) weight(e *sample) float64 {
	if s.Kind != Host {
		return 1
	}
	return Weight(e.size(), e.level())
}

// The parts of a block's number: deviceBit, the heap from HeapBit on, and below it a serial number.
const (
	deviceBit = 1 << 62
	HeapBit   = 48
	Heaps     = 32
)

func (e *sample) onDevice() bool { return e.addr&deviceBit != 0 }

// Ended is for each device heap the serial number of the last block that was lost with a context.
type Ended [Heaps]uint64

// has reports whether the block with a number is lost.
func (d *Ended) has(number uintptr) bool {
	return uint64(number)&(1<<HeapBit-1) <= atomic.LoadUint64(&d[number>>HeapBit&(Heaps-1)])
}

// BeginDevice takes the table, and returns the walk in which the thread named token is to find its
// stack; or nil, and the sample is lost. EndDevice follows. wait is as for Note.
func BeginDevice(token uintptr, wait bool) *unwind.Stack {
	if t == nil || !t.take(&t.lock.Lock, token, wait) {
		Miss()
		return nil
	}
	t.device.Begin()
	return &t.device
}

// EndDevice gives the table back and notes a block on a device, unless its context has ended since.
func EndDevice(token uintptr, wait bool, b *Block, how uintptr, ended *Ended) {
	s := t.recent(b, &t.device)
	if s == nil {
		s = t.siteOfBlock(b, &t.device)
	}
	t.lock.Release()
	t.note(token, wait, b, s, how, ended)
}

// Miss counts a block that the caller cannot tell of.
func Miss() { atomic.AddUint64(&Missed, 1) }

// ContextEnded notes that the blocks of contexts are free because these have ended. wait is as for
// Note.
func ContextEnded(token uintptr, wait bool, now uint64, ended *Ended) {
	if !Hold(token, wait) {
		Miss()
		return
	}
	t.dropDevices(ended, now)
	Release()
}

// LoseDevices notes that a forked child has none of its parent's blocks on devices, if it can take
// the table.
func LoseDevices(token uintptr) {
	if t != nil && t.deviceN != 0 && Hold(token, false) {
		t.dropDevices(nil, raw.Clock(raw.ClockMono))
		Release()
	}
}

// dropDevices removes the samples of lost blocks on devices; with nil those of all.
func (t *table) dropDevices(ended *Ended, now uint64) {
	for e, at := t.samples.next(place{}); e != nil; e, at = t.samples.next(at) {
		if e.onDevice() && (ended == nil || ended.has(e.addr)) {
			at.slot-- // another may be in the slot now
			t.remove(&t.samples.part[at.part&(partCount-1)], at.slot, now)
		}
	}
}

// fieldValues is that of a sample.
const fieldValues = 2

// baseTypes is the number of sample types that memory of the host has, heat aside. Those of device
// memory are the same, behind a prefix.
const baseTypes = stringInuseSamples - stringAllocObjects + 1

// deviceTypes writes the sample types of device memory.
func (e *encoder) deviceTypes() {
	for i := uintptr(stringAllocObjects); i <= stringInuseSamples; i++ {
		unit := uint64(stringBytes)
		switch i {
		case stringAllocObjects, stringInuseObjects, stringInuseSamples:
			unit = stringCount
		case stringLifetime:
			unit = stringNanoseconds
		}
		at := e.beginString()
		e.text("device_")
		e.text(words[i&uintptr(len(words)-1)])
		e.valueType(fieldSampleType, e.endString(at), unit)
	}
}

func (e *encoder) zeros(n uintptr) {
	for i := uintptr(0); i < n; i++ {
		e.varint(0)
	}
}

// deviceSample writes a site of device memory. Its labels are strings, because pprof drops a
// number that is 0.
func (e *encoder) deviceSample(s *Site, d *spread, thread uint64) {
	kindKey, kind := e.addString("kind"), e.addString(words[kindWords+s.Kind&3])
	deviceKey := e.addString("device")
	at := e.beginString()
	e.decimal(uint64(s.Device))
	device := e.endString(at)
	at = e.open(fieldSample)
	e.stack(s)
	values := e.open(fieldValues)
	e.zeros(baseTypes)
	if t.heatTime > 0 {
		e.zeros(2)
	}
	e.varint(whole(d.size.sum))
	e.varint(whole(s.Bytes))
	e.varint(whole(d.live()))
	e.varint(whole(s.liveBytes()))
	e.varint(whole(s.Peak))
	e.varint(whole(s.Recent))
	e.varint(whole(s.Lifetime))
	e.varint(uint64(s.sampled))
	e.close(values)
	e.label(kindKey, kind)
	e.label(deviceKey, device)
	e.label(stringThread, thread)
	e.spread(d)
	e.close(at)
}
