package cudahook

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tieralloc/internal/config"
)

// FuzzModel takes the settings and the seed of a random program from the fuzzer.
func FuzzModel(f *testing.F) {
	for i := range uint64(8) {
		f.Add(i, uint8(i*37), uint16(i*1000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, flags uint8, caps uint16) {
		w := newWorld(t, seed, func(c *config.CUDA) {
			c.ReuseEvent, c.SuballocAll, c.Spill, c.Zero = flags&1 != 0, flags&2 != 0, flags&4 != 0,
				flags&8 != 0
			if flags&16 != 0 {
				c.Hard = 20*mib + uint64(caps)*4*kib
			}
			if flags&32 != 0 {
				c.CacheLimit = uint64(caps) * kib
			}
			c.Managed, c.Expandable = caps&1 != 0, caps&2 == 0
			c.Hard = max(c.Hard, c.Soft)
		})
		if flags&64 != 0 {
			w.failing, w.f.failRate = true, 0.03
		}
		w.f.noContext = flags&128 != 0
		runWorld(t, w, 1500)
	})
}

// FuzzTable compares the table with a map.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 1, 2, 3, 255, 254})
	f.Fuzz(func(t *testing.T, ops []byte) {
		fresh(t, nil)
		h := &heaps[0]
		var tab table
		want := map[uint64]*block{}
		for i, o := range ops {
			a := (1 + uint64(o)*uint64(1+i%7)) * granule << (i % 30)
			if b := want[a]; b != nil {
				tab.remove(b)
				delete(want, a)
			} else {
				b := h.newBlock()
				b.address = a
				if !tab.add(b) {
					t.Fatal("no memory")
				}
				want[a] = b
			}
			if tab.find(a) != want[a] {
				t.Fatalf("after operation %d %#x is %p", i, a, tab.find(a))
			}
		}
		for a, b := range want {
			if tab.find(a) != b {
				t.Fatalf("%#x is lost", a)
			}
		}
		if int(tab.used) != len(want) {
			t.Fatalf("%d entries, %d in use", len(want), tab.used)
		}
		tab.clear()
		h.arena.rewind()
	})
}

// TestTableGrows fills a table with addresses that share their homes.
func TestTableGrows(t *testing.T) {
	fresh(t, nil)
	h := &heaps[0]
	var tab table
	var all []*block
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range uint64(30000) {
		b := h.newBlock()
		b.address = (1 + i) * granule
		if i%3 == 0 {
			b.address = (1 + i) << 31
		}
		tab.add(b)
		all = append(all, b)
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, b := range all {
		if tab.find(b.address) != b {
			t.Fatalf("%#x is lost", b.address)
		}
		tab.remove(b)
		if tab.find(b.address) != nil {
			t.Fatalf("%#x is still there", b.address)
		}
		if i%1000 == 0 {
			for _, c := range all[i+1:] {
				if tab.find(c.address) != c {
					t.Fatalf("%#x went with another", c.address)
				}
			}
		}
	}
	tab.clear()
	h.arena.rewind()
}

// TestBins compares the search with the best of all blocks: never too small, and no
// further off than one bin.
func TestBins(t *testing.T) {
	fresh(t, nil)
	h := &heaps[0]
	p := h.newPool(0, 0)
	k := &h.newCache(5, p).bins[0]
	rng := rand.New(rand.NewPCG(2, 2))
	live := map[*block]bool{}
	for i := range 40000 {
		n := rounded(1 + rng.Uint64N(1<<(9+rng.IntN(28))))
		if rng.IntN(2) == 0 || len(live) == 0 {
			b := h.newBlock()
			b.bytes, b.address = n, uint64(i)*granule
			k.add(b)
			live[b] = true
		} else if b := k.find(n, false); b != nil {
			if b.bytes < n || !live[b] {
				t.Fatalf("a block of %d for %d", b.bytes, n)
			}
			k.remove(b)
			delete(live, b)
		}
		if i%100 == 0 {
			if err := bestIs(k, live, n); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func bestIs(k *bins, live map[*block]bool, n uint64) error {
	least := ^uint64(0)
	same := 0
	for b := range live {
		if b.bytes >= n {
			least = min(least, b.bytes)
		}
		if binOf(b.bytes) == binOf(n) {
			same++
		}
	}
	b := k.find(n, false)
	switch {
	case b == nil && least != ^uint64(0) && same <= lookBound:
		return fmt.Errorf("nothing for %d, and there is a block of %d", n, least)
	case b != nil && same <= lookBound && binOf(b.bytes) != binOf(least):
		return fmt.Errorf("a block of %d for %d, and there is one of %d", b.bytes, n, least)
	}
	return nil
}
