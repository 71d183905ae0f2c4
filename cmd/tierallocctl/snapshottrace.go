package main

import (
	"slices"
	"sort"
)

// A traceEntry is an event as PyTorch's snapshots have it.
type traceEntry struct {
	action                       string
	address, bytes, stream, time uint64
	free                         uint64 // oom: bytes that the device had left
	call                         uint64 // innermost of its stack; 0: none
}

// A span is a segment at the time of an event.
type span struct {
	address, bytes uint64
	kind           string
	grows          bool
}

func (s span) end() uint64 { return s.address + s.bytes }

// A replay takes the events of a device back, from the snapshot on, the last one first. The viewer
// does so as well, and needs each block in a segment. Events of two threads may have changed places
// in the history, and its beginning is missing: an event that does not fit is left out.
type replay struct {
	spans   []span            // in the order of their addresses
	live    map[uint64]uint64 // bytes of blocks in use, or to be freed, by address
	pending map[uint64]bool   // those to be freed
	foreign map[uint64]uint64 // where allocations of the driver's own are shown
	free    uint64
	entries []traceEntry // the last one first
}

// foreignFrom is an address above those of a device. Foreign allocations that have handles instead
// of addresses are shown there where they would overlap something else.
const foreignFrom = 1 << 56

// trace returns the events of a device, and gives each allocation of the driver's own a place among
// its segments.
func (v *snapshotDevice) trace() []traceEntry {
	r := replay{live: map[uint64]uint64{}, pending: map[uint64]bool{},
		foreign: map[uint64]uint64{}, free: v.room()}
	for _, g := range v.segments {
		if g.kind != "foreign" {
			r.insert(span{g.address, g.bytes, g.kind, g.grows})
		}
	}
	for i := range v.segments {
		g := &v.segments[i]
		if g.kind == "foreign" {
			at := r.place(g.address, g.bytes)
			r.foreign[g.address], r.live[at] = at, g.bytes
			g.address, g.blocks[0].address = at, at
			continue
		}
		for _, b := range g.blocks {
			if b.state != "free" {
				r.live[b.address] = b.bytes
			}
			if b.state == "pending" || b.state == "held" {
				r.pending[b.address] = true
			}
		}
	}
	for _, e := range slices.Backward(v.events) {
		r.undo(e)
	}
	slices.Reverse(r.entries)
	return r.entries
}

// room returns the bytes that the device had left.
func (v *snapshotDevice) room() uint64 {
	most := v.memory
	if v.hard != 0 {
		most = min(most, v.hard)
	}
	return most - min(v.reserved, most)
}

// add adds an entry before those that there are.
func (r *replay) add(e snapshotEvent, action string) {
	entry := traceEntry{action, e.address, e.bytes, e.stream, e.time, 0, e.call}
	switch action {
	case "oom":
		entry.address, entry.free = 0, r.free
	case "segment_alloc", "segment_free", "segment_map", "segment_unmap":
		entry.stream = 0
	}
	r.entries = append(r.entries, entry)
}

func (r *replay) undo(e snapshotEvent) {
	switch e.kind {
	case "refused":
		r.add(e, "oom")
	case "alloc":
		r.undoAlloc(e)
	case "free":
		r.undoFree(e)
	case "map", "expand":
		r.undoMap(e)
	default:
		r.undoUnmap(e)
	}
}

func (r *replay) undoAlloc(e snapshotEvent) {
	at, foreign := r.foreign[e.address]
	if !foreign {
		at = e.address
	}
	bytes, ok := r.live[at]
	if !ok {
		return
	}
	delete(r.live, at)
	original := e.address
	e.address = at
	r.add(e, "alloc")
	if foreign {
		delete(r.foreign, original)
		r.remove(at)
		e.bytes = bytes
		r.add(e, "segment_alloc")
		r.free += bytes
	}
}

