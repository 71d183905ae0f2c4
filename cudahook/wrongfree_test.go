package cudahook

import "testing"

// TestFreesInside: what is no block that the program has is refused, counted, and changes nothing,
// and the driver is not asked about addresses within segments.
func TestFreesInside(t *testing.T) {
	for _, op := range []Op{OpFree, OpStreamFree} {
		p := newProg(t, gib, nil)
		blocks := []uint64{p.salloc(5000, 7), p.salloc(5000, 7), p.salloc(30*mib, 7)}
		free := func(address uint64) uint64 {
			return p.result(op, func(r *Request) { r.Address, r.Stream = address, 7 })
		}
		before := *p.report()
		want := uint64(0)
		for _, inside := range []uint64{blocks[0] + 8, blocks[0] + granule, blocks[2] + 4*mib,
			blocks[2] + 30*mib - 1} {
			p.is("inside", free(inside), ErrorInvalidValue)
			p.is("a stream of it", p.result(OpRecord,
				func(r *Request) { r.Address, r.Stream = inside, 9 }), ErrorInvalidValue)
			want++
		}
		p.is("frees", p.report().FreeCalls, before.FreeCalls)
		p.is("live", p.report().BytesLive, before.BytesLive)
		p.is("the block", free(blocks[2]), Success)
		p.is("twice", free(blocks[2]), ErrorInvalidValue)
		p.is("first", free(blocks[0]), Success)
		p.is("second", free(blocks[1]), Success)
		p.must(OpCoalesce, func(r *Request) {}) // the second has no descriptor any more
		p.is("merged", free(blocks[1]), ErrorInvalidValue)
		want += 2
		d := p.report()
		p.is("invalid", d.FreesInvalid, want)
		p.is("unknown", d.FreesUnknown, 0)
		p.is("live", d.BytesLive, 0)
	}
}
