package cudahook

import "testing"

// TestExactSizeBinClock: what calls without a request use does not count as idle.
func TestExactSizeBinClock(t *testing.T) {
	p := newProg(t, gib, plainSegments)
	at := func() uintptr { return Take(8, 0, 7, uintptr(12*mib)) }
	p.must(OpStreamAlloc, func(r *Request) {
		r.Context, r.Device, r.Bytes, r.Stream = 0, 0, 12*mib,
			7
	})
	a := p.r.Address
	p.must(OpStreamFree, func(r *Request) { r.Context, r.Device, r.Address, r.Stream = 0, 0, a, 7 })
	if x := at(); x != 0 {
		if !Give(8, 0, 7, x) {
			t.Fatal("not given")
		}
	} else {
		t.Fatal("not taken")
	}
	small := p.salloc(5000, 9)
	for range 20 { // seconds, all of them busy
		p.f.now += 1e9
		x := at()
		if x == 0 {
			t.Fatal("not taken")
		}
		y := Take(8, 0, 7, uintptr(11*mib)) // none of that size: the lists are merged
		if y != 0 {
			Give(8, 0, 7, y)
		}
		Give(8, 0, 7, x)
		z := Take(8, 0, 7, uintptr(11*mib+512))
		if z != 0 {
			Give(8, 0, 7, z)
		}
		Take(8, 0, 7, uintptr(13*mib)) // a miss merges: the segment is idle now
	}
	before := p.f.calls[ActUnmap]
	p.must(OpStreamFree, func(r *Request) { r.Address, r.Stream = small, 8 })
	if n := p.f.calls[ActUnmap] - before; n != 0 {
		t.Errorf("%d segments that were in use just now went back as idle for 10 s", n)
	}
}

// TestExactSizeBinClockUnderPressure: nor when the device is nearly full.
func TestExactSizeBinClockUnderPressure(t *testing.T) {
	p := newProg(t, gib, nil)
	p.must(OpStreamAlloc, func(r *Request) {
		r.Context, r.Device, r.Bytes, r.Stream = 0, 0, 12*mib,
			7
	})
	a := p.r.Address
	p.must(OpStreamFree, func(r *Request) { r.Context, r.Device, r.Address, r.Stream = 0, 0, a, 7 })
	p.alloc(gib - 60*mib) // the device is nearly full
	p.f.now += lookEvery
	p.alloc(2 * mib)
	small := [40]uint64{}
	for i := range small {
		small[i] = p.salloc(600, 9)
	}
	unmaps, maps := p.f.calls[ActUnmap], p.f.calls[ActMap]
	for i := range small {
		p.f.now += recently + 1e6
		for range 1000 { // used all the time
			x := Take(8, 0, 7, uintptr(12*mib))
			if x == 0 {
				p.must(OpStreamAlloc, func(r *Request) {
					r.Context, r.Device, r.Bytes, r.Stream = 0,
						0, 12*mib, 7
				})
				x = uintptr(p.r.Address)
			}
			if !Give(8, 0, 7, x) {
				p.must(OpStreamFree, func(r *Request) {
					r.Context, r.Device, r.Address,
						r.Stream = 0, 0, uint64(x), 7
				})
			}
			Take(8, 0, 7, uintptr(13*mib)) // a miss: lists are merged
		}
		p.must(OpStreamFree, func(r *Request) { r.Address, r.Stream = small[i], 8 })
	}
	if n := p.f.calls[ActUnmap] - unmaps; n > 1 {
		t.Errorf("a segment in use all the time was unmapped %d times and mapped %d times", n,
			p.f.calls[ActMap]-maps)
	}
}

// TestFastPathAfterRecording: calls take the fast path again when nobody records any more.
func TestFastPathAfterRecording(t *testing.T) {
	p := newProg(t, gib, nil)
	p.must(OpStreamAlloc, func(r *Request) {
		r.Context, r.Device, r.Bytes, r.Stream = 0, 0, 5000,
			7
	})
	a := p.r.Address
	p.must(OpStreamFree, func(r *Request) { r.Context, r.Device, r.Address, r.Stream = 0, 0, a, 7 })
	Configure(8, 0, ConfigTrace, 1)
	Configure(8, 0, ConfigTrace, 0)
	if Take(8, 0, 7, 5000) == 0 {
		t.Error("nobody records, and no call takes the fast path")
	}
}