func (r *replay) undoFree(e snapshotEvent) {
	if _, foreign := r.foreign[e.address]; foreign || e.bytes == 0 {
		return
	}
	if _, live := r.live[e.address]; live {
		if r.pending[e.address] {
			delete(r.pending, e.address)
			r.add(e, "free_requested")
		}
		return
	}
	i := r.find(e.address)
	if i < 0 || r.spans[i].kind == "foreign" || e.address+e.bytes > r.spans[i].end() {
		at := r.place(e.address, e.bytes)
		r.foreign[e.address] = at
		e.address = at
		r.add(e, "segment_free")
		r.free -= min(e.bytes, r.free)
	}
	r.live[e.address] = e.bytes
	r.add(e, "free_completed")
	r.add(e, "free_requested")
}

func (r *replay) undoMap(e snapshotEvent) {
	i := r.find(e.address)
	if i < 0 || r.spans[i].kind == "foreign" || e.bytes == 0 || r.occupied(e.address, e.bytes) {
		return
	}
	s, end := r.spans[i], e.address+e.bytes
	grows := e.kind == "expand"
	if grows != s.grows || end > s.end() || !grows && (s.address != e.address || s.end() != end) {
		return
	}
	r.spans = slices.Delete(r.spans, i, i+1)
	if s.address < e.address {
		r.insert(span{s.address, e.address - s.address, s.kind, true})
	}
	if end < s.end() {
		r.insert(span{end, s.end() - end, s.kind, true})
	}
	r.add(e, mapAction(grows, "segment_alloc", "segment_map"))
	r.free += e.bytes
}

func (r *replay) undoUnmap(e snapshotEvent) {
	if e.bytes == 0 || r.overlaps(e.address, e.bytes) {
		return
	}
	grows := e.kind == "shrink"
	r.insert(span{e.address, e.bytes, "", grows})
	r.add(e, mapAction(grows, "segment_free", "segment_unmap"))
	r.free -= min(e.bytes, r.free)
}

func mapAction(grows bool, fixed, growing string) string {
	if grows {
		return growing
	}
	return fixed
}

// above returns the index of the first span that begins above an address.
func (r *replay) above(address uint64) int {
	return sort.Search(len(r.spans), func(i int) bool { return r.spans[i].address > address })
}

// find returns the index of the span that an address is in, or -1.
func (r *replay) find(address uint64) int {
	i := r.above(address) - 1
	if i >= 0 && address < r.spans[i].end() {
		return i
	}
	return -1
}

// overlaps reports whether some bytes are partly in a span.
func (r *replay) overlaps(address, bytes uint64) bool {
	i := r.above(address)
	return r.find(address) >= 0 || i < len(r.spans) && r.spans[i].address < address+bytes
}

// occupied reports whether a block lies in some bytes.
func (r *replay) occupied(address, bytes uint64) bool {
	for at, n := range r.live {
		if at < address+bytes && address < at+n {
			return true
		}
	}
	return false
}

// insert adds a span, and joins it with growing ones beside it.
func (r *replay) insert(s span) {
	i := r.above(s.address)
	if i < len(r.spans) && s.grows && r.spans[i].grows && s.end() == r.spans[i].address {
		s.bytes += r.spans[i].bytes
		r.spans = slices.Delete(r.spans, i, i+1)
	}
	if i > 0 && s.grows && r.spans[i-1].grows && r.spans[i-1].end() == s.address {
		r.spans[i-1].bytes += s.bytes
		return
	}
	r.spans = slices.Insert(r.spans, i, s)
}

func (r *replay) remove(address uint64) {
	i := r.find(address)
	r.spans = slices.Delete(r.spans, i, i+1)
}

// place adds a span for an allocation of the driver's own, and returns its address.
func (r *replay) place(address, bytes uint64) uint64 {
	if r.overlaps(address, bytes) {
		address = foreignFrom
		if n := len(r.spans); n > 0 {
			address = max(address, r.spans[n-1].end())
		}
	}
	r.insert(span{address, bytes, "foreign", false})
	return address
}
