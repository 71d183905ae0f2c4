// The functions that jemalloc adds to the malloc family. A program that is linked with jemalloc
// (redis, valkey) mixes them with malloc, realloc, free and malloc_usable_size, so they share these
// functions' heap. The arena and the thread cache that the flags name are jemalloc's affair: no
// block is taken from them.
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include "boot.h"
#include "libc_malloc.h"
#include "libc_symbol.h"

enum { LG_ALIGN = 0x3f, ZERO = 0x40 }; // of the flags; the other bits name arena and thread cache

// jemalloc's functions, if there are any. While malloc passes on to jemalloc, so do ours.
static struct { // in the order of names
	void *(*mallocx)(size_t, int);
	void *(*rallocx)(void *, size_t, int);
	size_t (*xallocx)(void *, size_t, size_t, int);
	size_t (*sallocx)(const void *, int);
	void (*dallocx)(void *, int);
	void (*sdallocx)(void *, size_t, int);
	size_t (*nallocx)(size_t, int);
} theirs;

// Two threads may find them at the same time, because they store the same values.
static NOINLINE void find(void)
{
	static const ta_symbol_name names[] = {
		"mallocx", "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx"};
	enum { N = sizeof names / sizeof *names };
	_Static_assert(sizeof theirs == N * sizeof(void *), "one name each");
	static int found;
	if (__atomic_load_n(&found, __ATOMIC_ACQUIRE))
		return;
	ta_symbols_next(&theirs, names, N);
	__atomic_store_n(&found, 1, __ATOMIC_RELEASE);
}

// Whether a call for the block p, or for a new one, passes on. Blocks of ta_alloc are ours even
// then.
static int passes(const void *p)
{
	ta_ready();
	if (LIKELY(ta_mode != TA_PASS) || ta_lookup(p) != NULL)
		return 0;
	find();
	return theirs.mallocx != NULL;
}

static size_t align_of(int flags) { return (size_t)1 << (flags & LG_ALIGN); }

static void *zeroed(size_t n, void *caller)
{
	void *p = ta_malloc_any(n);
	if (p == NULL)
		return ta_calloc_slow(n, caller);
	ta_self->Calls[TA_CALL_CALLOC]++;
	return memset(p, 0, n);
}

// Allocates n bytes. All of the real size is cleared, not n bytes alone: rallocx does not clear
// what the old block had.
static void *allocate(size_t n, int flags, void *caller)
{
	size_t align = align_of(flags), cleared = 0;
	void *p;
	if (align > TA_GRANULE) {
		p = ta_memalign(align, n, TA_CALL_MEMALIGN, caller);
	} else if (flags & ZERO) {
		p = zeroed(n, caller);
		cleared = n;
	} else {
		p = ta_malloc_any(n);
		if (UNLIKELY(p == NULL))
			p = ta_malloc_slow(n, caller);
	}
	if (p != NULL && flags & ZERO) {
		size_t room = ta_usable(p, "mallocx");
		if (room != TA_NOT_OURS && room > cleared)
			memset((char *)p + cleared, 0, room - cleared);
	}
	return p;
}

EXPORT void *mallocx(size_t n, int flags)
{
	return passes(NULL) ? theirs.mallocx(n, flags) : allocate(n, flags, CALLER);
}

// Resizes a block of old bytes that is to begin at a multiple of an alignment.
static void *resize_aligned(void *p, size_t old, size_t n, int flags, void *caller)
{
	if ((uintptr_t)p % align_of(flags) == 0 && n <= old && n >= old / 2)
		return p;
	void *q = ta_memalign(align_of(flags), n, TA_CALL_MEMALIGN, caller);
	if (q == NULL)
		return NULL;
	size_t room = ta_usable(q, "rallocx"); // more than n bytes may be known to be zero
	if (room == TA_NOT_OURS)
		room = n;
	memcpy(q, p, room < old ? room : old);
	ta_free_any(p, "rallocx", TA_CALL_FREE_NULL, TA_NO_SIZE);
	return q;
}

EXPORT void *rallocx(void *p, size_t n, int flags)
{
	if (passes(p))
		return theirs.rallocx(p, n, flags);
	if (p == NULL)
		return allocate(n, flags, CALLER);
	int aligned = align_of(flags) > TA_GRANULE;
	size_t old = aligned || flags & ZERO ? ta_usable_slow(p, "rallocx") : 0;
	if (n == 0) // jemalloc does not say; realloc would free the block
		n = 1;
	void *q = aligned ? resize_aligned(p, old, n, flags, CALLER) :
						ta_realloc_as(p, n, TA_CALL_REALLOC, "rallocx", CALLER);
	if (q != NULL && flags & ZERO) {
		size_t room = ta_usable_slow(q, "rallocx");
		if (room > old)
			memset((char *)q + old, 0, room - old);
	}
	return q;
}

// No block grows or shrinks in place. The result, its real size, says so.
EXPORT size_t xallocx(void *p, size_t n, size_t extra, int flags)
{
	return passes(p) ? theirs.xallocx(p, n, extra, flags) : ta_usable_slow(p, "xallocx");
}

EXPORT size_t sallocx(const void *p, int flags)
{
	return passes(p) ? theirs.sallocx(p, flags) : ta_usable_slow((void *)p, "sallocx");
}

EXPORT void dallocx(void *p, int flags)
{
	if (passes(p))
		theirs.dallocx(p, flags);
	else
		ta_free_any(p, "dallocx", TA_CALL_FREE_NULL, TA_NO_SIZE);
}

// The size may be any from the requested to the real one, so it is not checked.
EXPORT void sdallocx(void *p, size_t n, int flags)
{
	if (passes(p))
		theirs.sdallocx(p, n, flags);
	else
		ta_free_any(p, "sdallocx", TA_CALL_FREE_NULL, TA_NO_SIZE);
}

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) & ~(unit - 1); }

// The size of the blocks of the class that serves n bytes (sizeclass.Size).
static size_t class_size(size_t n)
{
	return n <= 128 ? round_up(n, TA_GRANULE) :
					  round_up(n, (size_t)1 << (60 - __builtin_clzl(n - 1)));
}

// The real size of a block that mallocx would return, or 0 if it would return none. A block above
// the largest class may be larger: see hugeCached, and hugeAlloc for what may lie before it.
EXPORT size_t nallocx(size_t n, int flags)
{
	if (passes(NULL))
		return theirs.nallocx(n, flags);
	size_t align = align_of(flags), most = PTRDIFF_MAX;
	if (n > most - (1ul << TA_SLICE_SHIFT) || align > most / 2)
		return 0;
	if (UNLIKELY(ta_flags.Secure))
		return n;
	size_t size = class_size(round_up(n > 0 ? n : 1, align > TA_GRANULE ? align : TA_GRANULE));
	if (align <= 1ul << TA_SLICE_SHIFT && size <= TA_MAX_CLASS)
		return size;
	size = round_up(n, 1ul << TA_SLICE_SHIFT);
	if (align <= TA_LINE)
		size -= TA_LEAD_IN_MOST;
	return size > n ? size : n;
}
