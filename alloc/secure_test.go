package alloc

import (
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// canRead reports whether the byte at addr can be read.
func canRead(addr uintptr) bool {
	b := make([]byte, 1)
	n, err := unix.ProcessVMReadv(unix.Getpid(), []unix.Iovec{{Base: &b[0], Len: 1}},
		[]unix.RemoteIovec{{Base: addr, Len: 1}}, 0)
	return err == nil && n == 1
}

// TestCanaries: a canary is of one slot, state and number, no bit of it can change, and
// its first byte is 0, and none of the fill is.
func TestCanaries(t *testing.T) {
	hardWorld(t)
	for b := uintptr(1 << 46); b < 1<<46+1000*sizeclass.Granule; b += sizeclass.Granule {
		for _, state := range []uintptr{0, 1, 2, stateFence, stateClean, stateListed, stateBusy} {
			l := canaryFor(b, state, b>>4)
			if canaryState(l) != state || canarySize(l) != b>>4&sizeMask || l&255 != 0 ||
				!canaryValid(b, l) || canaryValid(b+sizeclass.Granule, l) {
				t.Fatalf("canary %#x of %#x, state %d", l, b, state)
			}
			for bit := range 64 {
				if canaryValid(b, l^1<<bit) {
					t.Fatalf("canary %#x of %#x is good without bit %d", l, b, bit)
				}
			}
		}
		for w, i := fillOf(b), 0; i < 8; i++ {
			if w>>(8*i)&255 == 0 {
				t.Fatalf("fill %#x of %#x", w, b)
			}
		}
	}
}

// TestStringEnds: behind a block are bytes that are not 0 and then one that is, before the canary's
// check value: a string's end that is written there shows, and a string without one ends there.
func TestStringEnds(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	for n := uintptr(1); n < 300; n++ {
		b := Malloc(h, n, 0, HowMalloc) &^ ZeroBit
		end := b + n
		for raw.LoadByte(end) != 0 {
			end++
		}
		if p := Lookup(b); end == b+n || end != b+p.room() {
			t.Errorf("behind a block of %d bytes a string ends after %d, the canary is at %d", n,
				end-b, p.room())
		}
	}
}

// TestHarden: keys differ from time to time, with and without the kernel's own.
func TestHarden(t *testing.T) {
	hardWorld(t)
	first := secret
	Harden(0, 0)
	if !Secure() || secret.canary == first.canary || secret.fill == first.fill ||
		secret.list == first.list || secret.random == first.random || secret.canary == 0 {
		t.Errorf("keys %+v, then %+v", first, secret)
	}
	for link := uintptr(0); link < 4096; link += sizeclass.Granule {
		if encodeLink(4096, link)%2 == 0 || encodeLink(4096, encodeLink(4096, link)) != link {
			t.Errorf("link %#x is sealed as %#x", link, encodeLink(4096, link))
		}
	}
}

// TestSlots: what slot says of slots in each state, whole and damaged in each way.
func TestSlots(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	b := Malloc(h, 50, 0, HowNew) &^ ZeroBit
	p := Lookup(b)
	listed, virgin := p.Free, p.Start+uintptr(p.Carved)
	freed := Malloc(h, 55, 0, 0) &^ ZeroBit
	if Lookup(freed) != p || Free(h, freed, HowMalloc, 55, 0) != FreeOK {
		t.Fatal("no freed block")
	}
	if listed == freed {
		listed = p.Free
	}
	for _, c := range []struct {
		name     string
		slot, at uintptr
		want     uintptr
	}{
		{"live, behind", b, 50, foundBehind}, {"live, its last", b, p.room() - 1, foundBehind},
		{"live, canary", b, p.room(), foundCanary},
		{"live, canary's end", b, p.Size - 1, foundCanary}, {"live, inside", b, 49, 0},
		{"clean, start", freed, 0, foundFreed}, {"clean, end", freed, p.room() - 1, foundFreed},
		{"clean, canary", freed, p.room(), foundCanary},
		{"listed, link", listed, 3, foundLink}, {"listed, later", listed, 16, foundFreed},
		{"listed, canary", listed, p.room() + 3, foundCanary},
		{"fence", p.Start, p.room() - 1, foundBehind},
		{"fence's canary", p.Start, p.room(), foundCanary},
		{"never used", virgin, 5, foundUsed}, {"never used, canary", virgin, p.room(), foundCanary},
	} {
		if what := p.slot(c.slot, true); what != 0 {
			t.Fatalf("%s: %d is found in a whole slot", c.name, what)
		}
		was := raw.LoadByte(c.slot + c.at)
		raw.StoreByte(c.slot+c.at, was^0x40)
		if what := p.slot(c.slot, true); what != c.want {
			t.Errorf("%s: found %d, not %d", c.name, what, c.want)
		}
		raw.StoreByte(c.slot+c.at, was)
	}
	last := p.Start + p.Size*uintptr(p.blocks-1)
	raw.StoreByte(last+p.Size, 1)
	if at, what := p.around(last); at != last+p.Size || what != foundTail {
		t.Errorf("behind the last slot: %d at %#x", what, at)
	}
	raw.StoreByte(last+p.Size, 0)
	if why := Free(h, b, HowNew, 50, 0); why != FreeOK {
		t.Errorf("the block cannot be freed: %d", why)
	}
}

// TestSecureOutcomes: each wrong free has its outcome, and changes nothing.
func TestSecureOutcomes(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	for _, n := range []uintptr{1, 8, 100, 5000, 60000, secureMax, 300000, 20 << 20} {
		b := Malloc(h, n, 0, HowArray) &^ ZeroBit
		if got := Usable(b); got != n {
			t.Fatalf("a block of %d bytes has %d", n, got)
		}
		for _, c := range []struct{ addr, how, size, want uintptr }{
			{b, HowMalloc, NoSize, FreeKind}, {b, HowNew, n, FreeKind},
			{b, HowArray, n + 1, FreeSize}, {b, HowArray, n - 1, FreeSize},
			{b + sizeclass.Granule, HowArray, n, FreeInside}, {b + 1, HowArray, n, FreeInside},
			{b, HowAny, n, FreeOK},
		} {
			if why := Free(h, c.addr, c.how, c.size, 0); why != c.want {
				t.Errorf("%d bytes: free of +%d as %#x of %d says %d, not %d", n, c.addr-b, c.how,
					c.size, why, c.want)
			}
		}
		if why := Free(h, b, HowArray, n, 0); why != FreeDouble && why != FreeStale {
			t.Errorf("%d bytes: a second free says %d", n, why)
		}
	}
	if err := inspect(); err != nil {
		t.Error(err)
	}
}

// TestGuardPages: a large block lies between addresses without access, is gone when it is freed,
// and its addresses do not come again soon.
func TestGuardPages(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	for _, n := range []uintptr{secureMax + 1, 100_000, 262144, 5 << 20} {
		b := Malloc(h, n, 0, 0) &^ ZeroBit
		end := b + raw.RoundUp(n, raw.Page)
		if !canRead(b) || !canRead(b+n-1) || canRead(b-1) || canRead(b-1<<20) || canRead(end) ||
			canRead(end+1<<20) {
			t.Errorf("around a block of %d bytes", n)
		}
		if at := notZero(b, n); at != 0 {
			t.Errorf("a block of %d bytes is not zero at %#x", n, at)
		}
		raw.StoreByte(b+n-1, 7)
		if why := Free(h, b, HowMalloc, n, 0); why != FreeOK || canRead(b) ||
			Check(b) != FreeStale {
			t.Errorf("free of %d bytes says %d; readable: %v", n, why, canRead(b))
		}
		for range parkedSlots / 2 {
			c := Malloc(h, n, 0, 0) &^ ZeroBit
			if c < end && b < c+n {
				t.Fatalf("%#x came again at once", b)
			}
			Free(h, c, HowMalloc, n, 0)
		}
	}
	if f := filled(8); f.HugeBlocksLive != 0 || f.BytesLive != 0 || f.BytesCommitted != 0 ||
		f.UnguardedBlocks != 0 {
		t.Errorf("afterwards %+v", f)
	}
	if dropAllGuardPages() == 0 || pool.parked.bytes != 0 {
		t.Errorf("%d bytes are parked after all", pool.parked.bytes)
	}
}

// TestGuardPagesDropped: guards and parked addresses go when others need them, the blocks stay as
// they are, and later blocks have guards again.
func TestGuardPagesDropped(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	before, was := pool.count.mapped, withoutGuardPages
	var blocks []uintptr
	for i := range uintptr(10) {
		b := Malloc(h, 100_000+i<<16, 0, 0) &^ ZeroBit
		raw.StoreByte(b+99_999, 7)
		blocks = append(blocks, b)
	}
	Free(h, blocks[9], HowMalloc, NoSize, 0)
	blocks = blocks[:9]
	if dropAllGuardPages() == 0 || dropAllGuardPages() != 0 || pool.parked.bytes != 0 {
		t.Error("guards do not yield, or yield twice")
	}
	if n := withoutGuardPages - was; n != 9 {
		t.Errorf("%d blocks are counted, not 9", n)
	}
	sum := uint64(0)
	for _, b := range blocks {
		p := Lookup(b)
		sum += uint64(p.Size)
		if at, n := p.reservation(); at != b || n != p.Size || raw.LoadByte(b+99_999) != 7 {
			t.Errorf("block %#x has %#x bytes at %#x", b, n, at)
		}
	}
	if n := pool.count.mapped - before; n < sum || n > sum+1<<20 { // descriptors, too
		t.Errorf("%d bytes are mapped for %d of blocks", n, sum)
	}
	for _, b := range blocks {
		if why := Free(h, b, HowMalloc, NoSize, 0); why != FreeOK || canRead(b) ||
			Check(b) != FreeStale {
			t.Errorf("free of %#x says %d", b, why)
		}
	}
	if b := Malloc(h, 100_000, 0, 0) &^ ZeroBit; canRead(b-1<<20) || canRead(b+1<<20) ||
		withoutGuardPages != was+9 {
		t.Error("a later block has no guards")
	}
	mustBeSound(t)
}

// TestGuardPagesStay: a request that no guards are in the way of leaves them where they are.
func TestGuardPagesStay(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	was := withoutGuardPages
	b := Malloc(h, 100_000, 0, 0) &^ ZeroBit
	for _, n := range []uintptr{maxRequest, 1 << 45, 1 << 44} {
		if p := Malloc(h, n, 0, 0) &^ ZeroBit; p != 0 {
			Free(h, p, HowMalloc, NoSize, 0)
		}
	}
	_, whole := Lookup(b).reservation()
	if canRead(b-1<<20) || canRead(b+1<<20) || whole == Lookup(b).Size || withoutGuardPages != was {
		t.Errorf("%d blocks have lost their guards to requests of terabytes", withoutGuardPages-was)
	}
}

// TestSlotPages: a page of every class has slots beside its fence, and a tail.
func TestSlotPages(t *testing.T) {
	for c := uintptr(secureMinClass); sizeclass.Size(c) <= secureMax; c++ {
		size, bytes := sizeclass.Size(c), slotSlices(c)<<SliceShift
		if n := (bytes - tailBytes) / size; n < 9 || slotSlices(c) < sizeclass.PageSlices(c) {
			t.Errorf("a page of %d-byte slots has %d of them", size, n)
		}
	}
}

// TestSecureOrder: blocks that were never used are given out in an order that cannot be told. All
// of 16 that are carved at a time follow the one before with a probability of 1/8: of 256 blocks
// three quarters do so once in 10^7 runs.
func TestSecureOrder(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	const n = 256
	up, down := 0, 0
	last := Malloc(h, 40, 0, HowMalloc) &^ ZeroBit
	for range n {
		b := Malloc(h, 40, 0, HowMalloc) &^ ZeroBit
		switch b - last {
		case Lookup(b).Size:
			up++
		case -Lookup(b).Size:
			down++
		}
		last = b
	}
	if up > n/4*3 || down > n/4*3 {
		t.Errorf("of %d blocks %d follow the one before, %d precede it", n, up, down)
	}
}

// TestQuarantineEnds: what is in quarantine goes back to its page when time passes.
func TestQuarantineEnds(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	b := Malloc(h, 40, 0, HowMalloc) &^ ZeroBit
	h.Thread.tick() // from now on it is known when to look
	Free(h, b, HowMalloc, NoSize, 0)
	if h.Thread.held == nil || h.Thread.held.n != 1 {
		t.Fatal("the block is not in quarantine")
	}
	h.Thread.Now = h.Thread.collect
	h.Thread.tick()
	if h.Thread.held.n != 0 || !Lookup(b).allFree() {
		t.Errorf("%d blocks are in quarantine", h.Thread.held.n)
	}
	mustBeSound(t)
}
