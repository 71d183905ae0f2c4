package alloc

import (
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// With TA_SECURE=1 the fast path is disabled for all classes, and the pages' magic is 0, so that
// the fast path of free accepts no block. The default mode pays nothing for this.
//
// A block is in a slot of its class. The slot ends in a canary, which holds the slot's state and a
// check value; the bytes between block and canary are filled (slot.go). So a byte written after a
// block is detected when the block is freed, and when a neighbour is checked. Freed blocks are
// zeroed and stay in quarantine, to be reused later in random order (quarantine.go). From secureMax
// on a block is a mapping of its own between inaccessible memory (guardpages.go).
//
// None of this is cryptography: an attacker who can read the heap can forge a canary. It detects
// bugs, and makes blind writes fail.
var secret secrets // zero in the default mode: lists that the fast path shares are not encoded

type secrets struct{ canary, fill, list, mask, random uint64 }

const (
	secureMax      = 64 << 10 // the largest slot
	secureMinClass = 1        // 32 bytes: a list has the first two words, the canary the last
)

// The argument how of a call from C: its counter in the lower bits, and the family of its function.
// A block that one family allocated must not be freed by another.
const (
	howCall    = 1<<HowFamily - 1
	HowFamily  = 8
	HowMalloc  = 0
	HowNew     = 1 << HowFamily
	HowArray   = 2 << HowFamily
	HowAny     = 3 << HowFamily
	familyMask = 3
)

// NoSize stands for a size that the caller does not state.
const NoSize = ^uintptr(0)

// Harden turns the secure mode on, before there is any heap. entropy is the address of 16 random
// bytes that the kernel gave the process, or 0. warn has a bit for each check (config.Check…) that
// only warns.
func Harden(entropy, warn uintptr) {
	const (
		sysGetrandom = 318
		nonblock     = 1
	)
	n, errno := raw.Sys(sysGetrandom, uintptr(unsafe.Pointer(&secret)), unsafe.Sizeof(secret),
		nonblock, 0, 0, 0)
	if (errno != 0 || n != unsafe.Sizeof(secret)) && entropy != 0 { // early in the system's start
		a, b := uint64(raw.Load(entropy)), uint64(raw.Load(entropy+8))
		a ^= raw.Clock(raw.ClockMono)
		secret.canary, secret.fill = mix(a), mix(b)
		secret.list, secret.random = mix(a^b), mix(a+b)
	}
	// lists are of multiples, and a link of 0 is as odd as the key
	secret.list &^= sizeclass.Granule - 1
	secret.list |= 1
	secret.mask = ^uint64(0)
	warned = warn
	secure, anySlice = true, true
}

// mix scatters a number over 64 bits, one to one: variant 13 of David Stafford's mixers
// (2011), which SplitMix64 ends with (Steele, Lea, Flood: "Fast splittable pseudorandom
// number generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// encodeLink encodes the link of a list that lies in the free block b, and decodes it.
func encodeLink(b, link uintptr) uintptr {
	return link ^ uintptr(secret.list) ^ b&uintptr(secret.mask)
}

// serveSecure allocates n bytes at a multiple of align, a power of two or 0.
func (h *Heap) serveSecure(n, align, how uintptr) uintptr {
	h.Thread.running = running{number: how&howCall + 1}
	h.Thread.audit(0)
	align = max(align, sizeclass.Granule)
	size := raw.RoundUp(max(n+slotExtra, align), align)
	if n > secureMax || align > secureMax || size > secureMax {
		return guardPagesAlloc(h, n, align, how)
	}
	c := sizeclass.Aligned(max(sizeclass.Of(size), secureMinClass), align)
	if sizeclass.Size(c) > secureMax {
		return guardPagesAlloc(h, n, align, how)
	}
	b := h.allocClass(c, align) &^ ZeroBit
	if b == 0 {
		return 0
	}
	Lookup(b).handOut(&h.Thread.running, b, n, how)
	h.Thread.remember(b)
	h.stock(c)
	return b | ZeroBit
}

// usable returns the usable bytes of the block at addr, of the page or huge block p.
func (p *Page) usable(addr uintptr) uintptr {
	switch {
	case p.isNursery():
		return p.table().granulesOf(p.granule(addr)) * sizeclass.Granule
	case !secure && p.Owner == OwnerHuge:
		return p.Size - p.blockOffset()
	case !secure || p.Owner == OwnerZero:
		return p.Size
	case p.Owner == OwnerHuge:
		return p.request()
	}
	return canarySize(p.canary(addr))
}

// Usable returns the usable bytes of the live block at addr. For anything else it returns the
// result of Check, inverted, with FreeUsed for a block on a free list. With TA_SECURE=1 the usable
// size is the size asked for.
func Usable(addr uintptr) uintptr {
	p := Lookup(addr)
	switch why := check(p, addr); why {
	case FreeOK:
	case FreeDouble:
		return ^uintptr(FreeUsed)
	default:
		return ^why
	}
	return p.usable(addr)
}

// resizeSecure is Resize for the secure mode. The block stays in its slot, or in its memory pages,
// if it fits.
func (p *Page) resizeSecure(addr, n uintptr) uintptr {
	switch {
	case p.Owner == OwnerZero:
		return 0
	case p.Owner == OwnerHuge:
		used := raw.RoundUp(n, raw.Page)
		old := p.request()
		if n <= secureMax || used != raw.RoundUp(old, raw.Page) || p.family() != HowMalloc ||
			!fillIntact(addr, old, used) {
			return 0 // the free of the block reports the damage
		}
		p.setRequest(n)
		wipeRest(addr, old, n, used)
		return addr
	}
	l := p.canary(addr)
	old, made := canarySize(l), canaryState(l)
	if n == 0 || made != HowMalloc ||
		max(sizeclass.Of(n+slotExtra), secureMinClass) != uintptr(p.Class) ||
		!fillIntact(addr, old, p.room()) {
		return 0
	}
	p.setCanary(addr, stateBusy, 0)
	wipeRest(addr, old, n, p.room())
	p.setCanary(addr, made, n)
	return addr
}

// wipeRest shortens or lengthens a block in its slot from old to n bytes: the bytes after n are
// filled, and new bytes are zero.
func wipeRest(b, old, n, room uintptr) {
	for ; old < n; old++ {
		raw.StoreByte(b+old, 0)
	}
	fill(b, n, room)
}

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

// remember notes the block that the thread has allocated last.
func (t *Thread) remember(b uintptr) {
	if k := t.cache(); k != nil {
		k.Given = b
	}
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
