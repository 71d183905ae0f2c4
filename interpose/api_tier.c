// Tiers for programs that are written for the library: ta_alloc, ta_move and related functions.
#include <errno.h>
#include <string.h>
#include "libc_malloc.h"
#include "exports.h"
#include "tieralloc.h"

// Go numbers the hints from 0 (internal/config), and NO_HINT is its tiers.NoHint.
enum { NO_HINT = 8 };

static inline uintptr_t number_of(ta_hint hint)
{
	return hint == TA_DEFAULT ? NO_HINT : (uintptr_t)hint - TA_HOT;
}

static inline ta_hint hint_of(uintptr_t number)
{
	return number == NO_HINT ? TA_DEFAULT : (ta_hint)(number + TA_HOT);
}

// Pops a block from the thread's heap for the hint, as ta_malloc_fast does from the base heap.
static inline void *alloc_fast(size_t n, ta_hint hint)
{
	ta_heap *h = hint == TA_DEFAULT ? NULL : ta_self->Thread->Heaps[hint - TA_HOT];
	if (UNLIKELY(h == NULL || n > TA_MAX_CLASS))
		return NULL;
	void *p = ta_pop(n <= TA_DIRECT_MAX ? h->Direct[(n + 15) >> 4] : h->Cur[ta_class(n)]);
	if (LIKELY(p != NULL))
		h->Calls[TA_CALL_TA_ALLOC]++;
	return p;
}

EXPORT void *ta_alloc(size_t bytes, ta_hint hint)
{
	if (UNLIKELY((unsigned)hint > TA_PREFER_FAST))
		return ta_failed(TA_CALL_TA_ALLOC, EINVAL);
	void *fast = alloc_fast(bytes, hint);
	if (LIKELY(fast != NULL))
		return fast;
	ta_ready();
	if (ta_flags.Disabled)
		return ta_libc.malloc(bytes);
	ta_heap *h = ta_enter_heap();
	if (h == NULL)
		return errno = ENOMEM, NULL;
	void *p = (void *)(ta_go_alloc((uintptr_t)h, bytes, number_of(hint)) & ~TA_ZERO_BIT);
	h->Calls[TA_CALL_TA_ALLOC]++;
	if (p == NULL) {
		h->Calls[TA_CALL_OTHER_FAILED]++;
		errno = ENOMEM;
	}
	ta_leave(h);
	return p;
}

EXPORT void ta_free(void *p)
{
	ta_heap *h = ta_self;
	if (UNLIKELY(h == &ta_heap_none || p == NULL))
		return ta_free_as(p, TA_CALL_TA_FREE, "ta_free", TA_CALL_OTHER_FREE_NULL, TA_NO_SIZE);
	h->Calls[TA_CALL_TA_FREE]++;
	ta_free_any(p, "ta_free", TA_CALL_OTHER_FREE_NULL, TA_NO_SIZE);
}

EXPORT ta_hint ta_set_hint(ta_hint hint)
{
	if ((unsigned)hint > TA_PREFER_FAST)
		return errno = EINVAL, (ta_hint)-1;
	ta_heap *h = ta_enter();
	if (h == NULL)
		return TA_DEFAULT;
	ta_hint before = hint_of(ta_go_set_hint((uintptr_t)h, number_of(hint)));
	ta_leave(h);
	return before;
}

EXPORT ta_hint ta_set_default_hint(ta_hint hint)
{
	if ((unsigned)hint > TA_PREFER_FAST)
		return errno = EINVAL, (ta_hint)-1;
	ta_ready();
	ta_heap *h = ta_flags.Disabled ? NULL : ta_enter_heap();
	if (h == NULL)
		return TA_WARM;
	ta_hint before = hint_of(ta_go_set_default_hint((uintptr_t)h, number_of(hint)));
	ta_leave(h);
	return before;
}

EXPORT int ta_tier_of(const void *p)
{
	uintptr_t tier = ta_go_tier_of((uintptr_t)p);
	return tier <= TA_SLOW ? (int)tier : (errno = EINVAL, -1);
}

EXPORT int ta_tier_of_range(const void *p, size_t offset, size_t n, size_t bytes[3])
{
	if (bytes == NULL)
		return errno = EINVAL, -1;
	int error = (int)ta_go_tier_of_range((uintptr_t)p, offset, n, (uintptr_t)bytes);
	return error == 0 ? 0 : (errno = error, -1);
}

enum { ERRNO_MAX = 4095 };

EXPORT void *ta_move(void *p, ta_tier dst)
{
	ta_heap *h = ta_flags.Disabled ? NULL : ta_enter_heap();
	if (h == NULL)
		return errno = ta_flags.Disabled ? EINVAL : ENOMEM, NULL;
	uintptr_t to = ta_go_move((uintptr_t)h, (uintptr_t)p, (uintptr_t)dst);
	h->Calls[TA_CALL_TA_MOVE]++;
	int copies = to > ERRNO_MAX && to != (uintptr_t)p;
	h->Calls[TA_CALL_REALLOC_ALLOCS] += copies;
	h->Calls[TA_CALL_REALLOC_FREES] += copies;
	if (copies) {
		size_t n = ta_usable(p, "ta_move");
		memcpy((void *)to, p, n);
		if (ta_flags.Throttled) {
			ta_go_copied((uintptr_t)h, (uintptr_t)p, n);
			ta_go_copied((uintptr_t)h, to, n);
		}
	}
	ta_leave(h);
	if (to <= ERRNO_MAX)
		return errno = (int)to, NULL;
	if (copies)
		ta_free_any(p, "ta_move", TA_CALL_FREE_NULL | TA_HOW_ANY, TA_NO_SIZE);
	return (void *)to;
}
