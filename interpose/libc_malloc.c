// malloc and its family: the functions of the C library over the heap.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "boot.h"
#include "libc_malloc.h"
#include "libc_profile.h"
#include "libc_secure.h"
#include "exports.h"

static inline void count(ta_heap *h, unsigned call) { h->Calls[call]++; }

HOT static NOINLINE void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

// Counts a failed call of a function other than malloc, and returns NULL with errno.
NOINLINE void *ta_failed(unsigned call, int error)
{
	ta_heap *h = ta_enter();
	if (h != NULL) {
		count(h, call);
		count(h, TA_CALL_OTHER_FAILED);
		ta_leave(h);
	}
	errno = error;
	return NULL;
}

// Allocates in place of ta_malloc_fast where that serves nothing: with TA_SECURE=1, and while
// TA_PROFILE samples blocks. NULL: the slow path serves. A block for calloc is zero.
void *ta_malloc_unusual(size_t n, unsigned how)
{
	if (UNLIKELY(ta_flags.Secure))
		return ta_secure_malloc(n, how);
	void *p = ta_profile_malloc(n);
	return p != NULL && (how & TA_HOW_CALL) == TA_CALL_CALLOC ? memset(p, 0, n) : p;
}

static NOINLINE int free_secure(ta_page *pg, void *p, const char *fn, unsigned how, size_t size)
{
	return ta_secure_free(pg, p, fn, how, size), 1;
}

// Frees p in place of ta_free_fast, or returns 0.
static NOINLINE int free_unusual(ta_page *pg, void *p, const char *fn, unsigned how, size_t size)
{
	if (UNLIKELY(ta_flags.Secure))
		return free_secure(pg, p, fn, how, size);
	return ta_profile_free(pg, p);
}

HOT static NOINLINE void *serve_malloc(size_t n, void *caller)
{
	void *slot = UNLIKELY(ta_in_control) ? ta_slot_take(n) : NULL;
	if (slot != NULL)
		return slot;
	ta_heap *h = ta_enter();
	if (h == NULL)
		return ta_mode == TA_PASS ? ta_libc.malloc(n) : no_memory();
	void *p = (void *)(ta_go_malloc((uintptr_t)h, n, ta_by_caller(caller), TA_CALL_MALLOC) &
		~TA_ZERO_BIT);
	if (p == NULL)
		count(h, TA_CALL_MALLOC_FAILED);
	ta_leave(h);
	return p != NULL ? p : no_memory();
}

static NOINLINE void *malloc_secure(size_t n, void *caller)
{
	void *p = ta_secure_malloc(n, TA_CALL_MALLOC);
	return LIKELY(p != NULL) ? p : serve_malloc(n, caller);
}

// ta_malloc_slow where ta_malloc_fast serves nothing. It saves no registers while a profile is
// taken.
static NOINLINE void *malloc_unusual(size_t n, void *caller)
{
	if (UNLIKELY(ta_flags.Secure))
		return malloc_secure(n, caller);
	void *p = ta_profile_malloc(n);
	return LIKELY(p != NULL) ? p : serve_malloc(n, caller);
}

HOT NOINLINE void *ta_malloc_slow(size_t n, void *caller)
{
	return UNLIKELY(ta_flags.Unusual) ? malloc_unusual(n, caller) : serve_malloc(n, caller);
}

// ta_malloc_slow for a function that counts its own calls. how names that counter and the family.
HOT NOINLINE void *ta_malloc_other(size_t n, unsigned how, void *caller)
{
	if (UNLIKELY(ta_flags.Unusual)) {
		void *p = ta_malloc_unusual(n, how);
		if (LIKELY(p != NULL)) {
			count(ta_self, how & TA_HOW_CALL);
			return p;
		}
	}
	ta_heap *h = ta_enter();
	if (h == NULL)
		return ta_mode == TA_PASS ? ta_libc.malloc(n) : no_memory();
	void *p = (void *)(ta_go_malloc((uintptr_t)h, n, ta_by_caller(caller), how) & ~TA_ZERO_BIT);
	count(h, how & TA_HOW_CALL);
	if (p == NULL)
		count(h, TA_CALL_OTHER_FAILED);
	ta_leave(h);
	return p != NULL ? p : no_memory();
}

LINE HOT EXPORT void *malloc(size_t n)
{
	void *p = ta_malloc_fast(n);
	return LIKELY(p != NULL) ? p : ta_malloc_slow(n, CALLER);
}

