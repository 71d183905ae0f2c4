// The fast paths of malloc and free. ta_malloc_fast pops a block from the current page of the
// calling thread's heap (ta_pop). ta_free_fast finds the page of a block (ta_lookup), checks the
// block (ta_sane) and pushes it on the page's list (ta_push). Where that is not possible, the
// caller takes the slow path: libc_malloc.c, then package alloc.
#ifndef TA_HEAP_H
#define TA_HEAP_H
#include <stddef.h>
#include <stdint.h>
#include "attribute.h"
#include "layout.h"

// The compiler would store two neighbouring words of a page as one vector. It would first move them
// to a vector register, which takes longer than two stores.
#pragma GCC optimize("no-tree-slp-vectorize")

typedef struct ta_page ta_page;
typedef struct ta_heap ta_heap;
typedef struct ta_remotequeue ta_remotequeue;
typedef struct ta_thread ta_thread;
typedef struct ta_ration ta_ration;

// The heap that serves malloc on the calling thread: the base heap of its ta_thread. It is
// ta_heap_none before the thread has a heap and after the thread has ended. No page of ta_heap_none
// ever has a block.
extern TLS ta_heap *ta_self;
extern ta_heap ta_heap_none;
extern ta_page ta_page_none;

// The page map (alloc/pagemap.go).
extern ta_page **ta_root[TA_ROOT_ENTRIES];

static inline ta_page *ta_lookup(const void *p)
{
	uintptr_t a = (uintptr_t)p;
	if (UNLIKELY(a >> TA_ROOT_SHIFT >= TA_ROOT_ENTRIES))
		return NULL;
	ta_page **leaf = __atomic_load_n(&ta_root[a >> TA_ROOT_SHIFT], __ATOMIC_RELAXED);
	if (UNLIKELY(leaf == NULL))
		return NULL;
	return __atomic_load_n(&leaf[a >> TA_SLICE_SHIFT & TA_LEAF_MASK], __ATOMIC_RELAXED);
}

// Pops a block from the page, or returns NULL.
static inline void *ta_pop(ta_page *pg)
{
	void **b = (void **)pg->Free;
	if (UNLIKELY(b == NULL))
		return NULL;
	pg->Free = (uint64_t)b[0];
	pg->Allocs++;
	b[1] = NULL;
	return b;
}

static inline size_t ta_class(size_t n) // sizeclass.Of for n > 128
{
	size_t m = n - 1, b = 63 - __builtin_clzl(m);
	return (b - 6) * 8 + (m >> (b - 3) & 7);
}

// Pops a block from a thread-cache free list (alloc/freelists.go), or returns NULL.
static inline void *ta_pop_cached(struct ta_cachelist *s)
{
	uint64_t *b = (uint64_t *)s->Head;
	if (b == NULL)
		return NULL;
	s->Head = b[0];
	s->Room++;
	s->Pops++;
	b[1] = 0;
	return b;
}

// malloc in 15 instructions if the current page has a block: round, bound, load the heap, load the
// page, pop (load, test, load, store), count, clear the free mark, return. A larger size first
// computes its class, and tries the thread-cache free list before the page, because the blocks of
// the list are likely in the processor's cache.
HOT static inline void *ta_malloc_fast(size_t n)
{
	void *p;
	if (LIKELY(n <= TA_DIRECT_MAX)) {
		p = ta_pop(ta_self->Direct[(n + 15) >> 4]);
		if (UNLIKELY(p == NULL))
			p = ta_pop_cached(
				&ta_self->CacheLists[n > 128 ? ta_class(n) : (n - (n != 0)) / TA_GRANULE]);
		return p;
	}
	if (UNLIKELY(n > TA_MAX_CLASS))
		return NULL;
	size_t c = ta_class(n);
	p = ta_pop_cached(&ta_self->CacheLists[c]);
	return p != NULL ? p : ta_pop(ta_self->Cur[c]);
}

// Whether p, an address in pg, is the start of a block that was handed out and is not marked free.
static inline int ta_sane(ta_page *pg, void *p)
{
	uint64_t off = (uint64_t)p - pg->Start;
	return off < pg->Carved && off * pg->Magic < pg->Magic && ((uint64_t *)p)[1] != TA_FREE_KEY;
}

void ta_free_slow(void *p, const char *fn, unsigned how, size_t size);
void ta_free_other(ta_page *pg, void *p, const char *fn, unsigned how, size_t size);
void ta_page_empty(ta_page *pg);

