// malloc and free while TA_PROFILE samples blocks (alloc/ration.go).
#ifndef TA_LIBC_PROFILE_H
#define TA_LIBC_PROFILE_H
#include "heap.h"

// Pops a block of the ration that the fast path is not shown. NULL: the slow path serves, and takes
// a sample if one is due.
static inline __attribute__((always_inline)) void *ta_profile_malloc(size_t n)
{
	ta_heap *h = ta_self;
	if (n > TA_MAX_CLASS || h->Rations == NULL)
		return NULL;
	ta_ration *r = &h->Rations->Of[n > 128 ? ta_class(n) : (n - (n != 0)) / TA_GRANULE];
	uint64_t budget = r->Budget;
	if (budget == 0)
		return NULL;
	void *p = n <= TA_DIRECT_MAX ? ta_pop(r->From) : ta_pop_cached(&r->List);
	if (p == NULL)
		p = n <= TA_DIRECT_MAX ? ta_pop_cached(&r->List) : ta_pop(r->From);
	if (LIKELY(p != NULL))
		r->Budget = budget - 1; // not 0 - 1 if a child was forked in between (Thread.forked)
	return p;
}

// Frees p, an address in pg, into the thread-cache free list that the fast path is not shown, or
// returns 0.
static inline __attribute__((always_inline)) int ta_profile_free(ta_page *pg, void *p)
{
	ta_heap *h = ta_self;
	uint64_t other = pg->Owner ^ (uint64_t)h;
	if ((other & ~(TA_OWNER_FULL | TA_OWNER_WARM)) != 0 || h->Rations == NULL)
		return 0;
	struct ta_cachelist *s = &h->Rations->Of[pg->Class].List;
	if (s->Room == 0 || !ta_sane(pg, p))
		return 0;
	ta_push_cached(s, p);
	return 1;
}

#endif
