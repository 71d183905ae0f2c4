package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// A quarantine has blocks that its thread has freed, zeroed, in no list. When it is full
// each new one takes the place of one chosen at random, which must still be zero.
//
//	bytes = Σ Size of the slots in slot[0:n] <= quarantineBytes
//	newest < n, or n = 0: where the last one lies
//	given[i] = a block that the thread was given not long ago, or 0; [turn] the last one
//	watch counts the looks at one of those after the other
type quarantine struct {
	_      raw.OffHeap
	n      uintptr
	bytes  uintptr
	newest uintptr
	turn   uintptr
	watch  uintptr
	given  [givenSlots]uintptr
	slot   [quarantineSlots]uintptr
}

const (
	quarantineSlots = 1024
	quarantineBytes = 1 << 20
	givenSlots      = 16
)

// randomState counts up by the golden ratio; see mix.
var randomState uint64

// random is a number that cannot be told without secret.
func random() uint64 {
	return mix(secret.random + atomic.AddUint64(&randomState, 0x9e3779b97f4a7c15))
}

// quarantine is the thread's, or nil when there is no memory for it.
func (t *Thread) quarantine() *quarantine {
	if t.held == nil {
		const size = (unsafe.Sizeof(quarantine{}) + raw.Page - 1) &^ (raw.Page - 1)
		if at := raw.Map(size); at != 0 {
			mapped(size)
			t.held = (*quarantine)(raw.Ptr(at))
		}
	}
	return t.held
}

// keep takes in a zeroed block of p. Those that leave for it go back to their pages.
func (h *Heap) keep(p *Page, b uintptr) {
	if heapOf(atomic.LoadUintptr(&p.Owner)).Thread != h.Thread {
		h.Remotes++
	}
	q := h.Thread.quarantine()
	if q == nil {
		h.discharge(b)
		return
	}
	for q.n == quarantineSlots || q.n != 0 && q.bytes+p.Size > quarantineBytes {
		h.discharge(q.takeOut(uintptr(random()>>32) * q.n >> 32))
	}
	q.slot[q.n%quarantineSlots] = b
	q.newest = q.n
	q.n++
	q.bytes += p.Size
}

// takeOut takes the i-th block out.
func (q *quarantine) takeOut(i uintptr) uintptr {
	b := q.slot[i%quarantineSlots]
	q.n--
	q.slot[i%quarantineSlots] = q.slot[q.n%quarantineSlots]
	if q.newest == q.n {
		q.newest = i
	}
	if p := Lookup(b); p != nil {
		q.bytes -= p.Size
	}
	return b
}

// discharge puts a zeroed block on its page's list, if it is still so.
func (h *Heap) discharge(b uintptr) {
	p := Lookup(b)
	if p == nil {
		return
	}
	if l := p.label(b); !labelValid(b, l) || labelState(l) != stateClean {
		corrupt(&h.Thread.running, p, b, foundLabel)
	}
	if !blank(b, b+p.room()) {
		corrupt(&h.Thread.running, p, b, foundFreed)
	}
	p.enlist(b)
	freeInner(h, p, b)
}

// enlist makes a zeroed block look like one on a list, before it is put there.
func (p *Page) enlist(b uintptr) {
	p.setLabel(b, stateBusy, 0)
	raw.Store(b, seal(b, 0))
	raw.Store(b+8, FreeKey)
	p.setLabel(b, stateListed, 1)
}

// release gives all of the thread's quarantine back to the pages.
func (t *Thread) release() {
	q := t.held
	if q == nil {
		return
	}
	for q.n != 0 {
		t.Base.discharge(q.takeOut(q.n - 1))
	}
	q.given = [givenSlots]uintptr{}
}

// remember notes the block that the thread was given last.
func (t *Thread) remember(b uintptr) {
	if q := t.quarantine(); q != nil {
		q.turn++
		q.given[q.turn%givenSlots] = b
	}
}

// audit looks at the block that the thread was given last, with its neighbours, at another
// it was given not long ago, and at the one that it freed last: most damage is done
// soon, and by who has the block. The block that is about to be freed is looked at anyway.
func (t *Thread) audit(freed uintptr) {
	q := t.held
	if q == nil {
		return
	}
	if b := q.given[q.turn%givenSlots]; b != freed {
		t.inspect(b, true)
	}
	q.watch++
	if b := q.given[q.watch%givenSlots]; b != freed {
		t.inspect(b, false)
	}
	if q.n == 0 {
		return
	}
	b := q.slot[q.newest%quarantineSlots]
	if p := Lookup(b); p != nil {
		what := p.slot(b, true)
		if what == 0 && p.room() > nearby {
			what = p.slot(b, false)
		}
		if what != 0 {
			corrupt(&t.running, p, b, what)
		}
	}
}

// inspect looks at a block that the thread was given and may have freed, or 0, with its
// neighbours if it is wide. Where its page is full that may be
// another thread's by now (steal.go), and is left alone.
func (t *Thread) inspect(b uintptr, wide bool) {
	p := Lookup(b)
	if b == 0 || p == nil || p.Magic != 0 || !t.owns(p) || !p.isSlot(b) {
		return
	}
	if what := p.slot(b, false); what != 0 {
		corrupt(&t.running, p, b, what)
	}
	if !wide || labelState(p.label(b)) >= stateKinds {
		return
	}
	if bad, what := p.around(b); what != 0 {
		corrupt(&t.running, p, bad, what)
	}
}

// owns reports whether p is a page of the thread's that is not full.
func (t *Thread) owns(p *Page) bool {
	owner := atomic.LoadUintptr(&p.Owner)
	return owner > OwnerHuge && owner&OwnerFull == 0 && heapOf(owner).Thread == t
}

// quarantined counts the blocks in a quarantine as freed, which to their pages they are not.
func (k *Counts) quarantined(q *quarantine) {
	for i := uintptr(0); i < q.n && i < quarantineSlots; i++ {
		p := Lookup(q.slot[i%quarantineSlots])
		if p == nil {
			continue
		}
		k.Frees[p.Class&(Classes-1)]++
		k.tier[tierOf(p.place)].free(1, uint64(p.Size))
		k.Quarantined++
		k.QuarantineBytes += uint64(p.Size)
	}
}
