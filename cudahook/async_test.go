package cudahook

import "testing"

// TestFreeAfterStreamEnd: a free that is ordered after all work on its block joins the stream that
// it names, though the stream that the block was allocated on has ended. Without that order it
// waits for the device.
func TestFreeAfterStreamEnd(t *testing.T) {
	for ordered := range uint64(2) {
		p := newProg(t, gib, nil)
		a := p.salloc(30*mib, 7)
		p.must(OpStreamEnd, func(r *Request) { r.Stream = 7 })
		p.reborn(0xc1, 7)
		p.f.launch(0xc1, 8, a, 30*mib, 0)
		before := p.f.calls[ActSynchronize]
		p.must(OpStreamFree, func(r *Request) { r.Address, r.Stream, r.Count = a, 8, ordered })
		p.is("waits", uint64(p.f.calls[ActSynchronize]-before), 1-ordered)
		if b := p.salloc(30*mib, 9); ordered == 1 && b == a {
			t.Error("another stream gets the block while it is in use")
		}
		if b := p.salloc(30*mib, 8); ordered == 1 && b != a {
			t.Errorf("the stream gets %#x, not its block %#x", b, a)
		}
	}
}

// TestPoolFigures: the figures that a pool would tell, and peaks that start anew one by one.
func TestPoolFigures(t *testing.T) {
	p := newProg(t, gib, plainSegments)
	a, b := p.salloc(10*mib, 7), p.salloc(20*mib, 7)
	p.sfree(b, 7)
	figures := func(count, used, reserved, usedHigh, reservedHigh uint64) {
		t.Helper()
		p.must(OpPoolFigures, func(r *Request) { r.Count = count })
		p.is("used", p.r.Value, used)
		p.is("reserved", p.r.Extra, reserved)
		p.is("used at most", p.r.OnBytes, usedHigh)
		p.is("reserved at most", p.r.OnUsed, reservedHigh)
	}
	reserved := p.report().BytesReserved
	figures(0, 10*mib, reserved, 30*mib, reserved)
	p.must(OpTrim, nil)
	left := p.report().BytesReserved
	if left >= reserved {
		t.Fatalf("%d bytes are left of %d", left, reserved)
	}
	figures(1, 10*mib, left, 30*mib, reserved)
	figures(2, 10*mib, left, 10*mib, reserved)
	figures(0, 10*mib, left, 10*mib, left)
	p.sfree(a, 7)
	figures(0, 0, left, 10*mib, left)
}
