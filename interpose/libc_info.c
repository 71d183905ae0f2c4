// Questions about blocks and the heap by functions of glibc: malloc_usable_size, malloc_trim,
// mallinfo and related ones.
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // mallinfo is, and is ours to provide
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "heap.h"
#include "libc_malloc.h"
#include "libc_symbol.h"
#include "boot.h"
#include "exports.h"
#include "tieralloc.h"

// If malloc passes on to libc, so do these functions.
#define PASS_ON(name, ...) \
	do { \
		if (ta_passes()) { \
			__typeof__(&name) f = (__typeof__(&name))ta_symbol_next(#name); \
			if (f != NULL) \
				return f(__VA_ARGS__); \
		} \
	} while (0)

static int ta_passes(void)
{
	ta_ready();
	return ta_mode == TA_PASS;
}

// The usable size of the live block p, or TA_NOT_OURS if p is not in this heap. Anything else ends
// the process, with a line that names fn.
HOT size_t ta_usable(void *p, const char *fn)
{
	ta_page *pg = ta_lookup(p);
	if (pg == NULL)
		return ta_slot_has(p) ? TA_SLOT : TA_NOT_OURS;
	if (pg->Owner > TA_OWNER_HUGE && LIKELY(ta_sane(pg, p)))
		return pg->Size;
	if (pg->Owner == TA_OWNER_HUGE && pg->Start + pg->Gap == (uint64_t)p && !ta_flags.Secure)
		return pg->Size - pg->Gap;
	intptr_t n = (intptr_t)ta_go_usable((uintptr_t)p);
	if (n < 0)
		ta_misuse(fn, p, ~n, TA_NO_SIZE);
	return n;
}

// malloc_usable_size for a pointer that is not a plain block, or for a thread without a heap.
HOT NOINLINE size_t ta_usable_slow(void *p, const char *fn)
{
	ta_heap *h = ta_enter();
	if (h != NULL) {
		h->Calls[TA_CALL_USABLE_SIZE]++;
		ta_leave(h);
	}
	if (p == NULL)
		return 0;
	size_t n = ta_usable(p, fn);
	if (n != TA_NOT_OURS)
		return n;
	if (ta_mode == TA_PASS || ta_libc_has(p))
		return ta_pass_usable(p);
	if (!ta_loader_has(p))
		ta_misuse(fn, p, TA_FREE_FOREIGN, TA_NO_SIZE);
	return 0;
}

HOT EXPORT size_t malloc_usable_size(void *p)
{
	ta_page *pg = ta_lookup(p);
	if (UNLIKELY(pg == NULL || pg->Owner <= TA_OWNER_HUGE || !ta_sane(pg, p) ||
			ta_self == &ta_heap_none))
		return ta_usable_slow(p, "malloc_usable_size");
	ta_self->Calls[TA_CALL_USABLE_SIZE]++;
	return pg->Size;
}

EXPORT int malloc_trim(size_t pad)
{
	PASS_ON(malloc_trim, pad); // ours has no top to leave a pad at
	ta_heap *h = ta_enter();
	if (h == NULL)
		return 0;
	h->Calls[TA_CALL_TRIM]++;
	uintptr_t n = ta_go_trim((uintptr_t)h);
	ta_leave(h);
	return n > 0;
}

// Parameters of glibc steer glibc's algorithm and change nothing here. mallopt accepts what glibc
// accepts, unknown parameters too, so that programs that check the result go on.
EXPORT int mallopt(int param, int value)
{
	PASS_ON(mallopt, param, value);
	const int largest_fastbin = 160; // 80 * sizeof(size_t) / 4
	return param != M_MXFAST || (value >= 0 && value <= largest_fastbin);
}

static ta_stats current(void)
{
	ta_stats s = {.size = sizeof s};
	if (ta_get_stats(&s) != 0)
		memset(&s, 0, sizeof s);
	return s;
}

// The figures in glibc's terms. An arena is the memory for blocks of classes. mmapped blocks are
// huge blocks. There are no fastbins.
EXPORT struct mallinfo2 mallinfo2(void)
{
	PASS_ON(mallinfo2);
	ta_stats s = current();
	size_t in_use = s.bytes_live - s.huge_bytes_live;
	size_t arena = s.bytes_committed - s.huge_bytes_live;
	return (struct mallinfo2){
		.arena = arena,
		.ordblks = s.spans_free,
		.hblks = s.huge_blocks_live,
		.hblkhd = s.huge_bytes_live,
		.uordblks = in_use,
		.fordblks = arena - in_use,
		.keepcost = s.bytes_cached,
	};
}

static int clamp(size_t n) { return n > INT_MAX ? INT_MAX : (int)n; }

EXPORT struct mallinfo mallinfo(void)
{
	PASS_ON(mallinfo);
	struct mallinfo2 m = mallinfo2();
	return (struct mallinfo){
		.arena = clamp(m.arena),
		.ordblks = clamp(m.ordblks),
		.hblks = clamp(m.hblks),
		.hblkhd = clamp(m.hblkhd),
		.uordblks = clamp(m.uordblks),
		.fordblks = clamp(m.fordblks),
		.keepcost = clamp(m.keepcost),
	};
}

// The sizes are those of free blocks, as in glibc's.
EXPORT int malloc_info(int options, FILE *out)
{
	enum { CLASSES = 256 };
	struct {
		uintptr_t size, blocks;
	} list[CLASSES];
	PASS_ON(malloc_info, options, out);
	if (options != 0)
		return EINVAL;
	ta_stats s = current();
	uintptr_t classes = ta_go_sizes(ta_token(), (uintptr_t)list, CLASSES);
	int (*print)(FILE *, const char *, ...) = TA_RARE(fprintf);
	print(out, "<malloc version=\"tieralloc-1\">\n<heap nr=\"0\">\n<sizes>\n");
	for (uintptr_t i = 0; i < classes; i++)
		print(out, "  <size from=\"%zu\" to=\"%zu\" total=\"%zu\" count=\"%zu\"/>\n", list[i].size,
			list[i].size, list[i].size * list[i].blocks, list[i].blocks);
	int n = print(out,
		"</sizes>\n"
		"<total type=\"rest\" count=\"%ju\" size=\"%ju\"/>\n"
		"<total type=\"mmap\" count=\"%ju\" size=\"%ju\"/>\n"
		"<system type=\"current\" size=\"%ju\"/>\n"
		"<system type=\"max\" size=\"%ju\"/>\n"
		"<aspace type=\"total\" size=\"%ju\"/>\n"
		"</heap>\n"
		"</malloc>\n",
		(uintmax_t)s.spans_free, (uintmax_t)s.bytes_cached, (uintmax_t)s.huge_blocks_live,
		(uintmax_t)s.huge_bytes_live, (uintmax_t)s.bytes_committed, (uintmax_t)s.bytes_peak,
		(uintmax_t)s.bytes_mapped);
	return n < 0 ? -1 : 0;
}

// Writes the report in glibc's format, for programs that parse it. All memory is mapped, so the
// maximum that was mapped is the peak of the whole. As in glibc this is not a cancellation point: a
// cancelled thread first writes all of it.
EXPORT void malloc_stats(void)
{
	PASS_ON(malloc_stats);
	ta_stats s = current();
	int state;
	TA_RARE(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &state);
	TA_RARE(fprintf)
	(stderr,
		"Arena 0:\n"
		"system bytes     = %10ju\n"
		"in use bytes     = %10ju\n"
		"Total (incl. mmap):\n"
		"system bytes     = %10ju\n"
		"in use bytes     = %10ju\n"
		"max mmap bytes   = %10ju\n",
		(uintmax_t)(s.bytes_committed - s.huge_bytes_live),
		(uintmax_t)(s.bytes_live - s.huge_bytes_live), (uintmax_t)s.bytes_committed,
		(uintmax_t)s.bytes_live, (uintmax_t)s.bytes_peak);
	TA_RARE(pthread_setcancelstate)(state, NULL);
}
