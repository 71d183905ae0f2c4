package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/bits"
)

// writePickle writes the snapshot in PyTorch's format, which torch/cuda/_memory_viz.py and the page
// pytorch.org/memory_viz read. Segments on the host are left out.
func (s *memorySnapshot) writePickle(w io.Writer) error {
	type place struct{ device, segment int }
	var segments []place
	traces := make([][]traceEntry, len(s.devices))
	for i := range s.devices {
		traces[i] = s.devices[i].trace()
		for j := range s.devices[i].segments {
			segments = append(segments, place{i, j})
		}
	}
	p := newPickler(w)
	stacks := pickledStacks{s, map[uint64]uint32{}, map[uint64]uint32{}}
	p.dict(func() {
		p.text("segments")
		p.list(len(segments), func(i int) {
			at := segments[i]
			s.devices[at.device].segments[at.segment].pickle(p, at.device, &stacks)
		})
		p.text("device_traces")
		p.list(len(traces), func(i int) {
			p.list(len(traces[i]), func(j int) { traces[i][j].pickle(p, s.unix-s.mono, &stacks) })
		})
		p.text("allocator_settings")
		p.dict(func() {})
	})
	return p.end()
}

func (g *snapshotSegment) pickle(p pickler, device int, stacks *pickledStacks) {
	used, active, asked := uint64(0), uint64(0), uint64(0)
	for _, b := range g.blocks {
		switch b.state {
		case "used":
			used, active, asked = used+b.bytes, active+b.bytes, asked+b.asked
		case "pending", "held", "lost":
			active += b.bytes
		}
	}
	kind := "large"
	if g.kind == "small" {
		kind = "small"
	}
	p.dict(func() {
		p.numberOf("device", uint64(device))
		p.numberOf("address", g.address)
		p.numberOf("total_size", g.bytes)
		p.numberOf("allocated_size", used)
		p.numberOf("active_size", active)
		p.numberOf("requested_size", asked)
		p.numberOf("stream", g.stream())
		p.textOf("segment_type", kind)
		p.text("segment_pool_id")
		p.pair(g.pool[0], g.pool[1])
		p.text("is_expandable")
		p.truth(g.grows)
		stacks.pickle(p, g.call)
		p.text("blocks")
		p.list(len(g.blocks), func(i int) { g.blocks[i].pickle(p, stacks) })
	})
}

// stream returns the one stream of the segment's blocks, or 0, the default one, where there are
// several. The viewer joins growing segments by their streams, so these have all the same.
func (g *snapshotSegment) stream() (stream uint64) {
	found := false
	for _, b := range g.blocks {
		switch {
		case g.grows || b.hasStream && found && b.stream != stream:
			return 0
		case b.hasStream:
			stream, found = b.stream, true
		}
	}
	return stream
}

func (b *snapshotBlock) pickle(p pickler, stacks *pickledStacks) {
	state, asked := "inactive", b.bytes
	switch b.state {
	case "used":
		state, asked = "active_allocated", b.asked
	case "pending", "held", "lost":
		state = "active_pending_free"
	}
	p.dict(func() {
		p.numberOf("address", b.address)
		p.numberOf("size", b.bytes)
		p.numberOf("requested_size", asked)
		p.textOf("state", state)
		stacks.pickle(p, b.call)
	})
}

// pickle writes an event. shift is the time of day less the monotonic time, in nanoseconds.
func (e *traceEntry) pickle(p pickler, shift uint64, stacks *pickledStacks) {
	p.dict(func() {
		p.textOf("action", e.action)
		if e.action == "oom" {
			p.numberOf("device_free", e.free)
		} else {
			p.numberOf("addr", e.address)
		}
		p.numberOf("size", e.bytes)
		p.numberOf("stream", e.stream)
		p.numberOf("time_us", (e.time+shift)/1000)
		stacks.pickle(p, e.call)
	})
}

