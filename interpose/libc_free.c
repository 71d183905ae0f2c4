// The slow path of free, and functions that take it.
#include <errno.h>
#include "exports.h"
#include "libc_malloc.h"

// Frees p for the function named fn. If p is not a block, ends the process.
HOT void ta_free_checked(void *p, const char *fn, unsigned how, size_t size)
{
	if (UNLIKELY(ta_slot_has(p))) {
		ta_slot_free(p);
		return;
	}
	int saved = errno;
	uintptr_t why = TA_FREE_FOREIGN;
	// Even when all calls pass on to libc, blocks of ta_alloc are ours.
	ta_heap *h;
	if (p == NULL && ta_mode == TA_ACTIVE)
		h = ta_enter_for_null();
	else
		h = ta_lookup(p) != NULL ? ta_enter_heap() : ta_enter();
	if (h != NULL) {
		if (p != NULL)
			why = ta_go_free((uintptr_t)h, (uintptr_t)p, how, size, (uintptr_t)fn);
		if (why != TA_FREE_OK)
			h->Calls[how & TA_HOW_CALL]++;
		ta_leave(h);
	} else if (ta_mode != TA_PASS) { // no memory for a heap
		why = p != NULL ? ta_go_free_poor(ta_token(), (uintptr_t)p, how, size, (uintptr_t)fn) :
						  TA_FREE_OK;
	}
	if (why == TA_FREE_FOREIGN && p != NULL) {
		if (ta_mode == TA_PASS || ta_libc_has(p))
			ta_pass_free(p);
		else if (!ta_loader_has(p))
			ta_misuse(fn, p, why, size);
	} else if (why != TA_FREE_OK && p != NULL) {
		ta_misuse(fn, p, why, size);
	}
	errno = saved;
}

// Frees p, and counts a call of the function named fn.
void ta_free_as(void *p, unsigned call, const char *fn, unsigned how, size_t size)
{
	ta_heap *h = ta_enter();
	if (h != NULL) {
		h->Calls[call]++;
		ta_leave(h);
	}
	ta_free_checked(p, fn, how, size);
}

EXPORT void free_sized(void *p, size_t n)
{
	ta_free_as(p, TA_CALL_FREE_SIZED, "free_sized", TA_CALL_OTHER_FREE_NULL, n);
}

EXPORT void free_aligned_sized(void *p, size_t align, size_t n)
{
	(void)align;
	ta_free_as(p, TA_CALL_FREE_ALIGNED_SIZED, "free_aligned_sized", TA_CALL_OTHER_FREE_NULL, n);
}
