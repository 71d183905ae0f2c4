// realloc and reallocarray.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "exports.h"

// Counts one call and its effects. All arguments but the call are constants, mostly 0.
static inline __attribute__((always_inline)) void tally(
	unsigned call, unsigned allocs, unsigned frees, unsigned fail)
{
	ta_heap *h = ta_self;
	int enters = h == &ta_heap_none;
	if (UNLIKELY(enters)) {
		h = ta_enter();
		if (h == NULL)
			return;
	}
	h->Calls[call]++;
	h->Calls[TA_CALL_REALLOC_ALLOCS] += allocs;
	h->Calls[TA_CALL_REALLOC_FREES] += frees;
	h->Calls[TA_CALL_OTHER_FAILED] += fail;
	h->Calls[TA_CALL_REALLOC_FAILED] += fail;
	if (UNLIKELY(enters))
		ta_leave(h);
}

// Whether a block of old bytes serves a request for n bytes, n not 0.
static inline int stays(size_t n, size_t old)
{
	return n <= old && (n >= old / 2 || old <= 8 * TA_GRANULE) && LIKELY(!ta_flags.Secure);
}

// Allocates n bytes with the hint of the old block, if it has one. A failure does not count as a
// call of malloc.
HOT static void *fresh(size_t n, void *old, void *caller)
{
	ta_page *pg = ta_lookup(old);
	void *p = NULL;
	if (LIKELY(pg == NULL || pg->Hint == ta_self->Hint)) {
		p = ta_malloc_any(n);
		if (UNLIKELY(p == NULL && ta_flags.Unusual))
			p = ta_malloc_unusual(n, TA_CALL_REALLOC);
	}
	if (LIKELY(p != NULL))
		return p;
	ta_heap *h = ta_enter();
	if (h == NULL)
		return ta_mode == TA_PASS ? ta_libc.malloc(n) : NULL;
	p = (void *)(ta_go_renew((uintptr_t)h, n, ta_by_caller(caller), (uintptr_t)old) & ~TA_ZERO_BIT);
	ta_leave(h);
	return p;
}

static void copied(void *p, size_t n)
{
	ta_heap *h = ta_enter();
	if (h == NULL)
		return;
	ta_go_copied((uintptr_t)h, (uintptr_t)p, n);
	ta_leave(h);
}

HOT static void *resize(void *p, size_t n)
{
	ta_heap *h = ta_enter();
	if (h == NULL)
		return NULL;
	void *q = (void *)ta_go_resize((uintptr_t)h, (uintptr_t)p, n);
	ta_leave(h);
	return q;
}

static void *out_of_memory(unsigned call)
{
	tally(call, 0, 0, 1);
	errno = ENOMEM;
	return NULL;
}

// realloc of a pointer that is in no page.
static NOINLINE void *realloc_foreign(void *p, size_t n, const char *fn, void *caller)
{
	if (ta_mode == TA_PASS || ta_libc_has(p))
		return ta_pass_realloc(p, n);
	if (!ta_loader_has(p))
		ta_misuse(fn, p, TA_FREE_FOREIGN, TA_NO_SIZE);
	// The first allocations of the loader have no size. Each lies within the rest of one page, so
	// reading n bytes up to a page boundary is safe.
	void *q = fresh(n, NULL, caller);
	if (q == NULL)
		return errno = ENOMEM, NULL;
	size_t room = 4096 - (uintptr_t)p % 4096;
	return memcpy(q, p, n < room ? n : room);
}

HOT NOINLINE void *ta_realloc_as(void *p, size_t n, unsigned call, const char *fn, void *caller)
{
	if (UNLIKELY(ta_mode != TA_ACTIVE)) {
		ta_heap *h = ta_enter(); // boots
		if (h != NULL)
			ta_leave(h);
		if (ta_mode == TA_PASS && ta_lookup(p) == NULL)
			return ta_pass_realloc(p, n);
	}
	if (p == NULL) {
		void *q = fresh(n, NULL, caller);
		if (q == NULL)
			return out_of_memory(call);
		tally(call, 1, 0, 0);
		return q;
	}
	size_t old = ta_usable(p, fn);
	if (UNLIKELY(old == TA_NOT_OURS))
		return realloc_foreign(p, n, fn, caller);
	if (UNLIKELY(n == 0)) {
		tally(call, 0, 1, 0);
		ta_free_any(p, fn, TA_CALL_FREE_NULL, TA_NO_SIZE);
		return NULL;
	}
	if (stays(n, old)) {
		tally(call, 0, 0, 0);
		return p;
	}
	// it may grow where it is, and the kernel moves pages at less cost than a copy
	if (ta_flags.Secure || (old >= TA_IN_PLACE_MIN && n >= TA_IN_PLACE_MIN)) {
		void *q = resize(p, n);
		if (q != NULL) {
			tally(call, 0, 0, 0);
			return q;
		}
	}
	void *q = fresh(n, p, caller);
	if (q == NULL) {
		if (n > old)
			return out_of_memory(call);
		tally(call, 0, 0, 0);
		return p;
	}
	memcpy(q, p, n < old ? n : old);
	if (UNLIKELY(ta_flags.Throttled))
		copied(q, n < old ? n : old);
	ta_free_any(p, fn, TA_CALL_FREE_NULL, TA_NO_SIZE);
	tally(call, 1, 1, 0);
	return q;
}

HOT EXPORT void *realloc(void *p, size_t n)
{
	ta_page *pg = ta_lookup(p);
	ta_heap *h = ta_self;
	if (pg != NULL && pg->Owner > TA_OWNER_HUGE && n != 0 && stays(n, pg->Size) && ta_sane(pg, p) &&
		LIKELY(h != &ta_heap_none)) {
		h->Calls[TA_CALL_REALLOC]++;
		return p;
	}
	return ta_realloc_as(p, n, TA_CALL_REALLOC, "realloc", CALLER);
}

// The realloc of a program that defines its own, or of a library that is preloaded before this one,
// or NULL. Many such programs have no reallocarray, and libc's calls their realloc.
static void *(*theirs)(void *, size_t);

HOT void ta_derived_resolve(void)
{
	static const ta_symbol_name name HOT_DATA = "realloc";
	ta_symbols_before(&theirs, &name, 1);
}

HOT EXPORT void *reallocarray(void *p, size_t a, size_t b)
{
	size_t n;
	if (__builtin_mul_overflow(a, b, &n))
		return out_of_memory(TA_CALL_REALLOCARRAY);
	ta_ready();
	if (UNLIKELY(theirs != NULL))
		return theirs(p, n);
	return ta_realloc_as(p, n, TA_CALL_REALLOCARRAY, "reallocarray", CALLER);
}

HOT EXPORT __attribute__((alias("realloc"))) void *__libc_realloc(void *p, size_t n);