HOT NOINLINE void *ta_calloc_slow(size_t n, void *caller)
{
	if (UNLIKELY(ta_flags.Unusual)) {
		void *p = ta_malloc_unusual(n, TA_CALL_CALLOC);
		if (LIKELY(p != NULL)) {
			count(ta_self, TA_CALL_CALLOC);
			return p;
		}
	}
	void *slot = UNLIKELY(ta_in_control) ? ta_slot_take(n) : NULL;
	if (slot != NULL)
		return slot;
	ta_heap *h = ta_enter();
	if (h == NULL)
		return ta_mode == TA_PASS ? ta_libc.calloc(1, n) : no_memory();
	uintptr_t r = ta_go_malloc((uintptr_t)h, n, ta_by_caller(caller), TA_CALL_CALLOC);
	count(h, TA_CALL_CALLOC);
	if (r == 0)
		count(h, TA_CALL_OTHER_FAILED);
	ta_leave(h);
	if (r == 0)
		return no_memory();
	void *p = (void *)(r & ~TA_ZERO_BIT);
	return r & TA_ZERO_BIT ? p : memset(p, 0, n);
}

HOT EXPORT void *calloc(size_t a, size_t b)
{
	size_t n;
	if (UNLIKELY(__builtin_mul_overflow(a, b, &n)))
		return ta_failed(TA_CALL_CALLOC, ENOMEM);
	void *p = ta_malloc_fast(n);
	if (UNLIKELY(p == NULL))
		return ta_calloc_slow(n, CALLER);
	count(ta_self, TA_CALL_CALLOC);
	return memset(p, 0, n);
}

