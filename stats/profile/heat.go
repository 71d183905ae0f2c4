package profile

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Region is a part of the heap with its heat: touches per memory page and second.
type Region struct {
	Start, End uintptr
	Heat       float64
}

// A class of heat has all heats of a power of two: class c those from 2^(c-heatBias) on. The first
// has all lower ones, too, and the last all higher ones.
const (
	heatClasses = 32
	heatBias    = 16
)

// use is what a site's blocks of one class of heat were used: estimates, summed over the time in
// which heat was measured.
type use struct {
	bytes   float32 // byte-seconds
	touches float32
}

const heatPage = 4096

// Heat notes the heat of a stretch of time: n regions at an address, in the order of their
// addresses. If they are a part of the heap, they stand for all of it. Blocks of a page and more
// count, because smaller ones share their pages.
func Heat(token, regions, n uintptr, seconds float64) {
	if !Hold(token, true) {
		return
	}
	var all, known float64
	for e, at := t.samples.next(place{}); e != nil; e, at = t.samples.next(at) {
		if e.size() >= heatPage && !e.onDevice() {
			all += Weight(e.size(), e.level()) * float64(e.size())
			known += t.warm(e, regions, n, 0)
		}
	}
	if known > 0 {
		t.heatTime += seconds
		for e, at := t.samples.next(place{}); e != nil; e, at = t.samples.next(at) {
			if e.size() >= heatPage && !e.onDevice() {
				t.warm(e, regions, n, seconds*all/known)
			}
		}
	}
	Release()
}

// warm adds the use of a sampled block in so many seconds to its site. It returns the bytes whose
// heat is known, of all blocks that the sample stands for.
func (t *table) warm(e *sample, regions, n uintptr, seconds float64) (known float64) {
	end := e.addr + uintptr(e.size())
	w := Weight(e.size(), e.level())
	for i := firstRegion(regions, n, e.addr); i < n; i++ {
		r := regionAt(regions, i)
		if r.Start >= end {
			break
		}
		bytes := w * float64(min(r.End, end)-max(r.Start, e.addr))
		u := &t.uses[e.site()&(siteCount-1)][heatClass(r.Heat)&(heatClasses-1)]
		u.bytes += float32(bytes * seconds)
		u.touches += float32(bytes * seconds / heatPage * r.Heat)
		known += bytes
	}
	return known
}

func regionAt(regions, i uintptr) *Region {
	return (*Region)(raw.Ptr(regions + i*unsafe.Sizeof(Region{})))
}

// firstRegion returns the number of the first region that ends behind an address, or n.
func firstRegion(regions, n, addr uintptr) uintptr {
	low, high := uintptr(0), n
	for low < high {
		middle := (low + high) / 2
		if regionAt(regions, middle).End <= addr {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// heatClass returns the class of a heat.
func heatClass(heat float64) uintptr {
	exponent := int64(*(*uint64)(unsafe.Pointer(&heat))>>52) - 1023 + heatBias
	return uintptr(min(max(exponent, 0), heatClasses-1))
}
