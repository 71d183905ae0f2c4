// The fast path of TA_SECURE=1. alloc/secure.go describes its data; alloc/misuse.go and
// alloc/slot.go describe the contents of a slot. If anything is unusual, it changes nothing and
// leaves the call to the slow path.
#include <string.h>
#include "libc_malloc.h"
#include "libc_secure.h"

typedef struct ta_securecache cache;
typedef struct ta_securebin bin;
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))

enum { CANARY = 8, NEAR = 64, FAMILY = 3, ANY = 3 };

INLINE uint64_t load(uintptr_t at) { return *(uint64_t *)at; }
INLINE pair load_pair(uintptr_t at) { return *(const pair *)at; }
INLINE void store(uintptr_t at, uint64_t v)
{
	__atomic_store_n((uint64_t *)at, v, __ATOMIC_RELEASE);
}

// The key of the slot at b. Its canary and its fill derive from it.
INLINE uint64_t slot_key(const cache *q, uintptr_t b) { return (b ^ q->Canary) * TA_CANARY_FACTOR; }

// The parts of a canary.
INLINE unsigned state_of(uint64_t canary) { return (uint32_t)canary >> 28; }
INLINE uint64_t size_of(uint64_t canary) { return (uint32_t)canary << 4 >> 12; }

// The canary of the slot with the given key.
INLINE uint64_t canary_for(uint64_t key, unsigned state, uint64_t n)
{
	uint64_t what = (uint32_t)(state << 28 | (n & 0xfffff) << 8);
	return ((key + what) * TA_CANARY_FACTOR & 0xffffffff00000000u) | what;
}

// The fault of a canary, or 0.
INLINE uint64_t odd_canary(uint64_t key, uint64_t canary)
{
	return ((key + (uint32_t)canary) * TA_CANARY_FACTOR ^ canary) >> 32;
}

INLINE uint64_t fill_of(const cache *q, uint64_t key)
{
	return (key ^ q->Fill) | 0x0101010101010101;
}

// Writes the fill from n to room, both offsets in the slot at b, whose bytes are zero.
INLINE void fill(uint64_t w, uintptr_t b, size_t n, size_t room)
{
	size_t at = n & ~7ul;
	if (at != n) {
		store(b + at, w >> n % 8 * 8 << n % 8 * 8);
		at += 8;
	}
	for (; at < room; at += 8)
		store(b + at, w);
}

// The fault of that fill, or 0.
INLINE uint64_t odd_fill(uint64_t w, uintptr_t b, size_t n, size_t room)
{
	uint64_t odd = 0;
	size_t at = n & ~7ul;
	if (at != n) {
		odd = (load(b + at) ^ w) >> n % 8 * 8;
		at += 8;
	}
	for (; at < room; at += 8)
		odd |= load(b + at) ^ w;
	return odd;
}

INLINE uint64_t both(pair bits) { return bits[0] | bits[1]; }

// The OR of n bytes, a multiple of 8 from 8 to 64. The loads overlap.
INLINE pair bits_near(uintptr_t at, size_t n)
{
	if (n < 16)
		return (pair){load(at), 0};
	pair bits = load_pair(at) | load_pair(at + n - 16);
	if (n > 32)
		bits |= load_pair(at + 16) | load_pair(at + n - 32);
	return bits;
}

// Whether n bytes, a multiple of 8 from 8 on, of a slot are zero.
INLINE int blank(uintptr_t at, size_t n)
{
	typedef uint64_t aligned_pair __attribute__((vector_size(16), may_alias));
	pair bits = {0, 0};
	for (; n > 128; n -= 128, at += 128) {
		const aligned_pair *p = (const aligned_pair *)at;
		bits |= p[0] | p[1] | p[2] | p[3] | p[4] | p[5] | p[6] | p[7];
	}
	if (n > NEAR) {
		bits |= bits_near(at, NEAR);
		at += n - NEAR;
		n = NEAR;
	}
	bits |= bits_near(at, n);
	return both(bits) == 0;
}

