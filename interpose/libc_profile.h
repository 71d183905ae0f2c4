// malloc and free while TA_PROFILE samples blocks (alloc/sampled.go).
#ifndef TA_LIBC_PROFILE_H
#define TA_LIBC_PROFILE_H
#include "heap.h"

// Pops a block as ta_malloc_fast does without a profile, and counts its bytes. NULL: the slow path
// serves, and takes a sample if one is due.
static inline __attribute__((always_inline)) void *ta_profile_malloc(size_t n)
{
	ta_heap *h = ta_self;
	if (n > TA_MAX_CLASS || h->Profiled == NULL)
		return NULL;
	int64_t until = h->Until - (int64_t)(n + (n == 0));
	if (until <= 0)
		return NULL;
	size_t c = n > 128 ? ta_class(n) : (n - (n != 0)) / TA_GRANULE;
	void *p;
	if (LIKELY(n <= TA_DIRECT_MAX)) {
		p = ta_pop(h->Profiled->Pages[c]);
		if (UNLIKELY(p == NULL))
			p = ta_pop_cached(&h->Profiled->Lists[c]);
	} else {
		p = ta_pop_cached(&h->Profiled->Lists[c]);
		if (p == NULL)
			p = ta_pop(h->Profiled->Pages[c]);
	}
	if (LIKELY(p != NULL))
		h->Until = until;
	return p;
}

// Frees p, an address in pg, as ta_free_fast does without a profile, or returns 0.
static inline __attribute__((always_inline)) int ta_profile_free(ta_page *pg, void *p)
{
	ta_heap *h = ta_self;
	uint64_t other = pg->Owner ^ (uint64_t)h;
	if ((other & ~(TA_OWNER_FULL | TA_OWNER_WARM)) != 0 || h->Profiled == NULL)
		return 0;
	struct ta_cachelist *s = &h->Profiled->Lists[pg->Class];
	if (s->Room == 0 || !ta_sane(pg, p))
		return 0;
	ta_push_cached(s, p);
	if (other != TA_OWNER_FULL && UNLIKELY(--s->Credit <= 0))
		ta_page_empty(pg);
	return 1;
}

#endif
