package alloc

import (
	"math/rand"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// TestZeroBlocks: addresses of every alignment are unique and aligned, none can be read,
// and each is freed once. There are as many at a time as several zero pages have.
func TestZeroBlocks(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	r := rand.New(rand.NewSource(1))
	live := map[uintptr]bool{}
	var all []uintptr
	for i := range 3 * zeroBlocks {
		align := uintptr(1) << r.Intn(13)
		if i%8 != 0 {
			align = sizeclass.Granule
		}
		b := Aligned(h, align, 0, 0, 0)
		if b == 0 || b&ZeroBit != 0 || b&(max(align, sizeclass.Granule)-1) != 0 || live[b] {
			t.Fatalf("block %d at a multiple of %d is %#x, live before: %v", i, align, b, live[b])
		}
		if p := Lookup(b); p.Owner != OwnerZero || p.Size != 0 || Check(b) != FreeOK ||
			TierOf(b) != uintptr(config.TierNormal) {
			t.Fatalf("block %#x: owner %d, size %d, check %d, tier %d", b, p.Owner, p.Size,
				Check(b), TierOf(b))
		}
		live[b] = true
		all = append(all, b)
		if r.Intn(3) == 0 {
			k := r.Intn(len(all))
			if why := Free(h, all[k], HowAny, NoSize, 0); why != FreeOK {
				t.Fatalf("free of %#x says %d", all[k], why)
			}
			delete(live, all[k])
			all = append(all[:k], all[k+1:]...)
		}
	}
	probe := make([]byte, 1)
	if n, err := unix.ProcessVMReadv(unix.Getpid(), []unix.Iovec{{Base: &probe[0], Len: 1}},
		[]unix.RemoteIovec{{Base: all[0], Len: 1}}, 0); err == nil {
		t.Errorf("%d bytes of a block of 0 bytes can be read", n)
	}
	if f := filled(8); f.ZeroBlocksLive != uint64(len(all)) || f.BlocksLive != f.ZeroBlocksLive ||
		f.BytesLive != 0 || f.BytesCommitted != 0 {
		t.Errorf("%d live blocks are reported as %d, with %d bytes, %d held", len(all),
			f.ZeroBlocksLive, f.BytesLive, f.BytesCommitted)
	}
	for _, b := range all {
		if Free(h, b, HowAny, NoSize, 0) != FreeOK || Free(h, b, HowAny, NoSize, 0) != FreeDouble {
			t.Fatalf("%#x is not freed once", b)
		}
	}
	if f := filled(8); f.ZeroBlocksLive != 0 || f.BlocksTotalAlloc != 3*zeroBlocks ||
		f.BlocksTotalFreed != 3*zeroBlocks {
		t.Errorf("afterwards the report has %d of %d blocks", f.ZeroBlocksLive, f.BlocksTotalAlloc)
	}
}

// TestZeroReuse: a freed address is the last of its page to come again, and what was
// never handed out is no block.
func TestZeroReuse(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	first := Malloc(h, 0, 0, 0)
	for _, never := range []uintptr{first + sizeclass.Granule,
		first + SliceSize - sizeclass.Granule, first + 1, first + 8} {
		if why := Free(h, never, HowAny, NoSize, 0); why != FreeInside {
			t.Errorf("free at %d from the block says %d", never-first, why)
		}
	}
	for i := range 2 * zeroBlocks {
		b := Malloc(h, 0, 0, 0)
		if b == first {
			t.Fatalf("call %d gives the live block again", i)
		}
		if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
			t.Fatalf("free says %d", why)
		}
		if c := Malloc(h, 0, 0, 0); c == b {
			t.Fatalf("%#x comes again at once", b)
		} else if Free(h, b, HowAny, NoSize, 0) != FreeDouble ||
			Free(h, c, HowAny, NoSize, 0) != FreeOK {
			t.Fatalf("freeing %#x and %#x", b, c)
		}
	}
}

// TestZeroHints: the address says what the block is for, which realloc goes by, and
// moving it to a tier gives another.
func TestZeroHints(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	cold := Alloc(h, 0, uintptr(config.HintCold))
	if TierOf(cold) != uintptr(config.TierSlow) {
		t.Errorf("a COLD block is in tier %d", TierOf(cold))
	}
	if b := Renew(h, 100, 0, cold) &^ ZeroBit; Lookup(b).Hint != config.HintCold {
		t.Errorf("realloc of a COLD block gives one for hint %d", Lookup(b).Hint)
	}
	if to := Move(h, cold, uintptr(config.TierSlow)); to != cold {
		t.Errorf("moving a block to its own tier gives %#x", to)
	}
	to := Move(h, cold, uintptr(config.TierFast))
	if to < raw.Page || TierOf(to) != uintptr(config.TierFast) || Lookup(to).Size != 0 ||
		Free(h, cold, HowAny, NoSize, 0) != FreeOK || Free(h, to, HowAny, NoSize, 0) != FreeOK {
		t.Errorf("moved to %#x", to)
	}
}

// TestZeroElse: where the pool cannot be had, and for an alignment beyond a page, the
// block is an ordinary one; one freed then is lost, and nothing else.
func TestZeroElse(t *testing.T) {
	hardWorld(t)
	h := mustAcquire(t, 8)
	b := Malloc(h, 0, 0, 0)
	if big := Aligned(h, 2*zeroMaxAlign, 0, 0, 0) &^ ZeroBit; big == 0 ||
		big%(2*zeroMaxAlign) != 0 || Lookup(big).Size == 0 ||
		Free(h, big, HowAny, NoSize, 0) != FreeOK {
		t.Errorf("aligned to two pages: %#x", big)
	}
	poolLock.Take(8)
	c := Malloc(h, 0, 0, 0) &^ ZeroBit
	why := Free(h, b, HowAny, NoSize, 0)
	poolLock.Release()
	if c == 0 || Lookup(c).Owner == OwnerZero || why != FreeOK || Check(b) != FreeOK {
		t.Errorf("in the middle of the pool: block %#x, free says %d", c, why)
	}
}
