package cudahook

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tieralloc/internal/config"
)

// world is a program: what it has, and its requests under way, which advance one step at a
// time in any order.
type world struct {
	f       *fake
	rng     *rand.Rand
	blocks  []*liveBlock
	streams map[uint64][]uint64 // by context
	lanes   []*lane
	capture bool
	pool    uint64
	steps   int
	failing bool

	taken, given, ended int // calls without a request; contexts
	hosted              int // blocks on the host, of managed memory

	pace int // the streams finish some of their work in one of so many rounds
}

type liveBlock struct {
	address, n, bytes, context, stream uint64
	plain                              bool
	recorded                           []streamKey
}

// lane is a thread of the program.
type lane struct {
	r     *Request
	busy  bool
	what  *liveBlock // that it works on
	also  streamKey  // op "record": where it will be in use
	op    string
	graph bool // a pool was begun while it was served
}

var contexts = []uint64{0xc1, 0xc2, 0xc3} // two on device 0, one on device 1

func newWorld(t testing.TB, seed uint64, set func(*config.CUDA)) *world {
	fresh(t, set)
	w := &world{f: newFake(t, seed), rng: rand.New(rand.NewPCG(seed, 2)),
		streams: map[uint64][]uint64{}, pace: 6 + int(seed%2)*80}
	w.f.addContext(0xc1, 0, 300<<20)
	w.f.addContext(0xc2, 0, 300<<20)
	w.f.addContext(0xc3, 1, 200<<20)
	for _, c := range contexts {
		w.streams[c] = []uint64{0, c<<8 | 1, c<<8 | 2, c<<8 | 3}
	}
	for i := range 4 {
		w.lanes = append(w.lanes, &lane{r: newRequest(uint64(i+1) * 8)})
	}
	return w
}

func (w *world) size() uint64 {
	switch w.rng.IntN(5) {
	case 0:
		return 1 + uint64(w.rng.IntN(4096))
	case 1:
		return 1 + uint64(w.rng.IntN(1<<20))
	case 2:
		return []uint64{512, 4096, 1<<20 - 1, 1 << 20, 2 << 20, 4 << 20, 10 << 20}[w.rng.IntN(7)]
	default:
		return 1 + uint64(w.rng.Int64N(1<<(10+w.rng.IntN(15))))
	}
}

func (w *world) context() uint64 {
	if w.rng.IntN(4) != 0 {
		return contexts[0]
	}
	return contexts[w.rng.IntN(len(contexts))]
}

func (w *world) aStream(c uint64) uint64 {
	s := w.streams[c]
	if w.rng.IntN(40) == 0 {
		return streamPerThread
	}
	return s[w.rng.IntN(len(s))]
}

// begin starts something on a lane.
func (w *world) begin(l *lane) error {
	r := l.r
	*r = Request{Token: r.Token}
	l.what, l.op, l.graph = nil, "", false
	c := w.context()
	r.Context = c
	switch n := w.rng.IntN(100); {
	case n < 18:
		l.op, r.Op, r.Bytes = "alloc", OpAlloc, w.size()
	case n < 43:
		l.op, r.Op, r.Bytes, r.Stream = "stream alloc", OpStreamAlloc, w.size(), w.aStream(c)
	case n < 74 && len(w.blocks) > 0:
		w.beginFree(l)
	case n < 84 && len(w.blocks) > 0:
		i := w.rng.IntN(len(w.blocks))
		b := w.blocks[i]
		if b.stream == ^uint64(0) || b.plain {
			return nil
		}
		of := b.context
		if w.rng.IntN(4) == 0 {
			of = w.context()
		}
		s := w.aStream(of)
		if s == streamPerThread {
			return nil
		}
		// nobody frees it, or works with it there, before that is done
		w.blocks = append(w.blocks[:i], w.blocks[i+1:]...)
		l.what, l.also = b, streamKey{of, s}
		l.op, r.Op, r.Address, r.Stream, r.Context = "record", OpRecord, b.address, s, of
	case n < 85:
		return w.endOfContext(l)
	case n < 86:
		l.op, r.Op, r.Bytes = "foreign", OpForeign, w.size()
	case n < 88:
		l.op, r.Op, r.Bytes = "trim", OpTrim, uint64(w.rng.IntN(64<<20))
	case n < 89:
		l.op, r.Op = "coalesce", OpCoalesce
	case n < 90:
		l.op, r.Op, r.Bytes, r.Count, r.Hint = "warmup", OpWarmup, w.size(), uint64(w.rng.IntN(4)),
			uint64(w.rng.IntN(2))
	case n < 91:
		return w.endStream(l, c)
	case n < 93:
		if !w.capture && w.rng.IntN(4) != 0 {
			return nil
		}
		w.capture = !w.capture
		l.op, r.Op = "capture", OpCapture
		if w.capture {
			r.Count = 1
		}
	case n < 94:
		w.beginPool(l)
	case n < 96 && len(w.blocks) > 0:
		b := w.blocks[w.rng.IntN(len(w.blocks))]
		l.op, r.Op, r.Address = "range", OpRange, b.address+w.rng.Uint64N(b.n)
		l.what = b
	default:
		l.op, r.Op, r.Value, r.Extra = "info", OpInfo,
			w.f.memory[w.f.device[c]]-w.f.used[w.f.device[c]], w.f.memory[w.f.device[c]]
	}
	if settings.managed && (r.Op == OpAlloc || r.Op == OpStreamAlloc) {
		r.Hint = 1 + w.rng.Uint64N(uint64(config.HintCount))
		if w.rng.IntN(4) == 0 {
			r.Hint = 0
		}
	}
	l.busy = true
	return nil
}

