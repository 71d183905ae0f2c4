package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/pystack"
	"tieralloc/internal/raw"
)

// A snapshot (TA_CUDA_SNAPSHOT) is a text of what the device heaps hold. Its lines begin with a
// word, and numbers follow it:
//
//	device   ordinal, bytes, hard cap (0: none), bytes reserved
//	heap     device, context, bytes of its blocks by state: live, cached by streams and for all
//	         streams, of private pools, pending, held, lost; bytes of segments on the device
//	segment  address, bytes, kind (small, large, whole), grows or fixed, device or host, pool
//	block    address, bytes, bytes asked for, state (used, free, pending, held, lost), stream;
//	         the blocks of a segment follow it in the order of their addresses
//	foreign  address, bytes, bytes asked for: an allocation of the driver's own
//	frame    line, function, file, of Python; control characters, spaces and % are %XX
//	call     number of the call that it was made from, number of its frame; both count from 1
//	event    device, time, kind, address, bytes, stream, thread, number of the innermost call of
//	         its Python stack (0: none); in their order
//
// A stream is - where the memory belongs to none. Package process writes the lines around these.

// refusal is 1 from a refused request until its snapshot is written.
var refusal uint32

// noteRefusal asks for a snapshot if the request was refused for lack of memory.
func noteRefusal(r *Request) {
	if r.Result == ErrorOutOfMemory &&
		(r.Op == OpAlloc || r.Op == OpStreamAlloc || r.Op == OpForeign) {
		atomic.StoreUint32(&refusal, 1)
	}
}

// RefusalDue reports whether a request was refused since SnapshotTaken.
func RefusalDue() bool { return atomic.LoadUint32(&refusal) != 0 }

// SnapshotTaken forgets the refusals so far.
func SnapshotTaken() { atomic.StoreUint32(&refusal, 0) }

// InUse reports whether the process uses a device.
func InUse() bool {
	return atomic.LoadUint64(&heapsUsed) != 0 && atomic.LoadUint32(&off) == 0
}

// picture is a snapshot that is being written: a buffer, as that of History, and the length so far.
type picture struct {
	buf, n, size uintptr
	token        uintptr
}

// Snapshot writes a snapshot to buf, at most n bytes, and returns the length of the whole. It
// returns 0 in a signal handler that interrupted the holder of a lock that it needs. Each heap is
// written as a whole, and then the events, which may be a few more.
func Snapshot(token, buf, n uintptr) (size uintptr) {
	p := picture{buf: buf, n: n, token: token}
	for i := range devices {
		if d := &devices[i]; atomic.LoadUint64(&d.memory) != 0 {
			p.device(d, uint64(i))
		}
	}
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) == 0 {
			continue
		}
		if !h.lock.Take(token) {
			return 0
		}
		if h.context != 0 {
			p.heap(h)
		}
		h.lock.Release()
	}
	if !p.events() {
		return 0
	}
	return p.size
}

// end writes the line.
func (p *picture) end(l *raw.Line) { p.size = l.Copy(p.buf, p.size, p.n) }

func number(l *raw.Line, n uint64) {
	l.Text(" ")
	l.Dec(n)
}

func (p *picture) device(d *device, ordinal uint64) {
	var l raw.Line
	l.Text("device")
	number(&l, ordinal)
	number(&l, d.memory)
	number(&l, cap0(d.hard))
	number(&l, atomic.LoadUint64(&d.reserved))
	p.end(&l)
}

// heap writes a heap. Precondition: its lock is held.
func (p *picture) heap(h *heap) {
	var l raw.Line
	s := &h.count.side[0]
	l.Text("heap")
	number(&l, h.ordinal)
	number(&l, h.context)
	number(&l, s.live)
	number(&l, s.local)
	number(&l, s.global)
	number(&l, s.private)
	number(&l, s.pending)
	number(&l, s.held)
	number(&l, s.lost)
	number(&l, h.count.reserved)
	p.end(&l)
	for i := uintptr(0); i < h.index.n; i++ {
		if s := h.index.at(i); s.first != nil {
			p.segment(s)
		}
	}
	for i := uintptr(0); h.table.base != 0 && i <= h.table.mask; i++ {
		if e := h.table.at(i); e.key != 0 && e.block.state == stateForeign {
			p.foreign(e.block)
		}
	}
}

