package cudahook

import (
	"sort"
)

// torch is a plain model of PyTorch's caching allocator with its default settings:
// c10/cuda/CUDACachingAllocator.cpp of 2.x. Its blocks are kept in slices.
type torch struct {
	free           [2][]*torchBlock // small, large; by size, then address
	reserved, peak uint64
	next, limit    uint64
}

type torchBlock struct {
	address, bytes uint64
	before, after  *torchBlock
	pool           int
	used           bool
}

func (t *torch) add(b *torchBlock) {
	f := t.free[b.pool]
	i := sort.Search(len(f), func(i int) bool {
		return f[i].bytes > b.bytes || f[i].bytes == b.bytes && f[i].address >= b.address
	})
	f = append(f, nil)
	copy(f[i+1:], f[i:])
	f[i] = b
	t.free[b.pool] = f
}

func (t *torch) remove(b *torchBlock) {
	f := t.free[b.pool]
	for i := range f {
		if f[i] == b {
			t.free[b.pool] = append(f[:i], f[i+1:]...)
			return
		}
	}
}

func (t *torch) alloc(n uint64) *torchBlock {
	n = max(rounded(n), 512)
	pool := 1
	if n <= mib {
		pool = 0
	}
	f := t.free[pool]
	i := sort.Search(len(f), func(i int) bool { return f[i].bytes >= n })
	var b *torchBlock
	if i < len(f) {
		b = f[i]
		t.remove(b)
	} else {
		size := mapRounded(n)
		if pool == 0 {
			size = 2 * mib
		} else if n < 10*mib {
			size = 20 * mib
		}
		if t.reserved+size > t.limit {
			for p := range t.free {
				var keep []*torchBlock
				for _, b := range t.free[p] {
					if b.before == nil && b.after == nil {
						t.reserved -= b.bytes
					} else {
						keep = append(keep, b)
					}
				}
				t.free[p] = keep
			}
		}
		b = &torchBlock{address: t.next, bytes: size, pool: pool}
		t.next += size
		t.reserved += size
		t.peak = max(t.peak, t.reserved)
	}
	if rest := b.bytes - n; pool == 0 && rest >= 512 || pool == 1 && rest > mib {
		c := &torchBlock{address: b.address + n, bytes: rest, before: b, after: b.after, pool: pool}
		if c.after != nil {
			c.after.before = c
		}
		b.after, b.bytes = c, n
		t.add(c)
	}
	b.used = true
	return b
}

func (t *torch) release(b *torchBlock) {
	b.used = false
	if a := b.before; a != nil && !a.used {
		t.remove(a)
		a.bytes += b.bytes
		a.after = b.after
		if a.after != nil {
			a.after.before = a
		}
		b = a
	}
	if c := b.after; c != nil && !c.used {
		t.remove(c)
		b.bytes += c.bytes
		b.after = c.after
		if b.after != nil {
			b.after.before = b
		}
	}
	t.add(b)
}

// replayTorch returns the model's peak of reserved bytes, and the peak of live bytes.
func replayTorch(ops []seqOp) (reserved, live uint64) {
	t := &torch{next: 1 << 40, limit: benchMemory}
	blocks := map[int]*torchBlock{}
	sizes := map[int]uint64{}
	now := uint64(0)
	for _, o := range ops {
		if o.op > 0 {
			blocks[o.op] = t.alloc(o.n)
			sizes[o.op] = o.n
			now += o.n
			live = max(live, now)
		} else {
			t.release(blocks[-o.op])
			now -= sizes[-o.op]
		}
	}
	return t.peak, live
}
