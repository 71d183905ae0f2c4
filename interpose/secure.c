// The fast path of TA_SECURE=1: alloc/securecache.go has its data, alloc/label.go and alloc/slot.go what a slot has to
// look like. It leaves everything as it is and the call to the slow path where anything is odd.
#include <string.h>
#include "secure.h"

typedef struct ta_securecache cache;
typedef struct ta_securebin bin;

enum { SIZE_MASK = (1 << TA_SECURE_SHIFT) - 1, LABEL = 8, NEAR = 64, FAMILY = 3, ANY = 3 };

static inline uint64_t load(uintptr_t at) { return *(uint64_t *)at; }

static inline void store(uintptr_t at, uint64_t v) { __atomic_store_n((uint64_t *)at, v, __ATOMIC_RELEASE); }

// The label of the slot at b; what is the state and the size.
static inline uint64_t label_for(const cache *q, uintptr_t b, uint64_t what)
{
	return ((((b << TA_SECURE_SHIFT) | what) ^ q->Label) * TA_LABEL_FACTOR & 0xffffffff00000000u) | what << 8;
}

static inline uint64_t of_state(uint64_t state, uint64_t n) { return state << TA_SECURE_SHIFT | (n & SIZE_MASK); }

static inline uint64_t told(uint64_t label) { return label >> 8 & 0xffffff; }

// Whether label is one of the slot at b.
static inline int valid(const cache *q, uintptr_t b, uint64_t label)
{
	uint64_t check = ((b << TA_SECURE_SHIFT | told(label)) ^ q->Label) * TA_LABEL_FACTOR;
	return ((check ^ label) >> 32 | (uint8_t)label) == 0;
}

typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline pair load_pair(uintptr_t at) { return *(const pair *)at; }

// All bits of n bytes, a multiple of 8 from 8 to 64. The loads overlap.
static inline pair bits_near(uintptr_t at, size_t n)
{
	if (n < 16)
		return (pair){load(at), 0};
	pair bits = load_pair(at) | load_pair(at + n - 16);
	if (n > 32)
		bits |= load_pair(at + 16) | load_pair(at + n - 32);
	return bits;
}

static inline int none(pair bits) { return (bits[0] | bits[1]) == 0; }

// Whether n bytes, a multiple of 8 from 8 on, are zero.
static inline int blank(uintptr_t at, size_t n)
{
	pair bits = {0, 0};
	for (; n > 128; n -= 128, at += 128) {
		const pair *p = (const pair *)at;
		bits |= p[0] | p[1] | p[2] | p[3] | p[4] | p[5] | p[6] | p[7];
	}
	if (n > NEAR)
		bits |= bits_near(at, NEAR) | bits_near(at + n - NEAR, NEAR);
	else
		bits |= bits_near(at, n);
	return none(bits);
}

static inline uint64_t paint_of(const cache *q, uintptr_t b)
{
	return (q->Fill ^ b) * TA_LABEL_FACTOR | 0x0101010101010101;
}

static inline void paint(const cache *q, uintptr_t b, size_t n, size_t room)
{
	uint64_t w = paint_of(q, b);
	size_t at = n & ~7ul;
	if (at != n) { // what the block has of the word is zero
		store(b + at, w >> n % 8 * 8 << n % 8 * 8);
		at += 8;
	}
	for (; at < room; at += 8)
		store(b + at, w);
}

// Whether the paint behind n bytes of the slot at b is whole.
static inline int painted(const cache *q, uintptr_t b, size_t n, size_t room)
{
	uint64_t w = paint_of(q, b), odd = 0;
	size_t at = n & ~7ul;
	if (at != n) {
		odd = (load(b + at) ^ w) >> n % 8 * 8;
		at += 8;
	}
	for (; at < room; at += 8)
		odd |= load(b + at) ^ w;
	return odd == 0;
}

// Whether the slot at b is as it was left, as far as the end that lies next to what is looked at: its start, or else its end.
static inline __attribute__((always_inline)) int whole(const cache *q, const ta_page *pg, uintptr_t b, size_t room, int start)
{
	uint64_t label = load(b + room), what = told(label), state = what >> TA_SECURE_SHIFT;
	if (UNLIKELY(!valid(q, b, label)))
		return 0;
	if (state < TA_SECURE_KINDS || UNLIKELY(state == TA_SECURE_FENCE))
		return painted(q, b, what & SIZE_MASK, room);
	uintptr_t from = b, end = b + room;
	if (UNLIKELY(state != TA_SECURE_CLEAN)) {
		if (state == TA_SECURE_BUSY)
			return 1;
		uint64_t link = load(b) ^ q->List ^ b;
		if (link != 0 && (link - pg->Start >= pg->Carved || link % TA_GRANULE != 0))
			return 0;
		from += 16;
	}
	if (end - from > NEAR)
		return none(bits_near(start ? from : end - NEAR, NEAR));
	return none(bits_near(from, end - from));
}

// Whether the slots within reach of the one at b are as they were left.
static inline int whole_around(const cache *q, const ta_page *pg, uintptr_t b)
{
	size_t size = pg->Size, room = size - LABEL;
	for (uintptr_t a = b - size; a >= pg->Start && b - a - size < TA_SECURE_REACH; a -= size)
		if (UNLIKELY(!whole(q, pg, a, room, 0)))
			return 0;
	for (uintptr_t a = b + size; a - b - size < TA_SECURE_REACH; a += size) {
		if (a - pg->Start >= pg->Carved) // never used, or behind the last slot
			return none(bits_near(a, NEAR));
		if (UNLIKELY(!whole(q, pg, a, room, 1)))
			return 0;
	}
	return 1;
}