// Pushes a block on the remote-free list of its page, as freeRemote of alloc/freelists.go does.
// Returns 0 if the page's heap wants to be told, or if a summary may have to be settled.
HOT static int push_remote(ta_page *pg, uint64_t *b)
{
	uint64_t old = __atomic_load_n(&pg->Remote, __ATOMIC_RELAXED), next;
	b[1] = TA_FREE_KEY;
	do {
		if (old & TA_REMOTE_NOTIFY || UNLIKELY(ta_torn)) {
			b[1] = 0;
			return 0;
		}
		b[0] = old & TA_REMOTE_ADDR;
		next = (uint64_t)b | ((old >> TA_REMOTE_SHIFT) + 1) << TA_REMOTE_SHIFT |
			(old & TA_REMOTE_IN_FLIGHT);
	} while (!__atomic_compare_exchange_n(
		&pg->Remote, &old, next, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	ta_self->Remotes++;
	return 1;
}

// Creates a remote-free queue to the owner of the page.
static NOINLINE void connect(ta_page *pg)
{
	int saved = errno;
	ta_heap *h = ta_enter_heap();
	if (h != NULL) {
		ta_go_connect((uintptr_t)h, (uintptr_t)pg);
		ta_leave(h);
	}
	errno = saved;
}

// Frees a block that no remote-free queue can take, or a block of the thread's own.
HOT static int free_by(ta_page *pg, ta_heap *owner, uint64_t *b)
{
	if (owner->Thread != ta_self->Thread) {
		if (ta_queue_to(owner) == NULL &&
			ta_self->Remotes % TA_REMOTE_QUEUE_AFTER == TA_REMOTE_QUEUE_AFTER - 1)
			connect(pg);
		return push_remote(pg, b);
	}
	if (pg->Owner & TA_OWNER_FULL)
		return 0;
	ta_push(pg, b);
	return 1;
}

// Frees p, an address in pg, when the fast path cannot.
LINE HOT NOINLINE void ta_free_other(
	ta_page *pg, void *p, const char *fn, unsigned how, size_t size)
{
	if (UNLIKELY(ta_flags.Unusual) && free_unusual(pg, p, fn, how, size))
		return;
	ta_heap *owner = ta_heap_of(pg);
	if ((uint64_t)owner <= TA_OWNER_HUGE || ta_self == &ta_heap_none || !ta_sane(pg, p) ||
		!free_by(pg, owner, p))
		ta_free_checked(p, fn, how, size);
}

// Frees p, which is NULL or lies in no page.
HOT NOINLINE void ta_free_slow(void *p, const char *fn, unsigned how, size_t size)
{
	if (p == NULL && ta_self != &ta_heap_none)
		count(ta_self, how & TA_HOW_CALL);
	else
		ta_free_checked(p, fn, how, size);
}

HOT NOINLINE void *ta_malloc_any(size_t n) { return ta_malloc_fast(n); }

HOT NOINLINE void ta_free_any(void *p, const char *fn, unsigned how, size_t size)
{
	ta_free_fast(p, fn, how, size);
}

HOT NOINLINE void ta_page_empty(ta_page *pg)
{
	int saved = errno;
	ta_heap *h = ta_enter();
	if (h != NULL) {
		if (h->Thread == ta_self->Thread)
			ta_go_page_empty((uintptr_t)h, (uintptr_t)pg);
		ta_leave(h);
	}
	errno = saved;
}

LINE HOT EXPORT void free(void *p) { ta_free_fast(p, "free", TA_CALL_FREE_NULL, TA_NO_SIZE); }

EXPORT void cfree(void *p) { ta_free_any(p, "cfree", TA_CALL_FREE_NULL, TA_NO_SIZE); }

HOT static NOINLINE void *memalign_slow(size_t align, size_t n, unsigned how, void *caller)
{
	ta_heap *h = ta_enter();
	if (h == NULL)
		return ta_mode == TA_PASS ? ta_libc.memalign(align, n) : no_memory();
	void *p = (void *)(ta_go_aligned((uintptr_t)h, align, n, ta_by_caller(caller), how) &
		~TA_ZERO_BIT);
	count(h, how & TA_HOW_CALL);
	if (p == NULL)
		count(h, TA_CALL_OTHER_FAILED);
	ta_leave(h);
	return p != NULL ? p : no_memory();
}

// Pops a block at a multiple of align, a power of two, from a page of the thread, or returns NULL.
// The size is rounded up to a multiple of align: the class of such a size, up to a slice, has
// blocks at multiples of align (alloc.Aligned). Where such blocks are spread, the thread's heap for
// aligned blocks serves. Rules and a profile go by the size before rounding.
HOT static NOINLINE void *memalign_fast(size_t align, size_t n, unsigned how)
{
	if (UNLIKELY(align > 1ul << TA_SLICE_SHIFT || n - 1 >= TA_MAX_CLASS || ta_flags.AlignedSlow))
		return NULL;
	n = (n + align - 1) & ~(align - 1);
	void *p;
	if (align > TA_LINE && n > TA_SPREAD_ABOVE) {
		ta_heap *h = ta_self->AlignedHeap;
		if (UNLIKELY(h == NULL))
			return NULL;
		p = ta_pop(h->Cur[ta_class(n)]);
	} else
		p = ta_malloc_any(n);
	if (LIKELY(p != NULL))
		count(ta_self, how & TA_HOW_CALL);
	return p;
}

// Allocates for memalign and its like; align is a power of two.
HOT NOINLINE void *ta_memalign(size_t align, size_t n, unsigned how, void *caller)
{
	void *p = memalign_fast(align, n, how);
	return LIKELY(p != NULL) ? p : memalign_slow(align, n, how, caller);
}

static int power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// The alignment that memalign uses: the next power of two, as in glibc, or 0 if there is none.
static size_t round_align(size_t align)
{
	if (align <= TA_GRANULE)
		return TA_GRANULE;
	return align > SIZE_MAX / 2 + 1 ? 0 : (size_t)1 << (64 - __builtin_clzl(align - 1));
}

HOT EXPORT void *memalign(size_t align, size_t n)
{
	size_t a = round_align(align);
	if (a == 0)
		return ta_failed(TA_CALL_MEMALIGN, EINVAL);
	return ta_memalign(a, n, TA_CALL_MEMALIGN, CALLER);
}

HOT EXPORT void *aligned_alloc(size_t align, size_t n)
{
	size_t a = round_align(align);
	if (a == 0)
		return ta_failed(TA_CALL_ALIGNED_ALLOC, EINVAL);
	return ta_memalign(a, n, TA_CALL_ALIGNED_ALLOC, CALLER);
}

// POSIX does not require posix_memalign to set errno. Without memory it sets errno as glibc's does,
// because some programs look there. Otherwise it leaves errno.
HOT EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
	int valid = power_of_two(align) && align % sizeof(void *) == 0;
	void *p = LIKELY(valid) ? memalign_fast(align, n, TA_CALL_POSIX_MEMALIGN) : NULL;
	if (LIKELY(p != NULL)) {
		*out = p;
		return 0;
	}
	int saved = errno;
	if (!valid) {
		ta_failed(TA_CALL_POSIX_MEMALIGN, EINVAL);
		errno = saved;
		return EINVAL;
	}
	p = memalign_slow(align, n, TA_CALL_POSIX_MEMALIGN, CALLER);
	if (p == NULL)
		return errno = ENOMEM;
	errno = saved;
	*out = p;
	return 0;
}

enum { PAGE = 4096 };
EXPORT void *valloc(size_t n) { return ta_memalign(PAGE, n, TA_CALL_VALLOC, CALLER); }

EXPORT void *pvalloc(size_t n)
{
	size_t rounded = (n + PAGE - 1) & ~(size_t)(PAGE - 1);
	if (rounded < n)
		return ta_failed(TA_CALL_PVALLOC, ENOMEM);
	return ta_memalign(PAGE, rounded, TA_CALL_PVALLOC, CALLER);
}

#define ALIAS(name) HOT EXPORT __attribute__((alias(#name)))
ALIAS(malloc) void *__libc_malloc(size_t n);
ALIAS(free) void __libc_free(void *p);
ALIAS(calloc) void *__libc_calloc(size_t a, size_t b);
ALIAS(memalign) void *__libc_memalign(size_t align, size_t n);
ALIAS(valloc) void *__libc_valloc(size_t n);
ALIAS(pvalloc) void *__libc_pvalloc(size_t n);