// The fault of the link of a listed slot, or 0.
INLINE uint64_t odd_link(const cache *q, const ta_page *pg, uintptr_t b)
{
	uint64_t link = load(b) ^ q->List ^ b;
	return link != 0 && (link - pg->Start >= pg->Carved || link % TA_GRANULE != 0);
}

// The fault of the slot at b, or 0. It checks the canary, the fill and, of the bytes of a free
// slot, those near the start or the end.
INLINE uint64_t odd_slot(const cache *q, const ta_page *pg, uintptr_t b, size_t room, int start)
{
	uint64_t canary = load(b + room), m = slot_key(q, b), odd = odd_canary(m, canary);
	unsigned state = state_of(canary);
	uintptr_t from = b;
	if (state != TA_SECURE_CLEAN) {
		if (state < TA_SECURE_KINDS || state == TA_SECURE_FENCE)
			return odd != 0 || size_of(canary) > room ?
				1 :
				odd_fill(fill_of(q, m), b, size_of(canary), room);
		if (state == TA_SECURE_BUSY)
			return odd;
		odd |= odd_link(q, pg, b);
		from += 16;
	}
	size_t n = b + room - from;
	return odd |
		both(n > NEAR ? bits_near(start ? from : b + room - NEAR, NEAR) : bits_near(from, n));
}

// Whether the slots within reach of the one at b are as they were left.
static NOINLINE int whole_around(const cache *q, const ta_page *pg, uintptr_t b)
{
	uintptr_t start = pg->Start, end = start + pg->Carved;
	size_t size = pg->Size, room = size - CANARY;
	uint64_t odd = 0;
	for (uintptr_t a = b - size, last = b - size - TA_SECURE_REACH; a > last && a >= start;
		 a -= size)
		odd |= odd_slot(q, pg, a, room, 0);
	for (uintptr_t a = b + size, last = b + size + TA_SECURE_REACH; a < last; a += size) {
		if (a >= end) { // never used, or behind the last slot
			odd |= both(bits_near(a, NEAR));
			break;
		}
		odd |= odd_slot(q, pg, a, room, 1);
	}
	return odd == 0;
}

// Whether the block that the thread was given last, and those around it, are as they were left.
static NOINLINE int whole_given(const cache *q, const ta_heap *h)
{
	uintptr_t b = q->Given;
	ta_page *pg = ta_lookup((void *)b);
	return pg != NULL && ta_heap_of(pg) == h && b - pg->Start < pg->Carved &&
		odd_slot(q, pg, b, pg->Size - CANARY, 0) == 0 && whole_around(q, pg, b);
}

// Whether the block that the thread freed last is.
INLINE int whole_last(const cache *q)
{
	uintptr_t b = q->Last;
	size_t room = q->LastRoom;
	uint64_t odd = odd_canary(slot_key(q, b), load(b + room));
	if (room <= NEAR)
		return (odd | both(bits_near(b, room))) == 0;
	return (odd | both(bits_near(b, NEAR) | bits_near(b + room - NEAR, NEAR))) == 0;
}

// A number below n, at random.
INLINE uint64_t below(cache *q, uint64_t n)
{
	q->Random = q->Random * 6364136223846793005u + 1442695040888963407u; // Knuth's
	return (q->Random >> 32) * n >> 32;
}

