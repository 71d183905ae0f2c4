package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/stats"
)

// extent is memory of one place.
type extent struct {
	addr, bytes uintptr
	place       uint32
	_           uint32
}

// extents gathers what the heap holds, so that the kernel can be asked about it
// without the lock.
type extents struct {
	at      uintptr // address of the array
	n, room uintptr
}

func (e *extents) add(addr, bytes uintptr, place uint32) {
	if e.n > 0 {
		last := (*extent)(raw.Ptr(e.at + (e.n-1)*unsafe.Sizeof(extent{})))
		if last.addr+last.bytes == addr && last.place == place {
			last.bytes += bytes
			return
		}
	}
	if e.n < e.room {
		x := (*extent)(raw.Ptr(e.at + e.n*unsafe.Sizeof(extent{})))
		x.addr, x.bytes, x.place = addr, bytes, place
	}
	e.n++
}

// gather fills e and reports whether all of it fits. Precondition: poolLock is held.
func (e *extents) gather() bool {
	e.n = 0
	for s := pool.segments; s != nil; s = s.next {
		for a, end := s.start, s.start+s.slices<<SliceShift; a < end; {
			p := Lookup(a)
			if p == nil || p.slices == 0 {
				a += SliceSize
				continue
			}
			if p.state != spanClean {
				e.add(a, p.bytes(), p.place)
			}
			a += p.bytes()
		}
	}
	for i := range pool.aged {
		for p := pool.aged[i].head; p != nil; p = p.ageNext {
			if p.state == spanHuge {
				moved := uintptr(p.done) << SliceShift // by a demotion that is not finished
				if moved != 0 {
					e.add(p.Start, moved, p.astray)
				}
				e.add(p.Start+moved, p.Size-moved, p.place)
			}
		}
	}
	for i := uintptr(0); i < pool.cache.n && i < hugeCacheSlots; i++ {
		p := pool.cache.slot[i]
		e.add(p.Start, p.Size, p.place)
	}
	return e.n <= e.room
}

// FillNodes asks the kernel where the memory of each tier is, page by page, and puts
// that into the report. It gives up, with NodesComplete 0, after about budget
// nanoseconds.
func FillNodes(token uintptr, r *stats.Report, nodes, budget uint64) {
	setNodes(r, nodes)
	end := raw.Clock(raw.ClockMono) + budget
	e := extents{room: 1024}
	for range 8 {
		bytes := raw.RoundUp(numa.ScratchBytes, raw.Page) + raw.RoundUp(e.room*unsafe.Sizeof(extent{}), raw.Page)
		scratch := raw.Map(bytes)
		if scratch == 0 {
			return
		}
		e.at = scratch + raw.RoundUp(numa.ScratchBytes, raw.Page)
		ok := poolLock.Take(token)
		if ok {
			ok = e.gather()
			poolLock.Release()
		}
		if ok {
			e.ask(r, scratch, end)
		}
		unmapFresh(scratch, bytes)
		if ok {
			return
		}
		e.room = e.n + e.n/2
	}
}

func setNodes(r *stats.Report, nodes uint64) {
	r.NodeCount = 0
	for node := uint64(0); node < stats.NodeMax; node++ {
		if nodes>>node&1 != 0 {
			r.Nodes[r.NodeCount&(stats.NodeMax-1)] = node
			r.NodeCount++
		}
	}
}

// ask does the asking, a bit at a time, and looks at the clock between.
func (e *extents) ask(r *stats.Report, scratch uintptr, end uint64) {
	const bit = 64 << 20
	for i := uintptr(0); i < e.n && i < e.room; i++ {
		x := (*extent)(raw.Ptr(e.at + i*unsafe.Sizeof(extent{})))
		for at := uintptr(0); at < x.bytes; at += bit {
			var found numa.Residency
			numa.Count(x.addr+at, min(x.bytes-at, bit), scratch, &found)
			t := &r.Tiers[tierOf(x.place)&3]
			for k := uint64(0); k < r.NodeCount && k < stats.NodeMax; k++ {
				t.BytesPerNode[k] += found.Node[r.Nodes[k]&(stats.NodeMax-1)]
			}
			if raw.Clock(raw.ClockMono) > end {
				return
			}
		}
	}
	r.NodesComplete = 1
}
