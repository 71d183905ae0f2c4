package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/stats/live"
)

// snapshotMax is above the length of any snapshot of the library.
const snapshotMax = 4 << 30

// A memorySnapshot is what the device heaps of a process held, as cudahook/snapshot.go has it.
type memorySnapshot struct {
	path       string
	pid        uint64
	mono, unix uint64 // nanoseconds, at the same time
	devices    []snapshotDevice
	frames     []snapshotFrame // number n is at n-1
	calls      []snapshotCall  // number n is at n-1
}

// A snapshotFrame is a place in a Python program.
type snapshotFrame struct {
	line       uint64
	name, file string
}

// A snapshotCall is the call of a frame, by their numbers. A caller has a lower number than what it
// calls; 0 is none.
type snapshotCall struct{ caller, frame uint64 }

// snapshotDevice is the part of a device. Each number is checked to fit in 63 bits.
type snapshotDevice struct {
	known           bool
	memory          uint64
	hard            uint64 // 0: no cap
	reserved        uint64
	live, cached    uint64 // of all heaps
	segments        []snapshotSegment
	events          []snapshotEvent
	spilled, onHost uint64 // segments on the host, and their bytes: left out
}

type snapshotSegment struct {
	address, bytes uint64
	kind           string // small, large, whole, or foreign
	grows          bool
	pool           [2]uint64
	blocks         []snapshotBlock
	call           uint64 // that mapped it; 0: unknown
}

type snapshotBlock struct {
	address, bytes, asked uint64
	state                 string
	stream                uint64
	hasStream             bool
	call                  uint64 // that allocated it; 0: unknown
}

type snapshotEvent struct {
	time                   uint64 // monotonic, nanoseconds
	kind                   string
	address, bytes, stream uint64
	call                   uint64 // innermost of its stack; 0: none
}

// snapshotDevices is above the number of devices that the library serves.
const snapshotDevices = 64

