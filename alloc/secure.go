package alloc

import (
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// With TA_SECURE=1 the fast path is disabled for all classes, and the pages' magic is 0, so that
// the fast path of free accepts no block. The default mode pays nothing for this.
//
// A block is in a slot of its class. The slot ends in a canary, which holds the slot's state and a
// check value; the bytes between block and canary are filled (canary.go). So a byte written after a
// block is detected when the block is freed, and when a neighbour is checked (slot.go). Freed
// blocks are zeroed and stay in quarantine, to be reused later in random order (quarantine.go).
// From secureMax on a block is a mapping of its own between inaccessible memory (guardpages.go).
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
		return p.Size - uintptr(p.Gap)
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
		if n <= secureMax || used != raw.RoundUp(old, raw.Page) || p.Class != HowMalloc ||
			!fillIntact(addr, old, used) {
			return 0 // the free of the block reports the damage
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

// wipeRest shortens or lengthens a block in its slot from old to n bytes: the bytes after n are
// filled, and new bytes are zero.
func wipeRest(b, old, n, room uintptr) {
	for ; old < n; old++ {
		raw.StoreByte(b+old, 0)
	}
	fill(b, n, room)
}