func (w *world) beginFree(l *lane) {
	i := w.rng.IntN(len(w.blocks))
	b := w.blocks[i]
	w.blocks = append(w.blocks[:i], w.blocks[i+1:]...)
	r := l.r
	r.Address, r.Context = b.address, b.context
	if w.rng.IntN(10) == 0 {
		r.Context = w.context() // any context may be current
	}
	l.what = b
	l.op, r.Op = "free", OpFree
	if !b.plain && w.rng.IntN(8) != 0 {
		r.Context = b.context
		l.op, r.Op, r.Stream = "stream free", OpStreamFree, b.stream
	}
}

func (w *world) beginPool(l *lane) {
	r := l.r
	r.Context = contexts[0]
	l.op, r.Op = "pool", OpPool
	r.Address, r.Bytes = 1+w.rng.Uint64N(3), 7
	switch {
	case w.rng.IntN(3) == 0:
		r.Count = 2
	case w.pool == 0:
		w.pool = r.Address
		r.Count = 1
	default:
		r.Address, w.pool = w.pool, 0
	}
}

// endStream destroys a stream of which nobody is about to use anything.
func (w *world) endStream(l *lane, c uint64) error {
	for _, o := range w.lanes {
		if o.busy {
			return nil
		}
	}
	s := w.streams[c]
	i := 1 + w.rng.IntN(len(s)-1)
	old := s[i]
	r := l.r
	l.op, r.Op, r.Stream = "stream end", OpStreamEnd, old
	l.busy = true
	for l.busy {
		if err := w.step(l); err != nil {
			return err
		}
	}
	// The same handle names another stream from now on; the old one's work goes on.
	k := streamKey{c, old}
	if gone := w.f.streams[k]; gone != nil {
		w.f.handles++
		to := streamKey{c, 1<<40 | w.f.handles}
		w.f.rename(k, to)
	}
	for _, b := range w.blocks {
		if b.context == c && b.stream == old {
			b.stream = ^uint64(0)
		}
		for j := range b.recorded {
			if b.recorded[j] == k {
				b.recorded[j].stream = ^uint64(0)
			}
		}
	}
	return nil
}

func (f *fake) rename(from, to streamKey) {
	s := f.streams[from]
	delete(f.streams, from)
	s.key = to
	f.streams[to] = s
	swap := func(c clock) {
		if v, ok := c[from]; ok {
			delete(c, from)
			c[to] = v
		}
	}
	for _, o := range f.streams {
		swap(o.clock)
		for i := o.done; i < len(o.items); i++ {
			if o.items[i].need != nil {
				swap(o.items[i].need)
			}
		}
	}
	for _, e := range f.events {
		if e.snap != nil {
			swap(e.snap)
		}
	}
}

