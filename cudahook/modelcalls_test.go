package cudahook

import (
	"fmt"
	"slices"
)

// endOfContext resets a context: its handle and its streams' stay.
func (w *world) endOfContext(l *lane) error {
	const c = 0xc2
	h := heapOf(c)
	if h == nil || w.capture {
		return nil
	}
	for _, o := range w.lanes { // nobody works in it, or names it
		r := o.r
		in := r.phase() > phaseHeap && r.state>>slotBit&phaseMask == h.slot
		if o.busy && (in || r.Context == c || r.caller == c || o.also.context == c ||
			o.what != nil && o.what.context == c) {
			return nil
		}
	}
	for o := range w.f.device { // as before the driver frees anything
		w.f.finishContext(o)
	}
	for i := uintptr(0); i < h.index.n; i++ {
		w.f.release(h.index.at(i).address)
	}
	for i := uintptr(0); h.table.base != 0 && i <= h.table.mask; i++ {
		if e := h.table.at(i); e.key != 0 && e.block.state == stateForeign {
			w.f.release(e.key)
		}
	}
	for id, e := range w.f.events {
		if e.context == c {
			delete(w.f.events, id)
		}
	}
	w.blocks = slices.DeleteFunc(w.blocks, func(b *liveBlock) bool { return b.context == c })
	for _, b := range w.blocks {
		b.recorded = slices.DeleteFunc(b.recorded, func(k streamKey) bool { return k.context == c })
	}
	w.ended++
	*l.r = Request{Token: l.r.Token, Op: OpContextEnd, Context: c}
	if a := w.f.run(l.r); a != ActDone {
		return fmt.Errorf("end of a context: %d", a)
	}
	for pair := range w.f.peers {
		if pair[0] == c || pair[1] == c {
			delete(w.f.peers, pair)
		}
	}
	return nil
}

// withoutRequest serves a call without a request where that is possible, as C does.
func (w *world) withoutRequest(l *lane) (done bool, err error) {
	r := l.r
	if r.state != 0 || r.Context != 0xc1 && r.Context != 0xc3 || w.rng.IntN(8) == 0 {
		return false, nil
	}
	d := w.f.device[r.Context]
	h := heapOf(r.Context)
	if h == nil {
		return false, nil
	}
	devices[d].primary, devices[d].slot = r.Context, h.slot
	switch l.op {
	case "stream alloc":
		at := Take(uintptr(r.Token), uintptr(d), uintptr(r.Stream), uintptr(r.Bytes))
		if at == 0 {
			return false, nil
		}
		w.taken++
		r.Address, r.Result = uint64(at), Success
	case "stream free":
		if !Give(uintptr(r.Token), uintptr(d), uintptr(r.Stream), uintptr(r.Address)) {
			return false, nil
		}
		w.given++
		r.Result = Success
	default:
		return false, nil
	}
	l.busy = false
	return true, w.finish(l, ActDone)
}