// Whether the block that the thread was given last and the one that it freed last are whole.
static inline int audit(const cache *q, const ta_heap *h, int freed)
{
	if (q->Given != 0) {
		ta_page *pg = ta_lookup((void *)q->Given);
		if (pg == NULL || ta_heap_of(pg) != h || q->Given - pg->Start >= pg->Carved)
			return 0;
		if (!whole(q, pg, q->Given, pg->Size - LABEL, 0) || !whole_around(q, pg, q->Given))
			return 0;
	}
	if (!freed || q->Last == 0)
		return 1;
	ta_page *pg = ta_lookup((void *)q->Last);
	size_t room = pg->Size - LABEL;
	return whole(q, pg, q->Last, room, 1) && (room <= NEAR || none(bits_near(q->Last + room - NEAR, NEAR)));
}

// A number below n, at random.
static inline uint64_t below(cache *q, uint64_t n)
{
	q->Random = q->Random * 6364136223846793005u + 1442695040888963407u; // Knuth's
	return (q->Random >> 32) * n >> 32;
}

static void *serve(cache *q, const ta_heap *h, size_t n, unsigned how)
{
	size_t slot = n + TA_SECURE_EXTRA;
	bin *k = &q->Bins[slot <= 32 ? 1 : slot <= 128 ? (slot - 1) / TA_GRANULE : ta_class(slot)];
	int again = k->Count > k->Most / 2;
	uint64_t *from;
	if (again)
		from = &k->Freed[below(q, k->Count)];
	else if (LIKELY(k->News != 0))
		from = &k->Fresh[k->News - 1];
	else
		return NULL;
	if (UNLIKELY(!audit(q, h, 1)))
		return NULL;
	uintptr_t b = *from;
	ta_page *pg = ta_lookup((void *)b);
	size_t room = pg->Size - LABEL;
	uint64_t label = load(b + room);
	if (UNLIKELY(!valid(q, b, label) || told(label) >> TA_SECURE_SHIFT != TA_SECURE_CLEAN || !blank(b, room) || !whole_around(q, pg, b))) {
		q->Suspect = b;
		return NULL;
	}
	*from = again ? k->Freed[--k->Count] : k->Fresh[--k->News];
	k->Drawn++;
	store(b + room, label_for(q, b, of_state(TA_SECURE_BUSY, 0)));
	paint(q, b, n, room);
	if (q->Last == b)
		q->Last = 0;
	q->Given = b;
	store(b + room, label_for(q, b, of_state(how / TA_HOW_NEW & FAMILY, n)));
	return (void *)b;
}

static int take_back(cache *q, const ta_heap *h, ta_page *pg, uintptr_t b, unsigned how, size_t size)
{
	bin *k = &q->Bins[pg->Class];
	size_t room = pg->Size - LABEL, at = b - pg->Start;
	if (UNLIKELY(k->Count >= k->Most || at == 0 || at >= pg->Carved || (uint32_t)at % (uint32_t)pg->Size != 0))
		return 0;
	uint64_t label = load(b + room), what = told(label), made = what >> TA_SECURE_SHIFT, n = what & SIZE_MASK;
	unsigned family = how / TA_HOW_NEW & FAMILY;
	if (UNLIKELY(!valid(q, b, label) || made >= TA_SECURE_KINDS || (family != ANY && family != made) || (size != TA_NO_SIZE && size != n) ||
		    !painted(q, b, n, room) || !whole_around(q, pg, b)))
		return 0;
	if (q->Given == b)
		q->Given = 0;
	else if (UNLIKELY(!audit(q, h, 0)))
		return 0;
	if (!__atomic_compare_exchange_n((uint64_t *)(b + room), &label, label_for(q, b, of_state(TA_SECURE_BUSY, 0)), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	memset((void *)b, 0, room);
	store(b + room, label_for(q, b, of_state(TA_SECURE_CLEAN, q->Calls)));
	k->Freed[k->Count++] = b;
	q->Last = b;
	return 1;
}

// The thread's cache, which is nobody else's until it is let go; or NULL for a signal handler that interrupts its own thread in the
// heap, and now and then, when the slow path is to do what is due.
static inline cache *take(ta_thread *t)
{
	cache *q = t->Cache;
	if (UNLIKELY(q == NULL || t->Busy || ++q->Calls % TA_SECURE_TICK == 0))
		return NULL;
	t->Busy = 1;
	__asm__ volatile("" ::: "memory");
	return q;
}

static inline void let_go(ta_thread *t)
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

LINE NOINLINE int ta_secure_free(ta_page *pg, void *p, unsigned how, size_t size)
{
	ta_heap *h = ta_self;
	if (UNLIKELY(ta_heap_of(pg) != h || pg->Class >= TA_SECURE_BINS))
		return 0;
	cache *q = take(h->Thread);
	if (UNLIKELY(q == NULL))
		return 0;
	int done = take_back(q, h, pg, (uintptr_t)p, how, size);
	let_go(h->Thread);
	return done;
}
