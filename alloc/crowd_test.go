package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

const crowd = 100 // threads

// crowded makes so many threads, of which the first ended have ended, with a full page each. It
// returns one thread more, and the blocks by thread.
func crowded(t *testing.T, ended int) (r *thread, blocks [][]uintptr) {
	t.Helper()
	for i := range crowd {
		h := mustAcquire(t, uintptr(i+1)*8)
		_, list := fullPage(t, h)
		blocks = append(blocks, list)
		h.Thread.Now = 1e9
		if i < ended { // the next one must not adopt it
			defer Abandon(h)
		}
	}
	heaps = 0 // no nursery
	r = &thread{h: mustAcquire(t, (crowd+1)*8), token: (crowd + 1) * 8}
	now := uint64(1e9)
	r.now = func() uint64 { return now }
	return r, blocks
}

// TestRoomOfMany: where a tier is full, a thread looks for room in the heaps of a few others at a
// time, however many there are.
func TestRoomOfMany(t *testing.T) {
	const most = abandonedStep + stealStep
	for _, ended := range []int{0, crowd / 2, crowd} {
		newWorld(t)
		setTiers(func(s *config.Settings) { s.Tiers[config.TierNormal].Hard = crowd * SliceSize })
		r, blocks := crowded(t, ended)
		for _, list := range blocks {
			freeAll(t, r.enter(), list)
		}
		for before := pool.usedBytes; before != 0; before = pool.usedBytes {
			r.enter().Thread.makeRoom(uintptr(config.TierNormal), SliceSize*crowd, false)
			if n := (before - pool.usedBytes) / SliceSize; n == 0 || n > most {
				t.Fatalf("%d of %d threads have ended: pages of %d threads in one step", ended,
					crowd, n)
			}
		}
		sound(t)
	}
}

// TestRoomOfOne: before an allocation fails, every other thread is looked at: there is room as long
// as one of them has some.
func TestRoomOfOne(t *testing.T) {
	for _, onHardcap := range []uint32{config.HardcapFail, config.HardcapRouteSlow} {
		for _, who := range []int{0, 1, crowd / 2, crowd/2 + 1, crowd - 1} {
			newWorld(t)
			setTiers(func(s *config.Settings) {
				s.OnHardcap = onHardcap
				s.Tiers[config.TierNormal].Hard = crowd * SliceSize
				s.Tiers[config.TierSlow].Hard = SliceSize / 2 // so that a page finds no place there
			})
			r, blocks := crowded(t, crowd/2)
			freeAll(t, r.enter(), blocks[who])
			used := pool.usedBytes
			if b, _ := r.malloc(5000); b == 0 || pool.usedBytes != used {
				t.Errorf(
					"thread %d of %d has an empty page: a block at %#x, %d bytes in use, then %d",
					who,
					crowd,
					b,
					used,
					pool.usedBytes,
				)
			}
			if b, _ := r.malloc(4000); b != 0 && Lookup(b).Class != uint32(sizeclass.Of(5000)) {
				t.Error("there was room for one page more")
			}
			sound(t)
		}
	}
}

// TestTickOfMany: what others have freed into the heaps of threads that ended comes back a little
// at a time, and all of it.
func TestTickOfMany(t *testing.T) {
	newWorld(t)
	r, blocks := crowded(t, crowd)
	for _, list := range blocks {
		freeAll(t, r.enter(), list)
	}
	now := uint64(1e9) + collectEvery()
	r.now = func() uint64 { return now }
	for left := uintptr(crowd); left != 0; {
		r.enter().Thread.tick()
		n := pool.usedBytes / SliceSize
		if left-n > abandonedStep || n >= left {
			t.Fatalf("%d pages were in use, %d are after one step", left, n)
		}
		left = n
	}
	sound(t)
	if abandoned.with.n != 0 || abandoned.without.n != crowd {
		t.Errorf("%d threads are looked at, %d are not", abandoned.with.n, abandoned.without.n)
	}
}

// TestMigrateInVain: after a look at spans none of which can move, the next steps do not look again
// until one is put to use or time has passed.
func TestMigrateInVain(t *testing.T) {
	newWorld(t)
	setTiers(func(s *config.Settings) {
		s.OnSoftcap = config.SoftcapDemote
		s.Tiers[config.TierNormal].Soft = SliceSize
	})
	now := raw.Clock(raw.ClockMono)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return now }}
	pages := []*Page{}
	for _, n := range []uintptr{16, 32, 48, 64, 80} { // a current page each
		b, _ := r.malloc(n)
		pages = append(pages, Lookup(b))
	}
	if pool.settled == 0 {
		t.Fatal("the last page has not led to a look")
	}
	l := &pool.aged[pages[0].list]
	first := l.head
	for range 3 {
		r.enter().Thread.migrate()
		if l.head != first {
			t.Fatal("the spans are looked at again")
		}
	}
	for _, p := range pages {
		if p.placement != config.TierNormal {
			t.Fatal("a current page has moved")
		}
	}
	r.h.setFull(pages[0])
	now += migrateAgain
	r.enter().Thread.migrate()
	if pages[0].placement != config.TierSlow {
		t.Error("a page that is full stays")
	}
}
