package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// A quarantine holds zeroed blocks that its thread has freed. They are on no list. When it is full,
// each new block replaces one chosen at random, which must still be zero.
//
//	bytes = Σ Size of the slots in slot[0:n] <= quarantineBytes
type quarantine struct {
	_     raw.OffHeap
	n     uintptr
	bytes uintptr
	slot  [quarantineSlots]uintptr
}

const (
	quarantineSlots = 1024
	quarantineBytes = 1 << 20
)

// randomState counts up by the golden ratio; see mix.
var randomState uint64

// random returns a number that cannot be predicted without secret.
func random() uint64 {
	return mix(secret.random + atomic.AddUint64(&randomState, 0x9e3779b97f4a7c15))
}

// hold returns the thread's quarantine, or nil if there is no memory for it.
func (t *Thread) hold() *quarantine {
	if t.held == nil {
		const size = (unsafe.Sizeof(quarantine{}) + raw.Page - 1) &^ (raw.Page - 1)
		if at := raw.Map(size); at != 0 {
			mapped(size)
			t.held = (*quarantine)(raw.Ptr(at))
		}
	}
	return t.held
}

// keep takes a block of p that was just freed and zeroed into the cache or the quarantine.
func (h *Heap) keep(p *Page, b uintptr) {
	if heapOf(atomic.LoadUintptr(&p.Owner)).Thread != h.Thread {
		h.Remotes++
	}
	if k := h.Thread.cache(); k != nil {
		k.Last, k.LastRoom = b, p.room()
		if k.Given == b {
			k.Given = 0
		}
	}
	h.thin(uintptr(p.Class))
	h.quarantine(p, b)
}

// quarantine takes a zeroed block of p into the quarantine. Blocks that it replaces return to their
// pages.
func (h *Heap) quarantine(p *Page, b uintptr) {
	q := h.Thread.hold()
	if q == nil {
		h.discharge(b)
		return
	}
	for q.n == quarantineSlots || q.n != 0 && q.bytes+p.Size > quarantineBytes {
		h.discharge(q.takeOut(uintptr(random()>>32) * q.n >> 32))
	}
	q.slot[q.n%quarantineSlots] = b
	q.n++
	q.bytes += p.Size
}

// takeOut removes and returns the i-th block.
func (q *quarantine) takeOut(i uintptr) uintptr {
	b := q.slot[i%quarantineSlots]
	q.n--
	q.slot[i%quarantineSlots] = q.slot[q.n%quarantineSlots]
	if p := Lookup(b); p != nil {
		q.bytes -= p.Size
	}
	return b
}

// release returns all blocks of the thread's cache and quarantine to the pages.
func (t *Thread) release() {
	if t.Cache != nil {
		t.Cache.empty(t.Base)
	}
	q := t.held
	if q == nil {
		return
	}
	for q.n != 0 {
		t.Base.discharge(q.takeOut(q.n - 1))
	}
}

// audit checks the block that the thread allocated last, with its neighbours, and the block that it
// freed last: most damage is done soon, by the thread that has the block. (The block that is about
// to be freed is checked anyway.) It also checks the slot in which C has found a fault.
func (t *Thread) audit(freed uintptr) {
	k := t.Cache
	if k == nil {
		return
	}
	if k.Suspect != 0 {
		t.suspect(k.Suspect)
		k.Suspect = 0
	}
	if k.Given != freed {
		t.inspect(k.Given)
	}
	b := k.Last
	if p := Lookup(b); b != 0 && p != nil {
		what := p.slot(b, true)
		if what == 0 && p.room() > nearby {
			what = p.slot(b, false)
		}
		if what != 0 {
			corrupt(&t.running, p, b, what)
		}
	}
}

// suspect checks a slot of the thread's cache and its neighbours.
func (t *Thread) suspect(b uintptr) {
	p := Lookup(b)
	if l := p.canary(b); !canaryValid(b, l) {
		corrupt(&t.running, p, b, foundCanary)
	}
	if !blank(b, b+p.room()) {
		corrupt(&t.running, p, b, foundFreed)
	}
	if bad, what := p.around(b); what != 0 {
		corrupt(&t.running, p, bad, what)
	}
}

// inspect checks a block that the thread has allocated, or 0, and its neighbours while it is live.
// Another thread may have freed it, and the page may belong to another by now. A full page that
// others could take stays while the thread's last block is in it (abandoned.go).
func (t *Thread) inspect(b uintptr) {
	p := Lookup(b)
	if b == 0 || p == nil || p.Magic != 0 || !t.owns(p) || !p.isSlot(b) {
		return
	}
	if what := p.slot(b, false); what != 0 {
		corrupt(&t.running, p, b, what)
	}
	if canaryState(p.canary(b)) >= stateKinds {
		return
	}
	if bad, what := p.around(b); what != 0 {
		corrupt(&t.running, p, bad, what)
	}
}

// owns reports whether the thread owns p.
func (t *Thread) owns(p *Page) bool {
	owner := atomic.LoadUintptr(&p.Owner)
	return owner > OwnerHuge && heapOf(owner).Thread == t
}

// wasGiven reports whether the last block that the thread allocated is in p. Any thread may call
// it.
func (t *Thread) wasGiven(p *Page) bool {
	return t.Cache != nil && Lookup(atomic.LoadUintptr(&t.Cache.Given)) == p
}

// quarantined counts the blocks in a quarantine as freed. Their pages count them as in use.
func (k *Counts) quarantined(q *quarantine) {
	for i := uintptr(0); i < q.n && i < quarantineSlots; i++ {
		k.kept(q.slot[i%quarantineSlots])
	}
}

// kept counts a clean slot, which its page counts as in use, as freed.
func (k *Counts) kept(b uintptr) {
	p := Lookup(b)
	if p == nil {
		return
	}
	k.Frees[p.class()]++
	k.tier[tierOf(p.placement)].free(1, uint64(p.Size))
	k.Quarantined++
	k.QuarantineBytes += uint64(p.Size)
}
