package alloc

import (
	"slices"
	"testing"

	"tieralloc/internal/raw"
)

const binsSpans = 64

// FuzzSpanBins compares the bins with a plain list of spans. Each operation is two
// bytes: with the first below 128, a span of a length made of both goes in, or
// one that is in comes out; else one of at least that length is taken.
func FuzzSpanBins(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		var bins spanBins
		var in []*Page
		all := someDescriptors(t)
		for ; len(ops) >= 2; ops = ops[2:] {
			n := spanLength(ops[0], ops[1])
			switch {
			case ops[0] >= 128:
				in = takeSpan(t, &bins, in, n)
			case ops[0]&1 == 0 && len(in) < binsSpans:
				i := slices.IndexFunc(all, func(p *Page) bool { return !slices.Contains(in, p) })
				all[i].slices, all[i].state = uint32(n), spanClean
				bins.add(all[i])
				in = append(in, all[i])
			case len(in) != 0:
				i := int(ops[1]) % len(in)
				bins.remove(in[i])
				in = slices.Delete(in, i, i+1)
			}
			sameSpans(t, &bins, in)
		}
	})
}

// spanLength is a length from 1 to 2^22 slices, short ones often.
func spanLength(a, b byte) uintptr {
	if a&2 == 0 {
		return 1 + uintptr(b)&127
	}
	return (1+uintptr(b)&15)<<(b>>4) + uintptr(a>>2)
}

// someDescriptors are descriptors outside Go's heap, where they must be.
func someDescriptors(t *testing.T) (list []*Page) {
	const size = (binsSpans*pageBytes + raw.Page - 1) &^ (raw.Page - 1)
	at := raw.Map(size)
	if at == 0 {
		t.Fatal("no memory")
	}
	t.Cleanup(func() { raw.Unmap(at, size) })
	for i := range uintptr(binsSpans) {
		list = append(list, (*Page)(raw.Ptr(at+i*pageBytes)))
	}
	return list
}

// takeSpan takes a span of at least n slices, and looks whether there was a better.
func takeSpan(t *testing.T, bins *spanBins, in []*Page, n uintptr) []*Page {
	p := bins.take(n)
	best := uintptr(0)
	for _, q := range in {
		if have := uintptr(q.slices); have >= n && (best == 0 || have < best) {
			best = have
		}
	}
	if p == nil {
		if best != 0 {
			t.Fatalf("no span of %d slices, though there is one of %d", n, best)
		}
		return in
	}
	i := slices.Index(in, p)
	have := uintptr(p.slices)
	if i < 0 || have < n {
		t.Fatalf("took a span of %d slices for %d, number %d", have, n, i)
	}
	// The best below 64 slices; above, one of the same doubling as n or as the best.
	if best < exactBins && have != best || binOf(have) != binOf(n) && binOf(have) != binOf(best) {
		t.Fatalf("took a span of %d slices for %d, with one of %d there", have, n, best)
	}
	return slices.Delete(in, i, i+1)
}

func sameSpans(t *testing.T, bins *spanBins, in []*Page) {
	v := &inspection{}
	n := 0
	v.bins(bins, func(p *Page) {
		v.want(slices.Contains(in, p), "a span of %d slices is in a bin, but was not put there",
			p.slices)
		n++
	})
	v.want(n == len(in), "%d spans in bins, %d expected", n, len(in))
	if v.err != nil {
		t.Fatal(v.err)
	}
}