// readSnapshot reads a snapshot.
func readSnapshot(path string) (*memorySnapshot, error) {
	file, err := live.OpenRegular(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readAtMost(file, snapshotMax)
	if err != nil {
		return nil, fmt.Errorf("%s: not a snapshot: %w", path, err)
	}
	s, err := decodeSnapshot(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.path = path
	return s, nil
}

const snapshotMagic = "tieralloc snapshot "

// decodeSnapshot decodes a snapshot and checks that its parts fit together.
func decodeSnapshot(data []byte) (*memorySnapshot, error) {
	if !bytes.HasPrefix(data, []byte(snapshotMagic)) {
		return nil, errors.New("not a snapshot of device memory, as TA_CUDA_SNAPSHOT=FILE " +
			"writes it")
	}
	d := snapshotDecoder{s: new(memorySnapshot), device: -1}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		if d.ended {
			d.err = errors.New("there is more after its end")
		} else {
			d.fields = strings.Fields(line)
			d.line()
		}
		if d.err != nil {
			return nil, fmt.Errorf("damaged snapshot: line %d: %w", n, d.err)
		}
	}
	if !d.ended {
		return nil, errors.New("damaged snapshot: its end is missing")
	}
	return d.s, d.s.check()
}

// A snapshotDecoder decodes lines. Its error is the first one.
type snapshotDecoder struct {
	s      *memorySnapshot
	fields []string
	device int              // of the heap; -1: none yet
	into   *snapshotSegment // that blocks belong to
	skips  bool             // they belong to one on the host
	first  bool             // version 1, which has no stacks
	ended  bool
	err    error
}

// next takes the next field.
func (d *snapshotDecoder) next() string {
	if len(d.fields) == 0 {
		d.fail("a field is missing")
		return ""
	}
	field := d.fields[0]
	d.fields = d.fields[1:]
	return field
}

func (d *snapshotDecoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

func (d *snapshotDecoder) number() uint64 {
	field := d.next()
	n, err := strconv.ParseUint(field, 10, 64)
	if err != nil && d.err == nil {
		d.fail("%q: expected a number", field)
	}
	return n
}

// bytes is number for an address or a number of bytes, whose sums must not overflow.
func (d *snapshotDecoder) bytes() uint64 {
	n := d.number()
	if n > math.MaxInt64/2 {
		d.fail("%d: no memory is so large", n)
	}
	return n
}

// below is number for something that there are n of, which count from 1. 0 is none.
func (d *snapshotDecoder) below(n int) uint64 {
	i := d.number()
	if i > uint64(n) {
		d.fail("%d: there are only %d so far", i, n)
		return 0
	}
	return i
}

// text takes a field with characters that are %XX. PyTorch's formats are UTF-8.
func (d *snapshotDecoder) text() string {
	field := d.next()
	s, err := url.PathUnescape(field)
	if err != nil {
		d.fail("%q: %w", field, err)
	}
	return strings.ToValidUTF8(s, "?")
}

func (d *snapshotDecoder) word(words ...string) string {
	field := d.next()
	if d.err == nil && !slices.Contains(words, field) {
		d.fail("%q: expected %s", field, strings.Join(words, ", "))
	}
	return field
}

// ordinal takes the number of a device, and returns the device.
func (d *snapshotDecoder) ordinal() *snapshotDevice {
	n := d.number()
	if n >= snapshotDevices {
		d.fail("device %d: expected a number below %d", n, snapshotDevices)
		return &snapshotDevice{}
	}
	for uint64(len(d.s.devices)) <= n {
		d.s.devices = append(d.s.devices, snapshotDevice{})
	}
	d.device = int(n)
	return &d.s.devices[n]
}

func (d *snapshotDecoder) line() {
	switch first := d.next(); first {
	case "tieralloc":
		d.next()
		version := d.next()
		if d.first = version == "1"; !d.first && version != "2" {
			d.fail("format %q: this tool reads 1 and 2", version)
		}
		d.s.pid, d.s.mono, d.s.unix = d.number(), d.number(), d.number()
	case "device":
		v := d.ordinal()
		v.known, v.memory, v.hard, v.reserved = true, d.bytes(), d.bytes(), d.bytes()
		d.device = -1
	case "heap":
		v := d.ordinal()
		d.number()
		v.live += d.bytes()
		v.cached += d.bytes() + d.bytes()
		d.into, d.fields = nil, nil
	case "segment", "foreign", "block":
		if d.device < 0 {
			d.fail("%s without a heap", first)
			return
		}
		d.memory(first, &d.s.devices[d.device])
	case "frame":
		d.s.frames = append(d.s.frames, snapshotFrame{d.number(), d.text(), d.text()})
	case "call":
		c := snapshotCall{d.below(len(d.s.calls)), d.below(len(d.s.frames))}
		if c.frame == 0 {
			d.fail("a call without a frame")
		}
		d.s.calls = append(d.s.calls, c)
	case "event":
		v := d.ordinal()
		e := snapshotEvent{time: d.number(),
			kind:    d.word("alloc", "refused", "free", "map", "unmap", "expand", "shrink"),
			address: d.bytes(), bytes: d.number(), stream: d.number()}
		d.number()
		if !d.first {
			e.call = d.below(len(d.s.calls))
		}
		v.events = append(v.events, e)
		d.device = -1
	case "end":
		d.ended = true
	default:
		d.fail("%q: expected device, heap, segment, block, foreign, frame, call, event or end",
			first)
	}
	if len(d.fields) != 0 {
		d.fail("%q: expected no more fields", d.fields[0])
	}
}

// memory decodes a segment, a block, or an allocation of the driver's own.
func (d *snapshotDecoder) memory(first string, v *snapshotDevice) {
	address, size := d.bytes(), d.bytes()
	switch first {
	case "segment":
		s := snapshotSegment{address: address, bytes: size,
			kind: d.word("small", "large", "whole"), grows: d.word("grows", "fixed") == "grows"}
		d.skips = d.word("host", "device") == "host"
		s.pool = [2]uint64{d.number(), d.number()}
		if d.skips {
			v.spilled++
			v.onHost += size
			d.into = &s
			return
		}
		v.segments = append(v.segments, s)
		d.into = &v.segments[len(v.segments)-1]
	case "block":
		b := snapshotBlock{address: address, bytes: size, asked: d.bytes(),
			state: d.word("used", "free", "pending", "held", "lost")}
		if b.hasStream = len(d.fields) == 0 || d.fields[0] != "-"; b.hasStream {
			b.stream = d.number()
		} else {
			d.next()
		}
		if d.into == nil {
			d.fail("block without a segment")
			return
		}
		d.into.blocks = append(d.into.blocks, b)
	case "foreign":
		v.segments = append(v.segments, snapshotSegment{address: address, bytes: size,
			kind: "foreign", blocks: []snapshotBlock{{address: address, bytes: size,
				asked: d.bytes(), state: "used"}}})
		d.into = nil
	}
}

// check reports what does not fit together: each segment is covered by its blocks, no two segments
// of a device overlap, and blocks in use have the bytes that the heaps count. (Allocations of the
// driver's own may have handles for addresses.)
func (s *memorySnapshot) check() error {
	for i := range s.devices {
		v := &s.devices[i]
		v.attribute()
		slices.SortFunc(v.segments, func(a, b snapshotSegment) int {
			return cmp.Compare(a.address, b.address)
		})
		end, live := uint64(0), uint64(0)
		for j := range v.segments {
			g := &v.segments[j]
			used, ok := g.covered()
			if !ok || g.kind != "foreign" && g.address < end {
				return fmt.Errorf("damaged snapshot: the segment at %#x does not fit its blocks "+
					"or the segment before it", g.address)
			}
			if g.kind != "foreign" {
				end = g.address + g.bytes
				live += used
			}
		}
		if live != v.live {
			return fmt.Errorf("damaged snapshot: device %d has %d bytes in use, its blocks %d", i,
				v.live, live)
		}
	}
	return nil
}

// attribute finds the calls that the blocks in use, and the segments, come from.
func (v *snapshotDevice) attribute() {
	blocks, segments := map[uint64]uint64{}, map[uint64]uint64{}
	for _, e := range v.events {
		switch e.kind {
		case "alloc":
			blocks[e.address] = e.call
		case "map":
			segments[e.address] = e.call
		}
	}
	for i := range v.segments {
		g := &v.segments[i]
		g.call = segments[g.address]
		for j := range g.blocks {
			if b := &g.blocks[j]; b.state != "free" {
				b.call = blocks[b.address]
			}
		}
	}
}

// covered reports whether the blocks cover the segment, and returns the bytes of those in use.
func (g *snapshotSegment) covered() (used uint64, ok bool) {
	at := g.address
	for _, b := range g.blocks {
		if b.address != at || b.bytes == 0 || b.asked > b.bytes && b.state == "used" {
			return 0, false
		}
		at += b.bytes
		if b.state == "used" {
			used += b.bytes
		}
	}
	return used, at == g.address+g.bytes
}
