package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
)

// run follows a thread for a time: its notes take so many nanoseconds each, and at level 0 it
// allocates so long between two. It returns the time in notes.
func (l *thinning) run(t *testing.T, now *uint64, note, between, time uint64) (notes uint64) {
	for end := *now + time; *now < end; {
		*now += between << l.level
		l.note(*now, *now+note)
		*now += note
		notes += note
		if d := max(l.debt, -l.debt); d > thinShare*thinAfter || l.level > thinMost {
			t.Fatalf("level %d, debt %d", l.level, l.debt)
		}
	}
	return notes
}

// TestThinning: notes take their share of the time at most, but for what may come before each step;
// where they take less, and after a rest, samples are not thinned.
func TestThinning(t *testing.T) {
	const second = uint64(1e9)
	for _, c := range []struct {
		note, between uint64
		level         uint8 // in the long run, or one above or below
	}{
		{600, 300, 9}, {5000, 10_000, 7}, {5000, 250_000, 2}, {10_000, 10 * 1e6, 0},
		{1_000_000, 1000, thinMost},
	} {
		var l thinning
		now := second
		l.run(t, &now, c.note, c.between, 10*second)
		notes := l.run(t, &now, c.note, c.between, 100*second)
		if l.level > c.level+1 || l.level+1 < c.level {
			t.Errorf("%+v: level %d", c, l.level)
		}
		// between two levels the time in notes is that of the lower one half of the time
		if most := 100 * second / thinShare * 2; notes > most && l.level < thinMost {
			t.Errorf("%+v: %d ns in notes, more than %d", c, notes, most)
		}
		for range int(thinMost) {
			now += second
			l.note(now, now+c.note)
		}
		if l.level != 0 && c.note < 1e6 {
			t.Errorf("%+v: after a rest the level is %d", c, l.level)
		}
	}
	var l thinning
	now := second
	if l.run(t, &now, 5000, 5000, 1e6); l.level != 0 {
		t.Errorf("a short program was thinned to level %d", l.level)
	}
	l, now = thinning{}, second
	notes, most := uint64(0), thinAfter*(1+(thinMost-1)/4.0)
	for ; l.level < thinMost; notes += 5000 {
		l.note(now, now+5000)
		now += 5100
	}
	if float64(notes) > 1.05*most {
		t.Errorf("%d ns in notes before samples are thinned most, not %.0f", notes, most)
	}
	l.note(now-5, now-10) // another processor's clock
	l.note(0, ^uint64(0))
}

// TestThinnedDraws: a sample counts by the level at which it was drawn, not that of its time.
func TestThinnedDraws(t *testing.T) {
	profiledWorld(t, 64<<10)
	Thinning = true
	defer func() { Thinning = false }()
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	sampled := func(n uintptr) uint8 {
		for {
			b, _ := r.malloc(n)
			was := r.h.Thread.Sampled
			r.h.Thread.Sampled = 0
			r.free(b)
			if was != 0 {
				return r.h.Thread.sampledLevel
			}
		}
	}
	for _, n := range []uintptr{40, 3000, 2 * sizeclass.MaxSize} {
		r.h.Rations.thinning.level = 0
		sampled(n)
		for level := range uint8(4) {
			r.h.Rations.thinning.level = level
			if level != 0 {
				if got := sampled(n); got != level-1 {
					t.Errorf("%d bytes: level %d, drawn at %d", n, got, level-1)
				}
			}
			sampled(n)
		}
	}
}
