package alloc

import (
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// SecureCache is what the fast path of the secure mode (interpose/libc_secure.c) has of a thread:
// clean slots of the thread's base, a bin for each small class. Freed blocks come into it and leave
// it in random order: for malloc while a bin is more than half full, else for the quarantine, some
// of a full bin at a time. Fresh ones were never handed out; malloc takes them while there are few
// freed ones.
//
// The C side changes nothing where anything is not as it should be, and leaves the call to
// Malloc or Free, which look again and say what is wrong.
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
	Given    uintptr // the block that the thread was given last and has not freed, or 0
	Last     uintptr // the block that it freed last, while that is in quarantine or a bin, or 0
	LastRoom uintptr // bytes of that slot before its canary
	Suspect  uintptr // where the C side has found something, for audit
	Calls    uint64  // that the C side has served, or has tried to
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
	batch uintptr // how many fresh slots it got last
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

// What the C side knows of canaries.
const (
	SecureFence  = stateFence
	SecureClean  = stateClean
	SecureListed = stateListed
	SecureBusy   = stateBusy
	SecureKinds  = stateKinds
	SecureExtra  = slotExtra
	SecureReach  = reach
)

// SecureTick is how many calls the C side serves before one comes here, which does what is due.
const SecureTick = 256

// cache is the thread's, or nil when there is no memory for it.
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

// open lets the C side into a bin. Its page is written here first.
func (b *SecureBin) open(size uintptr) {
	if b.Most == 0 && size != 0 && !tiers.RulesOn() && !tiers.AnyThrottled() {
		b.Room = size - canaryBytes
		b.Most = min(freedBytes/size, freedSlots)
		b.Least = b.Most / 2
	}
}

// stock takes fresh slots of class c from the current page, each time more of them: the C side has
// left a call to Malloc, for the lack of slots or another reason.
func (h *Heap) stock(c uintptr) {
	k := h.Thread.Cache
	if k == nil || c >= SecureBins || h != h.Thread.Base {
		return
	}
	b, size := &k.Bins[c%SecureBins], sizeclass.Size(c)
	if p := h.current(c); p != pageNone && p.away() {
		h.emptyBin(c, b) // what is drawn counts for the home tier
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

// empty gives all slots of the cache back to their pages. Those that nobody was given
// count as if they had never left them.
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

// drew takes the count of n blocks of class c that a cache has handed out and got back.
func (h *Heap) drew(c uintptr, n uint64) {
	home, bytes := homeOf(uintptr(h.Hint))&(placementSlots-1), n*uint64(sizeclass.Size(c))
	h.goneBlocks[sizeclass.Index(c)] += n
	h.gone[home].alloc(n, bytes)
	h.gone[home].free(n, bytes)
}

// cache counts the slots of a cache as freed, which to their pages they are not, and those
// of them that were given out again.
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
