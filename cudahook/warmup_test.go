package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

func TestWarmup(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) {
		c.Warmups = 3
		c.Warmup[0], c.Warmup[1], c.Warmup[2] = config.Warm{Bytes: 4 * kib, Count: 600},
			config.Warm{Bytes: 64 * kib, Count: 20}, config.Warm{Bytes: mib, Count: 10}
	})
	p.salloc(4*kib, 7)
	maps := p.maps()
	for range 599 {
		p.salloc(4*kib, 7)
	}
	for range 20 {
		p.salloc(64*kib, 7)
	}
	for range 10 {
		p.salloc(mib, 7)
	}
	p.is("maps", uint64(p.maps()), uint64(maps))
	p.must(OpWarmup, func(r *Request) { r.Bytes, r.Count, r.Hint = 30*mib, 3, 1 })
	maps = p.maps()
	// they are there already
	p.must(OpWarmup, func(r *Request) { r.Bytes, r.Count, r.Hint = 30*mib, 3, 1 })
	for range 3 {
		p.salloc(30*mib, 7)
	}
	p.is("maps", uint64(p.maps()), uint64(maps))
	p.is("too much", p.result(OpWarmup, func(r *Request) {
		r.Bytes, r.Count, r.Hint = gib/2, 3,
			1
	}), ErrorOutOfMemory)
}

// TestWarmupOfSizes: what is made ready for one size is not counted for the next.
func TestWarmupOfSizes(t *testing.T) {
	p := newProg(t, gib, nil)
	list := []struct{ bytes, count uint64 }{{4096, 50}, {100_000, 20}, {300_000, 9}, {3 * mib, 12},
		{30 * mib, 1}, {29*mib + 5, 2}, {12 * mib, 1}, {100 * mib, 1}}
	for i, w := range list {
		p.must(OpWarmup, func(r *Request) {
			r.Bytes, r.Count = w.bytes, w.count
			if i == 0 {
				r.Hint = 1
			}
		})
	}
	before := p.maps()
	for _, w := range list {
		for range w.count {
			p.salloc(w.bytes, 5)
		}
	}
	if live := p.report().BytesLive; p.report().BytesReserved > live+live/4 {
		t.Errorf("%d bytes are reserved for %d", p.report().BytesReserved, live)
	}
	p.is("maps of warm blocks", uint64(p.maps()-before), 0)
}

// TestWarmupOfIdle: idle segments of any size are counted on before another one is mapped.
func TestWarmupOfIdle(t *testing.T) {
	for _, c := range []struct{ idle, bytes, count, mapped uint64 }{
		{200 * mib, 30 * mib, 6, 0},  // of its own size, where the warm-up's are of theirs
		{200 * mib, 30 * mib, 7, 1},  // what it lacks
		{200 * mib, 3 * mib, 60, 0},  // where the warm-up's are of TA_CUDA_SEGMENT_SIZE
		{20 * mib, 40 * mib, 1, 1},   // too small
		{64 * mib, 100 * kib, 20, 1}, // of another kind
	} {
		p := newProg(t, gib, nil)
		p.sfree(p.salloc(c.idle, 7), 7)
		before := p.maps()
		p.must(OpWarmup, func(r *Request) { r.Bytes, r.Count, r.Hint = c.bytes, c.count, 1 })
		if mapped := uint64(p.maps() - before); mapped != c.mapped {
			t.Errorf("%d of %d bytes beside %d: %d segments mapped, want %d", c.count, c.bytes,
				c.idle, mapped, c.mapped)
		}
		before = p.maps()
		for range c.count {
			p.salloc(c.bytes, 7)
		}
		p.is("maps of warm blocks", uint64(p.maps()-before), 0)
	}
}

// TestWarmupInSmallerSegments: where there is no room for a segment of the usual size, by a cap or
// by the driver, the blocks come from smaller ones.
func TestWarmupInSmallerSegments(t *testing.T) {
	for name, c := range map[string]struct{ memory, soft, hard uint64 }{
		"hard":   {gib, 0, 100 * mib},
		"soft":   {gib, 100 * mib, 0},
		"driver": {128 * mib, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProg(t, c.memory, func(k *config.CUDA) {
				k.SegmentSize, k.Soft,
					k.Hard = 512*mib, c.soft, c.hard
			})
			p.must(OpWarmup, func(r *Request) { r.Bytes, r.Count, r.Hint = 3*mib, 10, 1 })
			before := p.maps()
			for range 10 {
				p.salloc(3*mib, 7)
			}
			p.is("maps of warm blocks", uint64(p.maps()-before), 0)
			p.is("too much", p.result(OpWarmup,
				func(r *Request) { r.Bytes, r.Count, r.Hint = 3*mib, 60, 1 }), ErrorOutOfMemory)
		})
	}
}
