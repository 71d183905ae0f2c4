package cudahook

import "testing"

const checkEvery = 16

// work launches on a block where the program may.
func (w *world) work() {
	if len(w.blocks) == 0 || w.capture {
		return
	}
	b := w.blocks[w.rng.IntN(len(w.blocks))]
	c, s := b.context, b.stream
	switch {
	case b.plain:
		s = w.streams[c][w.rng.IntN(4)]
		if w.rng.IntN(4) == 0 {
			for _, o := range contexts {
				if w.f.peers[[2]uint64{o, c}] {
					c, s = o, w.streams[o][w.rng.IntN(4)]
				}
			}
		}
	case len(b.recorded) > 0 && w.rng.IntN(2) == 0:
		k := b.recorded[w.rng.IntN(len(b.recorded))]
		c, s = k.context, k.stream
	}
	if s != ^uint64(0) {
		w.f.launch(c, s, b.address, b.bytes, 0)
	}
}

func (w *world) round() error {
	l := w.lanes[w.rng.IntN(len(w.lanes))]
	w.steps++
	var err error
	switch {
	case l.busy:
		err = w.step(l)
	default:
		err = w.begin(l)
	}
	if err != nil {
		return err
	}
	if w.rng.IntN(3) == 0 {
		w.work()
	}
	if w.rng.IntN(w.pace) == 0 {
		for _, s := range w.f.inOrder() {
			if s.done < len(s.items) && w.rng.IntN(3) == 0 {
				w.f.complete(s, s.done+1+w.rng.IntN(len(s.items)-s.done))
			}
		}
	}
	if w.steps%checkEvery == 0 {
		return checkAll(w.f, false)
	}
	return nil
}

// settle ends what is under way.
func (w *world) makeReusable() error {
	for _, l := range w.lanes {
		for l.busy {
			if err := w.step(l); err != nil {
				return err
			}
		}
	}
	return checkAll(w.f, !w.failing)
}

func runWorld(t *testing.T, w *world, rounds int) {
	t.Helper()
	for i := range rounds {
		if err := w.round(); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	if err := w.makeReusable(); err != nil {
		t.Fatal(err)
	}
}
