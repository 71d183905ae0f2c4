package alloc

import (
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// SecureCache is a thread's cache for the fast path of the secure mode (interpose/libc_secure.c):
// clean slots of the thread's base heap, in a bin for each small class. Freed blocks enter a bin
// and leave it in random order. While a bin is more than half full, malloc takes them; a full bin
// passes some of them to the quarantine. Fresh slots were never handed out; malloc takes them while
// there are few freed blocks.
//
// If C finds a fault it changes nothing and leaves the call to Malloc or Free, which check again
// and report the fault.
//
//	a slot in Fresh[:News] or Freed[:Count] is clean, its page's block in use, of the thread's base
//	Drawn = blocks that malloc got from the bin - blocks that the bin got from pages
//	Most = 0: the bin is closed and empty, for all calls go by rules or are throttled, or the class
//	lies in another tier than its home
type SecureCache struct {
	_        raw.OffHeap
	Canary   uint64 // keys: see secrets
	Fill     uint64
	List     uint64
	Random   uint64  // state of a generator
	Given    uintptr // the block that the thread allocated last and has not freed, or 0
	Last     uintptr // the block that it freed last, while it is in quarantine or a bin, or 0
	LastRoom uintptr // bytes of that slot before its canary
	Suspect  uintptr // the slot in which C has found a fault, for audit
	Calls    uint64  // calls that C has served or tried to serve
	Bins     [SecureBins]SecureBin
}

// SecureBin is one class of a SecureCache.
type SecureBin struct {
	Room  uintptr // bytes of a slot before its canary
	News  uintptr
	Count uintptr
	Least uintptr // freed slots that stay
	Most  uintptr
	Drawn uint64
	batch uintptr // number of fresh slots in the last batch
	Fresh [freshSlots]uintptr
	Freed [freedSlots]uintptr
}

const (
	SecureBins = 33 // classes of blocks up to 1 KiB
	SecureMax  = 1024
	freshSlots = 16
	freedSlots = 256
	freedBytes = 128 << 10 // in a bin
	freshBytes = 4096
)

// Constants of canaries for C.
const (
	SecureFence  = stateFence
	SecureClean  = stateClean
	SecureListed = stateListed
	SecureBusy   = stateBusy
	SecureKinds  = stateKinds
	SecureExtra  = slotExtra
	SecureReach  = reach
)

// SecureTick is how many calls C serves before one takes the slow path, which does the work that is
// due.
const SecureTick = 256

// cache returns the thread's cache, or nil if there is no memory for it.
func (t *Thread) cache() *SecureCache {
	if t.Cache == nil {
		const size = (unsafe.Sizeof(SecureCache{}) + raw.Page - 1) &^ (raw.Page - 1)
		at := raw.Map(size)
		if at == 0 {
			return nil
		}
		mapped(size)
		k := (*SecureCache)(raw.Ptr(at))
		k.Canary, k.Fill, k.List, k.Random = secret.canary, secret.fill, secret.list, random()
		t.Cache = k
	}
	return t.Cache
}

// open opens a bin to C. This is the first write to the bin's memory page.
func (b *SecureBin) open(size uintptr) {
	if b.Most == 0 && size != 0 && !tiers.RulesOn() && !tiers.AnyThrottled() {
		b.Room = size - canaryBytes
		b.Most = min(freedBytes/size, freedSlots)
		b.Least = b.Most / 2
	}
}

// stock takes fresh slots of class c from the current page, more each time. It is called when C has
// left a call to Malloc.
func (h *Heap) stock(c uintptr) {
	k := h.Thread.Cache
	if k == nil || c >= SecureBins || h != h.Thread.Base {
		return
	}
	b, size := &k.Bins[c%SecureBins], sizeclass.Size(c)
	if p := h.current(c); p != pageNone && p.away() {
		h.emptyBin(c, b) // blocks from a bin count for the home tier
		b.Most = 0
		return
	}
	b.open(size)
	if b.Most == 0 || b.News != 0 || b.Count > b.Least || size == 0 {
		return
	}
	b.batch = min(2*b.batch+1, freshSlots, max(freshBytes/size, 1))
	for b.News < b.batch {
		p := h.current(c)
		if p == pageNone {
			return
		}
		s := p.pop()
		if s == 0 {
			s = p.carveSlots()
		}
		if s == 0 {
			return
		}
		p.takeListed(&h.Thread.running, s)
		p.setCanary(s, stateClean, uintptr(random()))
		b.Fresh[b.News%freshSlots] = s
		b.News++
		b.Drawn--
	}
}

// thin makes room in a full bin of class c: some of its blocks go into the quarantine.
func (h *Heap) thin(c uintptr) {
	k := h.Thread.Cache
	if k == nil || c >= SecureBins {
		return
	}
	b := &k.Bins[c%SecureBins]
	if b.Most == 0 || b.Count < b.Most {
		return
	}
	for b.Count > b.Most-b.Most/4 {
		i := uintptr(random()>>32) * b.Count >> 32
		s := b.Freed[i%freedSlots]
		b.Count--
		b.Freed[i%freedSlots] = b.Freed[b.Count%freedSlots]
		h.quarantine(Lookup(s), s)
	}
}

// empty returns all slots of the cache to their pages. Slots that were never handed out count as if
// they had never left their pages.
func (k *SecureCache) empty(h *Heap) {
	for i := range k.Bins {
		h.emptyBin(uintptr(i), &k.Bins[i])
	}
	k.Given, k.Last, k.Suspect = 0, 0, 0
}

// emptyBin is empty for the bin of class c.
func (h *Heap) emptyBin(c uintptr, b *SecureBin) {
	for b.Count != 0 {
		b.Count--
		h.discharge(b.Freed[b.Count%freedSlots])
	}
	for b.News != 0 {
		b.News--
		h.discharge(b.Fresh[b.News%freshSlots])
	}
	b.batch = 0
	h.drew(c, b.Drawn)
	b.Drawn = 0
}

// drew counts n blocks of class c that a cache has handed out and taken back.
func (h *Heap) drew(c uintptr, n uint64) {
	home, bytes := homeOf(uintptr(h.Hint))&(placementSlots-1), n*uint64(sizeclass.Size(c))
	h.goneBlocks[sizeclass.Index(c)] += n
	h.gone[home].alloc(n, bytes)
	h.gone[home].free(n, bytes)
}

// cache counts the slots of a cache as freed, because their pages count them as in use, and counts
// the blocks that the cache has handed out again.
func (k *Counts) cache(t *Thread) {
	home := homeOf(uintptr(t.Base.Hint)) & (placementSlots - 1)
	for c := range t.Cache.Bins {
		b := &t.Cache.Bins[c]
		if b.Drawn != 0 {
			size := uint64(sizeclass.Size(uintptr(c)))
			k.Allocs[c] += b.Drawn
			k.Frees[c] += b.Drawn
			k.tier[home].alloc(b.Drawn, b.Drawn*size)
			k.tier[home].free(b.Drawn, b.Drawn*size)
		}
		for i := uintptr(0); i < b.Count && i < freedSlots; i++ {
			k.kept(b.Freed[i])
		}
		for i := uintptr(0); i < b.News && i < freshSlots; i++ {
			k.kept(b.Fresh[i])
		}
	}
}
