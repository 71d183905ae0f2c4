package alloc

import (
	"fmt"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// growingBlock is a heap of which one block of n bytes is in use, with its contents.
func growingBlock(t *testing.T, n uintptr) (h *Heap, b uintptr) {
	t.Helper()
	newWorld(t)
	h = mustAcquire(t, 8)
	h.Thread.Now = 1e9
	b = get(t, h, n)
	numbered(b, n)
	return h, b
}

// TestGrowInPlace: a block that is alone keeps its address while it grows, also past the end of the
// segment, and its page serves as any other of its class.
func TestGrowInPlace(t *testing.T) {
	for _, kib := range []uintptr{InPlaceMin >> 10, 20, 50, 100, 185, 300} {
		t.Run(fmt.Sprintf("%d KiB", kib), func(t *testing.T) {
			from := kib << 10
			h, b := growingBlock(t, from)
			allocs := h.Calls[CallReallocAllocs]
			steps := uint64(0)
			for n := from + from/2; n <= inPlaceMost; n += n / 2 {
				if to := Resize(h, b, n); to != b {
					t.Fatalf("%d bytes: %#x is at %#x", n, b, to)
				}
				steps++
				isNumbered(t, b, from)
				p := Lookup(b + n - 1)
				if p != Lookup(b) || p.usable(b) < n {
					t.Fatalf("%d bytes: the page has %d", n, p.usable(b))
				}
				sound(t)
			}
			if got := h.Calls[CallReallocAllocs] - allocs; got != steps {
				t.Errorf("%d steps are counted as %d", steps, got)
			}
			for n := uintptr(0); n < Lookup(b).Size; n += raw.Page {
				raw.StoreByte(b+n, 7)
			}
			blocks := []uintptr{b}
			for range 5 {
				blocks = append(blocks, get(t, h, uintptr(Lookup(b).Size)))
				sound(t)
			}
			freeAll(t, h, blocks)
		})
	}
}

// TestGrowInPlaceZero: what a page has beyond its block is not said to read as zero if blocks were
// there, of this page or of the one behind it.
func TestGrowInPlaceZero(t *testing.T) {
	for _, c := range []struct {
		name     string
		n, count uintptr // of the blocks that are freed
		to       uintptr
	}{{"page", 40 << 10, 2, 60 << 10}, {"page behind", 300 << 10, 1, 104 << 10}} {
		t.Run(c.name, func(t *testing.T) {
			h, b := growingBlock(t, 40<<10)
			var others []uintptr
			for range c.count {
				others = append(others, get(t, h, c.n))
			}
			freeAll(t, h, others)
			to := c.to
			if Resize(h, b, to) != b {
				t.Fatalf("%#x has moved", b)
			}
			got := Malloc(h, to, 0, 0)
			if Lookup(got) != Lookup(b) {
				t.Fatalf("%#x is in another page than %#x", got, b)
			}
			for at := got - ZeroBit; got&ZeroBit != 0 && at < got-ZeroBit+to; at += 8 {
				if raw.Load(at) != 0 {
					t.Fatalf("%#x is said to be zero, and is not at %#x", got, at)
				}
			}
			sound(t)
		})
	}
}

// TestNoGrowthInPlace: a block stays as it was where something is in its way.
func TestNoGrowthInPlace(t *testing.T) {
	const n = 200 << 10
	for _, c := range []struct {
		name string
		to   uintptr
		do   func(h *Heap, b uintptr) uintptr // what is to grow
	}{
		{"behind another of its page", n + 50<<10, func(h *Heap, b uintptr) uintptr {
			return get(t, h, n)
		}},
		{"before another of its page", n + 50<<10, func(h *Heap, b uintptr) uintptr {
			get(t, h, n)
			return b
		}},
		{"before another page", inPlaceMost, func(h *Heap, b uintptr) uintptr {
			get(t, h, sizeclass.MaxSize)
			return b
		}},
		{"of another thread", n + 50<<10, func(h *Heap, b uintptr) uintptr {
			return get(t, mustAcquire(t, 16), n)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, b := growingBlock(t, n)
			at := c.do(h, b)
			p := Lookup(at)
			size, slices, allocs := p.Size, p.slices, p.Allocs
			if to := Resize(h, at, c.to); to != 0 {
				t.Fatalf("%#x is at %#x", at, to)
			}
			if p.Size != size || p.slices != slices || p.Allocs != allocs {
				t.Errorf("now %d bytes in %d slices, before %d in %d", p.Size, p.slices, size,
					slices)
			}
			isNumbered(t, b, n)
			sound(t)
		})
	}
}

// TestGrowInPlaceFull: the page of a block that grows may be on no list.
func TestGrowInPlaceFull(t *testing.T) {
	h, b := growingBlock(t, 500<<10)
	second := get(t, h, 500<<10)
	if p := Lookup(b); p.Owner&OwnerFull == 0 {
		t.Fatal("the page is on a list")
	}
	drop(h, second)
	if to := Resize(h, b, 600<<10); to != b || Lookup(b).Owner&OwnerFull != 0 {
		t.Fatalf("%#x is at %#x", b, to)
	}
	isNumbered(t, b, 500<<10)
	drop(h, b)
	sound(t)
}

// TestGrowInPlaceRule: a rule decides for a block that has grown, as for one that is allocated.
func TestGrowInPlaceRule(t *testing.T) {
	for _, c := range []struct {
		rule     string
		from, to uintptr
	}{
		{"size>=64K:pin_fast", 40 << 10, 100 << 10},
		{"size>=64K:cold", 40 << 10, 100 << 10},
		{"size>=500K:pin_fast", 400 << 10, 600 << 10},
	} {
		t.Run(fmt.Sprintf("%s from %d", c.rule, c.from), func(t *testing.T) {
			newWorld(t)
			environment(t, "TA_DEFAULT_HINT=hot", "TA_RULES="+c.rule)
			h := mustAcquire(t, 8)
			h.Thread.Now = 1e9
			b := Malloc(h, c.from, uintptr(tiers.CallerSet(0, 0, 0)), 0) &^ ZeroBit
			if to := Resize(h, b, c.to); to != 0 {
				t.Errorf("%#x is at %#x, with hint %d", b, to, Lookup(to).Hint)
			}
			sound(t)
		})
	}
}