func (p *picture) segment(s *segment) {
	var l raw.Line
	l.Text("segment")
	number(&l, s.address)
	number(&l, s.bytes)
	switch s.kind {
	case kindSmall:
		l.Text(" small")
	case kindLarge:
		l.Text(" large")
	default:
		l.Text(" whole")
	}
	if s.addresses != nil {
		l.Text(" grows")
	} else {
		l.Text(" fixed")
	}
	if s.pool.spilled != 0 {
		l.Text(" host")
	} else {
		l.Text(" device")
	}
	number(&l, s.pool.id0)
	number(&l, s.pool.id1)
	p.end(&l)
	for b := s.first; b != nil; b = b.after {
		l.Clear()
		b.format(&l)
		p.end(&l)
	}
}

func (b *block) format(l *raw.Line) {
	l.Text("block")
	number(l, b.address)
	number(l, b.bytes)
	number(l, b.asked)
	switch b.state {
	case stateInUse:
		l.Text(" used")
	case stateExact, stateFree:
		l.Text(" free")
	case stateHeld:
		l.Text(" held")
	case stateLost:
		l.Text(" lost")
	default:
		l.Text(" pending")
	}
	if b.cache == nil || b.cache.stream == streamEvery {
		l.Text(" -")
		return
	}
	number(l, b.cache.stream)
}

func (p *picture) foreign(b *block) {
	var l raw.Line
	l.Text("foreign")
	number(&l, b.address)
	number(&l, b.bytes)
	number(&l, b.asked)
	p.end(&l)
}

// stacks writes the Python stacks of the events. Precondition: history.lock is held.
func (p *picture) stacks() {
	t := history.stacks
	if t == nil {
		return
	}
	for i := uint32(1); i <= t.Frames(); i++ {
		f, line := t.Frame(i)
		p.word("frame ")
		var d raw.Digits
		for i := d.Decimal(uint64(line)); i < uintptr(len(d)); i++ {
			p.put(d[i&31])
		}
		p.name(t, f.Name)
		p.name(t, f.File)
		p.put('\n')
	}
	var l raw.Line
	for i := uint32(1); i <= t.Calls(); i++ {
		caller, frame := t.Call(i)
		l.Clear()
		l.Text("call")
		number(&l, uint64(caller))
		number(&l, uint64(frame))
		p.end(&l)
	}
}

func (p *picture) put(c byte) {
	if p.size < p.n {
		raw.StoreByte(p.buf+p.size, c)
	}
	p.size++
}

func (p *picture) word(s string) {
	for i := range len(s) {
		p.put(s[i])
	}
}

// name writes a field with a text of Python's, which may be longer than a raw.Line.
func (p *picture) name(t *pystack.Table, s pystack.Text) {
	p.put(' ')
	if s.N == 0 {
		p.put('?')
	}
	for i := range s.N {
		c := t.Byte(s, i)
		if c > ' ' && c != '%' && c != 0x7f {
			p.put(c)
			continue
		}
		p.put('%')
		p.put(hexDigit(c >> 4))
		p.put(hexDigit(c & 15))
	}
}

func hexDigit(c byte) byte {
	if c < 10 {
		return '0' + c
	}
	return 'a' + c - 10
}

// events writes the history of all devices.
func (p *picture) events() bool {
	if !history.lock.Take(p.token) {
		return false
	}
	i := uint64(0)
	if history.next > historyMax {
		i = history.next - historyMax
	}
	p.stacks()
	var l raw.Line
	for ; history.base != 0 && i < history.next; i++ {
		e := eventAt(i)
		if i < devices[e.device&(deviceMax-1)].recordedFrom {
			continue
		}
		l.Clear()
		e.picture(&l)
		p.end(&l)
	}
	history.lock.Release()
	return true
}

// picture writes the event as a line of a snapshot.
func (e *event) picture(l *raw.Line) {
	l.Text("event")
	number(l, e.device)
	number(l, e.time)
	switch e.kind {
	case traceAllocate:
		l.Text(" alloc")
	case traceRefused:
		l.Text(" refused")
	case traceFree:
		l.Text(" free")
	case traceMap:
		l.Text(" map")
	case traceUnmap:
		l.Text(" unmap")
	case traceExpand:
		l.Text(" expand")
	default:
		l.Text(" shrink")
	}
	number(l, e.address)
	number(l, e.bytes)
	number(l, e.stream)
	number(l, e.thread)
	number(l, e.call)
}
