package alloc

import (
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// With TA_SECURE=1 every request comes here: the fast path is disabled for all classes, and the
// pages' magic is 0, so that it takes nothing for a block. It costs the default mode nothing.
//
// A block lies in a slot of its class that ends in a canary, which says what the slot is,
// with a check value; what is left between is filled (canary.go). So a byte written
// behind a block is found when it is freed, and when a neighbour is looked at (slot.go). Freed
// blocks are zeroed and lie in quarantine, to come back later and in no order (quarantine.go).
// From secureMax on a block has a mapping of its own between memory without access (guardpages.go).
//
// None of this is cryptography: who can read the heap can forge a canary. It is against
// bugs, and makes blind writes fail.
var (
	secure bool

	// secret is zero in the default mode: lists that the fast path shares are not encoded.
	secret secrets
)

type secrets struct{ canary, fill, list, mask, random uint64 }

const (
	secureMax      = 64 << 10 // the largest slot
	secureMinClass = 1        // 32 bytes: a list has the first two words, the canary the last
)

// What C says of a call: which counter it has, in the lower bits, and of which family the
// function is. What one family made the others may not free.
const (
	howCall    = 1<<HowFamily - 1
	HowFamily  = 8
	HowMalloc  = 0
	HowNew     = 1 << HowFamily
	HowArray   = 2 << HowFamily
	HowAny     = 3 << HowFamily
	familyMask = 3
)

// NoSize is the size of a block where the caller does not say it.
const NoSize = ^uintptr(0)

// Harden turns the secure mode on, before there is any heap. entropy is the address of 16 random
// bytes that the kernel gave the process, or 0. warn has a bit for each check (config.Check…) that
// is a line on standard error and no more.
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
	secure = true
}

// Secure reports whether the secure mode is on.
func Secure() bool { return secure }

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

// usable is how many bytes the block at addr, of the page or huge block p, has for its user.
func (p *Page) usable(addr uintptr) uintptr {
	switch {
	case p.isNursery():
		return p.table().granulesOf(p.granule(addr)) * sizeclass.Granule
	case !secure || p.Owner == OwnerZero:
		return p.Size
	case p.Owner == OwnerHuge:
		return p.request()
	}
	return canarySize(p.canary(addr))
}

// Usable is how many bytes the live block at addr has, or what Check says of it, inverted: a block
// on a free list is FreeUsed, for nobody frees it here. With TA_SECURE=1 it is what was asked for.
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

// resizeSecure is Resize. It stays in its slot, or memory pages, where it can.
func (p *Page) resizeSecure(addr, n uintptr) uintptr {
	switch {
	case p.Owner == OwnerZero:
		return 0
	case p.Owner == OwnerHuge:
		used := raw.RoundUp(n, raw.Page)
		old := p.request()
		if n <= secureMax || used != raw.RoundUp(old, raw.Page) || p.Class != HowMalloc ||
			!fillIntact(addr, old, used) {
			return 0 // who frees the block finds out
		}
		p.Carved = uint64(n)
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

// wipeRest ends a block that had old bytes of its room after n: it is filled from there on,
// and what it has more now is zero.
func wipeRest(b, old, n, room uintptr) {
	for ; old < n; old++ {
		raw.StoreByte(b+old, 0)
	}
	fill(b, n, room)
}
