package document

import "tieralloc/stats"

// devices writes the key "devices", unless the process used no device.
func (w *writer) devices(r *stats.Report) {
	if r.DeviceCount == 0 {
		return
	}
	w.key("devices")
	w.open('[')
	for i := uint64(0); i < r.DeviceCount && i < stats.DeviceMax; i++ {
		w.item()
		w.open('{')
		w.device(&r.Devices[i&(stats.DeviceMax-1)])
		w.close('}')
	}
	w.close(']')
}

func (w *writer) deviceTiers(d *stats.Device) {
	w.key("tiers")
	w.open('{')
	for i := uint(0); i < stats.DeviceTierCount; i++ {
		w.key(names.deviceTier[i&1])
		w.open('{')
		w.deviceTier(&d.Tiers[i&1])
		w.close('}')
	}
	w.close('}')
}

// hits is the number of requests that a free block served. Counters that are read while other
// threads run may disagree; the answer is then all requests, never more.
func hits(d *stats.Device) uint64 {
	return min(d.HitsLocal+d.HitsGlobal+d.HitsSplit, d.AllocCalls)
}

// deviceFragmentation writes the share of the free memory that is outside the largest free block.
func (w *writer) deviceFragmentation(d *stats.Device) {
	free := d.BytesCachedLocal + d.BytesCachedGlobal
	w.fraction(free-min(d.LargestFree, free), free)
}

// noMigrations writes the key "migrations", which every tier has, with zeros: the library moves no
// device memory.
func (w *writer) noMigrations() {
	var none stats.Migrations
	w.key("migrations")
	w.open('{')
	w.migrations(&none)
	w.close('}')
}

func (w *writer) leaks(d *stats.Device) {
	w.key("leaks")
	w.open('[')
	for i := uint64(0); i < d.LeakCount && i < stats.LeakMax; i++ {
		l := &d.Leaks[i&(stats.LeakMax-1)]
		w.item()
		w.open('{')
		w.leak(l)
		w.close('}')
	}
	w.close(']')
}

// uuid writes a device's UUID as nvidia-smi does, without the prefix GPU- or MIG-. An unknown UUID
// is an empty string. a and b hold its bytes, the first in the lowest bits.
func (w *writer) uuid(a, b uint64) {
	w.put('"')
	for i := uint(0); i < 16 && a|b != 0; i++ {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			w.put('-')
		}
		word := a
		if i >= 8 {
			word = b
		}
		w.digits16(word>>(i&7*8), 2)
	}
	w.put('"')
}

// pci writes a device's address on the bus (Device.Pci) as NVML does. An unknown address is an
// empty string.
func (w *writer) pci(id uint64) {
	w.put('"')
	if id != 0 {
		id--
		w.digits16(id>>16, 8)
		w.put(':')
		w.digits16(id>>8, 2)
		w.put(':')
		w.digits16(id>>3&31, 2)
		w.text(".0")
	}
	w.put('"')
}

// digits16 writes the lowest hexadecimal digits of v, at most 16.
func (w *writer) digits16(v uint64, digits uint) {
	for ; digits > 0; digits-- {
		w.put(hexDigit(byte(v >> ((digits - 1) & 15 * 4))))
	}
}