// step advances a lane by one step.
func (w *world) step(l *lane) error {
	w.f.now += uint64(w.rng.IntN(2e6))
	if w.rng.IntN(2000) == 0 {
		w.f.now += decay
	}
	l.r.Now = w.f.now
	if h := heapOf(l.r.Context); h != nil && h.active != nil {
		l.graph = true
	}
	if done, err := w.withoutRequest(l); done {
		return err
	}
	action := Step(l.r)
	if action > ActPass {
		w.f.act(l.r, action)
		return nil
	}
	l.busy = false
	return w.finish(l, action)
}

func (w *world) finish(l *lane, action Action) error {
	r := l.r
	switch l.op {
	case "alloc", "stream alloc", "foreign":
		if action != ActDone {
			return fmt.Errorf("%s of %d: action %d", l.op, r.Bytes, action)
		}
		if r.Result != Success {
			if r.Result != ErrorOutOfMemory && !w.failing {
				return fmt.Errorf("%s of %d: result %d", l.op, r.Bytes, r.Result)
			}
			return nil
		}
		if l.op != "foreign" && settings.managed && !w.failing {
			if err := w.placed(l); err != nil {
				return err
			}
		}
		b := &liveBlock{address: r.Address, n: r.Bytes, bytes: rounded(r.Bytes), context: r.Context,
			stream: r.Stream, plain: r.Op != OpStreamAlloc}
		return w.received(b)
	case "free", "stream free":
		if action != ActDone || r.Result != Success && !w.failing {
			return fmt.Errorf("%s of %#x: action %d, result %d", l.op, r.Address, action, r.Result)
		}
	case "record":
		w.blocks = append(w.blocks, l.what)
		switch {
		case r.Result == Success:
			l.what.recorded = append(l.what.recorded, l.also)
		case !w.failing:
			return fmt.Errorf("record of %#x: action %d, result %d", r.Address, action, r.Result)
		}
	case "range":
		for _, b := range w.blocks {
			if b == l.what && action == ActDone &&
				(r.Value != b.address || r.Extra != b.n || r.Result != Success) {
				return fmt.Errorf("range of %#x in block %#x of %d: %#x, %d, %d", r.Address,
					b.address, b.n, r.Value, r.Extra, r.Result)
			}
		}
	}
	return nil
}

// placed checks that a block lies where its hint says. Those of the driver's own have no
// segment.
func (w *world) placed(l *lane) error {
	r := l.r
	hint := uint32(config.HintWarm)
	if r.Hint != 0 {
		hint = uint32(r.Hint - 1)
	}
	b := heapOf(r.Context).table.find(r.Address)
	if b.segment == nil {
		return nil
	}
	a, _ := w.f.covering(r.Address, 1)
	host := b.segment.pool.spilled != 0
	switch {
	case !a.managed || a.prefers == host:
		return fmt.Errorf("%s: block %#x is managed: %v, prefers the device: %v, is spilled: %v",
			l.op, r.Address, a.managed, a.prefers, host)
	case host && (hint == config.HintHot || hint == config.HintPinFast ||
		hint != config.HintCold && !settings.spill):
		return fmt.Errorf("%s: block %#x with hint %d is on the host", l.op, r.Address, hint)
	case !host && hint == config.HintCold && !l.graph && settings.spillHard == manyBytes:
		return fmt.Errorf("%s: cold block %#x is on the device", l.op, r.Address)
	}
	w.hosted += int(flag(host))
	return nil
}

// received takes a block into the model: nobody has any part of it, and nobody works
// with it who is not ordered before its user.
func (w *world) received(b *liveBlock) error {
	a, ok := w.f.covering(b.address, b.bytes)
	if !ok {
		return fmt.Errorf("%d bytes at %#x are not mapped", b.bytes, b.address)
	}
	if a.device != w.f.device[b.context] {
		return fmt.Errorf("%#x is on device %d", b.address, a.device)
	}
	for _, o := range w.blocks {
		if o.address < b.address+b.bytes && b.address < o.address+o.bytes {
			return fmt.Errorf("%#x (%d) overlaps %#x (%d)", b.address, b.bytes, o.address, o.bytes)
		}
	}
	user := streamKey{}
	if !b.plain && b.stream != streamPerThread {
		user = streamKey{b.context, ordered(b.stream)}
	}
	if err := w.f.unfinished(b.address, b.bytes, user); err != nil {
		return fmt.Errorf("block %#x for %v: %w", b.address, user, err)
	}
	w.blocks = append(w.blocks, b)
	return nil
}
