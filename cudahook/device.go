package cudahook

import (
	"math/bits"
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/group"
	"tieralloc/internal/raw"
	"tieralloc/throttle"
)

// A device holds what its contexts share: the caps, the throttle, and the bytes charged. Its
// figures change atomically, without a lock.
//
//	reserved = Σ bytes of the segments on the device, those about to be mapped included,
//	           + foreign <= hard
//	managed: Σ bytes of the segments on the device <= memory (the driver would map more)
//	in a group: Σ reserved of its processes <= hard, too
//	a charge comes before the driver's allocation, a release after its free
type device struct {
	raw.OffHeap
	memory     uint64 // bytes; 0: not known yet
	soft, hard uint64 // bytes; ^0: no cap
	primary    uint64 // the primary context, once it is known
	slot       uint64 // the index of its heap

	reserved, peak uint64
	foreign        uint64 // part of reserved
	host, hostPeak uint64 // bytes of spilled segments <= hostHard
	hostHard       uint64
	managed        uint64 // 1: its segments are managed memory
	account        uint64 // of a group of processes (internal/group); 0: none

	knobs
	recordedFrom uint64 // the first event of its history

	past counts // of heaps that have ended; guarded by tableLock

	softExceeded, violations, refused, hostRefused uint64 // requests

	bucket                            throttle.Bucket
	waited, waitNs, sleeps, overshoot uint64 // nanoseconds, but for sleeps

	_ [64]byte // keeps the next device's figures in other cache lines
}

const deviceMax = 16

var devices [deviceMax]device

// tuned says that some device has its knobs. Until then the devices are not touched, which saves 20
// KiB of resident memory in a process without a device.
var tuned bool

// tune sets the device's knobs from the settings, unless they are set.
func (d *device) tune() {
	tuned = true
	if d.segment == 0 {
		d.knobs = settings.knobs
	}
}

// register sets up a device that has so many bytes of memory, the first time that a context uses
// it.
func (d *device) register(memory uint64, uuid [2]uint64) {
	if atomic.LoadUint64(&d.memory) != 0 {
		return
	}
	d.tune()
	d.soft, d.hard = ^uint64(0), capOf(memory)
	if settings.soft != 0 {
		d.soft = min(settings.soft, d.hard)
	}
	if group.On() {
		if account, caps := group.DeviceAccount(uuid, d.soft, d.hard); account != 0 {
			d.account, d.soft, d.hard = uint64(account), caps.Soft, caps.Hard
		}
	}
	d.hostHard = settings.spillHard
	if d.hostHard == 0 {
		d.hostHard = hostMemory() / 2
	}
	d.managed = flag(settings.managed)
	d.bucket.Set(settings.bw, max(64<<10, settings.bw/100), settings.lat)
	atomic.StoreUint64(&d.memory, max(memory, 1))
}

// capOf returns the hard cap of a device with so much memory; ^0: none.
func capOf(memory uint64) uint64 {
	hard := ^uint64(0)
	if settings.hard != 0 {
		hard = settings.hard
	}
	if settings.part != 0 {
		hi, lo := bits.Mul64(memory, settings.part)
		hard = min(hard, hi<<48|lo>>16)
	}
	return hard
}

// charge reserves n bytes. It reports false if they would exceed the hard cap. The caller raises
// the peak once the driver has provided them.
func (d *device) charge(n uint64) bool { return d.chargeUpTo(n, d.hard) }

func (d *device) chargeUpTo(n, most uint64) bool {
	if !chargeTo(&d.reserved, n, most) {
		return false
	}
	if d.account != 0 && !group.Charge(uintptr(d.account), uintptr(n)) {
		atomic.AddUint64(&d.reserved, -n)
		return false
	}
	return true
}

// chargeSegment is charge for a segment on the device.
func (d *device) chargeSegment(n uint64) bool {
	most := d.hard
	if atomic.LoadUint64(&d.managed) != 0 {
		most = min(most, d.memory+atomic.LoadUint64(&d.foreign))
	}
	return d.chargeUpTo(n, most)
}

func chargeTo(to *uint64, n, most uint64) bool {
	for {
		old := atomic.LoadUint64(to)
		if old+n > most || old+n < old {
			return false
		}
		if atomic.CompareAndSwapUint64(to, old, old+n) {
			return true
		}
	}
}

func (d *device) release(n uint64) {
	atomic.AddUint64(&d.reserved, -n)
	if d.account != 0 {
		group.Release(uintptr(d.account), uintptr(n))
	}
}

// releaseForeign is release for an allocation of the driver's own.
func (d *device) releaseForeign(n uint64) {
	atomic.AddUint64(&d.foreign, -n)
	d.release(n)
}

// over reports whether n bytes more would exceed the soft cap.
func (d *device) over(n uint64) bool {
	if d.soft == ^uint64(0) {
		return false
	}
	reserved := atomic.LoadUint64(&d.reserved)
	if d.account != 0 {
		_, reserved = group.Used(uintptr(d.account))
	}
	return reserved+n > d.soft
}

// hardNow is the hard cap for what is reserved. In a group it is what the group leaves this
// process.
func (d *device) hardNow() uint64 {
	if d.account == 0 || d.hard == ^uint64(0) {
		return d.hard
	}
	reserved, room := atomic.LoadUint64(&d.reserved), group.Room(uintptr(d.account))
	return min(d.hard, reserved+min(room, ^reserved))
}

// chargeHost is charge for bytes that will be spilled to the host.
func (d *device) chargeHost(n uint64) bool { return chargeTo(&d.host, n, d.hostHard) }

func (d *device) releaseHost(n uint64) { atomic.AddUint64(&d.host, -n) }

// releaseSide releases the charge of a segment of a pool.
func (d *device) releaseSide(p *pool, n uint64) {
	if p.spilled != 0 {
		d.releaseHost(n)
		return
	}
	d.release(n)
}

// hostMemory returns the bytes of memory that the host has, or 1<<63 if the kernel does not answer.
func hostMemory() uint64 {
	var info syscall.Sysinfo_t
	_, errno := raw.Sys(syscall.SYS_SYSINFO, uintptr(unsafe.Pointer(&info)), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 1 << 63
	}
	return info.Totalram * max(uint64(info.Unit), 1)
}

// raise makes *peak at least n.
func raise(peak *uint64, n uint64) {
	for old := atomic.LoadUint64(peak); n > old; old = atomic.LoadUint64(peak) {
		if atomic.CompareAndSwapUint64(peak, old, n) {
			return
		}
	}
}
