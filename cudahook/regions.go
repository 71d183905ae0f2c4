package cudahook

import "sync/atomic"

// RegionMax is how many regions Regions lists.
const RegionMax = 64

// Region is a region of a device's primary context, as the C functions find it.
type Region struct {
	Device   uint64
	ID0, ID1 uint64 // its name, padded with zeros, and a last byte that no name has
}

// Regions lists the regions of all devices and returns how many there are, which may be more than
// RegionMax.
//
// Precondition: the thread holds no lock of the heaps, and is in no signal handler.
func Regions(token uintptr, out *[RegionMax]Region) (n uintptr) {
	for d := range devices {
		h := lockPrimary(token, uint64(d))
		if h == nil {
			continue
		}
		for p := h.pools; p != nil; p = p.next {
			if p.tagged == 0 {
				continue
			}
			if n < RegionMax {
				out[n&(RegionMax-1)] = Region{uint64(d), p.id0, p.id1}
			}
			n++
		}
		h.lock.Release()
	}
	return n
}

// BytesAsleep returns the bytes of a region that have an address and no memory. The precondition is
// that of Regions.
func (of *Region) BytesAsleep(token uintptr) (bytes uint64) {
	h := lockPrimary(token, of.Device)
	if h == nil {
		return 0
	}
	if p := h.regionOf(of.ID0, of.ID1); p != nil {
		bytes = h.bytesAsleep(p)
	}
	h.lock.Release()
	return bytes
}

// lockPrimary returns the heap of a device's primary context with its lock held, or nil.
func lockPrimary(token uintptr, device uint64) *heap {
	c := atomic.LoadUint64(&devices[device&(deviceMax-1)].primary)
	h := heapOf(c)
	if h == nil || !h.lock.Take(token) {
		return nil
	}
	if h.context != c {
		h.lock.Release()
		return nil
	}
	return h
}