INLINE void *serve(cache *q, const ta_heap *h, size_t n, unsigned how)
{
	size_t slot = n + TA_SECURE_EXTRA;
	bin *k = &q->Bins[slot <= 32 ? 1 : slot <= 128 ? (slot - 1) / TA_GRANULE : ta_class(slot)];
	uint64_t *from, *last, *count;
	if (LIKELY(k->Count > k->Least)) {
		count = &k->Count;
		from = &k->Freed[below(q, k->Count)];
		last = &k->Freed[k->Count - 1];
	} else if (LIKELY(k->News != 0)) {
		count = &k->News;
		from = last = &k->Fresh[k->News - 1];
	} else {
		return NULL;
	}
	if (UNLIKELY((q->Given != 0 && !whole_given(q, h)) || (q->Last != 0 && !whole_last(q))))
		return NULL;
	uintptr_t b = *from;
	size_t room = k->Room;
	uint64_t canary = load(b + room), m = slot_key(q, b);
	if (UNLIKELY(state_of(canary) != TA_SECURE_CLEAN || odd_canary(m, canary) || !blank(b, room))) {
		q->Suspect = b;
		return NULL;
	}
	*from = *last;
	--*count;
	k->Drawn++;
	store(b + room, canary_for(m, TA_SECURE_BUSY, 0));
	fill(fill_of(q, m), b, n, room);
	if (q->Last == b)
		q->Last = 0;
	q->Given = b;
	store(b + room, canary_for(m, how / TA_HOW_NEW & FAMILY, n));
	return (void *)b;
}

INLINE int take_back(
	cache *q, const ta_heap *h, ta_page *pg, uintptr_t b, unsigned how, size_t size)
{
	bin *k = &q->Bins[pg->Class];
	size_t room = k->Room, at = b - pg->Start;
	if (UNLIKELY(k->Count >= k->Most || at == 0 || at >= pg->Carved ||
			(uint32_t)at % (uint32_t)pg->Size != 0))
		return 0;
	uint64_t canary = load(b + room), m = slot_key(q, b), n = size_of(canary);
	unsigned family = how / TA_HOW_NEW & FAMILY, made = state_of(canary);
	if (UNLIKELY(odd_canary(m, canary) || made >= TA_SECURE_KINDS ||
			(family != ANY && family != made) || (size != TA_NO_SIZE && size != n) ||
			odd_fill(fill_of(q, m), b, n, room) || !whole_around(q, pg, b)))
		return 0;
	if (LIKELY(q->Given == b))
		q->Given = 0;
	else if (UNLIKELY(q->Given != 0 && !whole_given(q, h)))
		return 0;
	if (!__atomic_compare_exchange_n((uint64_t *)(b + room), &canary,
			canary_for(m, TA_SECURE_BUSY, 0), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	memset((void *)b, 0, room);
	store(b + room, canary_for(m, TA_SECURE_CLEAN, q->Calls));
	k->Freed[k->Count++] = b;
	q->Last = b;
	q->LastRoom = room;
	return 1;
}

// Marks the thread busy and returns its cache. Returns NULL in a signal handler that interrupts the
// heap on its own thread, and from time to time, so that the slow path does the work that is due.
INLINE cache *take(ta_thread *t)
{
	cache *q = t->Cache;
	if (UNLIKELY(q == NULL || t->Busy || ++q->Calls % TA_SECURE_TICK == 0))
		return NULL;
	t->Busy = 1;
	__asm__ volatile("" ::: "memory");
	return q;
}

INLINE void let_go(ta_thread *t)
{
	__asm__ volatile("" ::: "memory");
	t->Busy = 0;
}

LINE NOINLINE void *ta_secure_malloc(size_t n, unsigned how)
{
	ta_heap *h = ta_self;
	if (UNLIKELY(n - 1 >= TA_SECURE_MAX))
		return NULL;
	cache *q = take(h->Thread);
	if (UNLIKELY(q == NULL))
		return NULL;
	void *p = serve(q, h, n, how);
	let_go(h->Thread);
	return p;
}

LINE NOINLINE void ta_secure_free(ta_page *pg, void *p, const char *fn, unsigned how, size_t size)
{
	ta_heap *h = ta_self;
	cache *q = ta_heap_of(pg) == h && pg->Class < TA_SECURE_BINS ? take(h->Thread) : NULL;
	if (LIKELY(q != NULL)) {
		int done = take_back(q, h, pg, (uintptr_t)p, how, size);
		let_go(h->Thread);
		if (LIKELY(done))
			return;
	}
	ta_free_checked(p, fn, how, size);
}