// pickledStacks knows the stacks and the frames that are in the pickle already, by their numbers.
// There may be a hundred thousand events with deep stacks, so each is written once.
type pickledStacks struct {
	s              *memorySnapshot
	stacks, frames map[uint64]uint32 // numbers in the pickler's memo
}

// pickle writes the entry "frames": the stack of a call, the innermost frame first.
func (k *pickledStacks) pickle(p pickler, call uint64) {
	p.text("frames")
	var frames []uint64
	if at, ok := k.stacks[call]; ok {
		p.again(at)
		return
	}
	for c := call; c != 0; c = k.s.calls[c-1].caller {
		frames = append(frames, k.s.calls[c-1].frame)
	}
	p.list(len(frames), func(i int) { k.frame(p, frames[i]) })
	k.stacks[call] = p.remember()
}

func (k *pickledStacks) frame(p pickler, n uint64) {
	if at, ok := k.frames[n]; ok {
		p.again(at)
		return
	}
	f := &k.s.frames[n-1]
	p.dict(func() {
		p.textOf("name", f.name)
		p.textOf("filename", f.file)
		p.numberOf("line", f.line)
	})
	k.frames[n] = p.remember()
}

// A pickler writes a Python pickle of dictionaries, lists, strings, numbers and truth values. It
// uses only opcodes that the page pytorch.org/memory_viz reads, too, which is why it is no library.
// The first error remains in the writer until Flush.
type pickler struct {
	w    *bufio.Writer
	memo *uint32 // how many objects were remembered
}

func newPickler(w io.Writer) pickler {
	p := pickler{bufio.NewWriter(w), new(uint32)}
	p.op(0x80, 4) // PROTO
	return p
}

func (p pickler) op(bytes ...byte) { _, _ = p.w.Write(bytes) }

// end writes the end, and returns the first error.
func (p pickler) end() error {
	p.op('.') // STOP
	return p.w.Flush()
}

// dict writes a dictionary. items writes its keys and values in turn.
func (p pickler) dict(items func()) {
	p.op('}', '(') // EMPTY_DICT, MARK
	items()
	p.op('u') // SETITEMS
}

// listBatch is how many elements are put into a list at once, as by Python's own pickler.
const listBatch = 1000

// list writes a list of n elements. item writes the i-th.
func (p pickler) list(n int, item func(i int)) {
	p.op(']') // EMPTY_LIST
	for i := 0; i < n; {
		p.op('(') // MARK
		for end := min(n, i+listBatch); i < end; i++ {
			item(i)
		}
		p.op('e') // APPENDS
	}
}

// remember has the object that was written last remembered, and returns its number.
func (p pickler) remember() (n uint32) {
	p.op(0x94) // MEMOIZE
	*p.memo++
	return *p.memo - 1
}

// again writes a remembered object.
func (p pickler) again(n uint32) {
	p.op('j') // LONG_BINGET
	p.op(binary.LittleEndian.AppendUint32(nil, n)...)
}

// pair writes a tuple of two numbers.
func (p pickler) pair(a, b uint64) {
	p.number(a)
	p.number(b)
	p.op(0x86) // TUPLE2
}

func (p pickler) text(s string) {
	p.op('X') // BINUNICODE
	p.op(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))...)
	_, _ = p.w.WriteString(s)
}

func (p pickler) truth(b bool) {
	if b {
		p.op(0x88) // NEWTRUE
		return
	}
	p.op(0x89) // NEWFALSE
}

func (p pickler) number(n uint64) {
	if n < 1<<31 {
		p.op('J') // BININT
		p.op(binary.LittleEndian.AppendUint32(nil, uint32(n))...)
		return
	}
	size := bits.Len64(n)/8 + 1 // with a bit for the sign
	p.op(0x8a, byte(size))      // LONG1
	p.op(append(binary.LittleEndian.AppendUint64(nil, n), 0)[:size]...)
}

// Entries of a dictionary.

func (p pickler) textOf(key, value string)          { p.text(key); p.text(value) }
func (p pickler) numberOf(key string, value uint64) { p.text(key); p.number(value) }