// Pushes a block of the thread's own page on the list of the page.
static inline void ta_push(ta_page *pg, uint64_t *b)
{
	b[0] = pg->Free;
	b[1] = TA_FREE_KEY;
	pg->Free = (uint64_t)b;
	uint64_t frees = pg->Frees + 1;
	pg->Frees = frees;
	if (UNLIKELY(frees == pg->Trigger))
		ta_page_empty(pg);
}

// Pushes a block on a thread-cache free list that has room.
static inline void ta_push_cached(struct ta_cachelist *s, uint64_t *b)
{
	s->Room--;
	b[0] = s->Head;
	b[1] = TA_FREE_KEY;
	s->Head = (uint64_t)b;
}

// Pushes a block on a remote-free queue, or returns 0 if the queue is full. A signal handler that
// pushes in between moves the tail and takes the slot; the exchange then fails and is tried again.
// The exchange needs no lock prefix, because no other thread pushes on this queue.
static inline int ta_push_queue(ta_remotequeue *r, uint64_t *b)
{
	uint64_t tail = r->Tail;
	unsigned char done;
	b[1] = TA_FREE_KEY;
	do {
		if (UNLIKELY(tail - r->Seen >= TA_REMOTE_QUEUE_SLOTS)) {
			r->Seen = __atomic_load_n(&r->Head, __ATOMIC_ACQUIRE);
			if (tail - r->Seen >= TA_REMOTE_QUEUE_SLOTS) {
				b[1] = 0;
				return 0;
			}
		}
		r->Slots[tail % TA_REMOTE_QUEUE_SLOTS] = (uint64_t)b;
		__asm__ volatile("cmpxchg %3, %1"
						 : "=@ccz"(done), "+m"(r->Tail), "+a"(tail)
						 : "r"(tail + 1)
						 : "memory");
	} while (UNLIKELY(!done));
	return 1;
}

// The heap that owns a page. For a page without a heap the value is at most TA_OWNER_HUGE.
static inline ta_heap *ta_heap_of(ta_page *pg)
{
	return (ta_heap *)(pg->Owner & ~(TA_OWNER_FULL | TA_OWNER_WARM));
}

// The remote-free queue in the slot of a heap: NULL, or a queue that may lead to another heap.
static inline ta_remotequeue *ta_queue_to(ta_heap *owner)
{
	return ta_self->Out[owner->Number % TA_OUT_SLOTS];
}

// free in 37 instructions if the block belongs to the heap of the thread: the page map (11), the
// owner (3), the start of a block (8), not marked free (2), mark and push (4), count and compare
// (5). A block of another thread goes on the remote-free queue to its owner (alloc/remotequeue.go).
//
// fn is the name of the function that the program called. how names the counter of calls that free
// no block of the library, and the family of the function (alloc.HowNew). size is the size that the
// program states, or TA_NO_SIZE.
static inline __attribute__((always_inline)) void ta_free_fast(
	void *p, const char *fn, unsigned how, size_t size)
{
	ta_page *pg = ta_lookup(p);
	if (UNLIKELY(pg == NULL))
		return ta_free_slow(p, fn, how, size);
	// If the page is the thread's own, only flags remain.
	uint64_t other = pg->Owner ^ (uint64_t)ta_self;
	if (LIKELY(other == 0)) {
		if (UNLIKELY(!ta_sane(pg, p)))
			return ta_free_other(pg, p, fn, how, size);
		return ta_push(pg, p);
	}
	struct ta_cachelist *s = &ta_self->CacheLists[pg->Class];
	if (LIKELY(other == TA_OWNER_FULL)) {
		if (UNLIKELY(s->Room == 0 || !ta_sane(pg, p)))
			return ta_free_other(pg, p, fn, how, size);
		return ta_push_cached(s, p);
	}
	if (LIKELY((other | TA_OWNER_FULL) == (TA_OWNER_WARM | TA_OWNER_FULL))) {
		if (UNLIKELY(s->Room == 0 || !ta_sane(pg, p)))
			return ta_free_other(pg, p, fn, how, size);
		ta_push_cached(s, p);
		if (UNLIKELY(--s->Credit <= 0))
			ta_page_empty(pg);
		return;
	}
	ta_heap *h = ta_heap_of(pg);
	if (LIKELY((uint64_t)h > TA_OWNER_HUGE)) {
		ta_remotequeue *r = ta_queue_to(h);
		if (LIKELY(r != NULL && r->Owner == h && ta_sane(pg, p) && ta_push_queue(r, p))) {
			ta_self->Remotes++;
			return;
		}
	}
	ta_free_other(pg, p, fn, how, size);
}

#endif
