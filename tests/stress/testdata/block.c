// The blocks of a storm: sizes, functions, patterns.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "storm.h"

#define LARGE      (256u << 10)
#define LARGE_LIVE (192u << 20) // no further large blocks beyond this many bytes

uint64_t storm_seed;
static _Atomic int64_t large_live;

// splitmix64: every state is good, and streams from different seeds do not meet.
uint64_t storm_random(struct lane *l)
{
	uint64_t z = l->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t storm_below(struct lane *l, uint64_t n) { return storm_random(l) % n; }

// Writes straight to the descriptor: stdio would allocate, and the heap may be
// broken.
_Noreturn void storm_fail(struct lane *l, const char *format, ...)
{
	char text[400];
	int n = snprintf(text, sizeof text, "storm: seed %lu lane %u op %lu pid %d: ", storm_seed,
		l->number, l->ops, (int)getpid());
	va_list args;
	va_start(args, format);
	n += vsnprintf(text + n, sizeof text - n - 1, format, args);
	va_end(args);
	if (n > (int)sizeof text - 2)
		n = sizeof text - 2;
	text[n++] = '\n';
	if (write(2, text, n) < 0)
		_exit(2);
	abort();
}

// Sizes at which allocators change their ways: where classes, pages and mappings
// begin and end.
static const size_t edges[] = {16, 128, 1024, 4096, 8192, 32768, 65536, 131072};

// Most blocks are small, so that the operations are many: byte for byte, one
// block of 20 MiB costs as much as a hundred thousand small ones.
static size_t random_size(struct lane *l, int small)
{
	uint64_t r = storm_below(l, 100000);
	if (small && r < 2500)
		r = 50000;
	if (r < 8 && large_live < LARGE_LIVE)
		return (1u << 20) + storm_below(l, 19u << 20);
	if (r < 200 && large_live < LARGE_LIVE)
		return storm_below(l, (64u << 10) << storm_below(l, 5)); // to 1 MiB
	if (r < 2500)
		return storm_below(l, 4096u << storm_below(l, 5)); // to 64 KiB
	if (r < 3000)
		return edges[storm_below(l, 8)] - 2 + storm_below(l, 5);
	if (r < 20000)
		return storm_below(l, 256u << storm_below(l, 5)); // to 4 KiB
	return storm_below(l, 16u << storm_below(l, 5));      // to 256 B, 0 among them
}

static void account(const struct block *b, int sign)
{
	if (b->n >= LARGE)
		atomic_fetch_add_explicit(&large_live, sign * (int64_t)b->n, memory_order_relaxed);
}

// Word i of a block, by its id. Loops over it vectorise.
static uint64_t word(uint64_t id, size_t i) { return id ^ (uint64_t)i * 0x0101010101010101u; }

static void fill(const struct block *b)
{
	size_t words = b->n / 8;
	uint64_t *w = (uint64_t *)b->p;
	for (size_t i = 0; i < words; i++)
		w[i] = word(b->id, i);
	uint64_t last = word(b->id, words);
	memcpy(b->p + words * 8, &last, b->n % 8);
}

// Whether the first n bytes are the pattern's.
static int holds(const struct block *b, size_t n)
{
	size_t words = n / 8;
	const uint64_t *w = (const uint64_t *)b->p;
	uint64_t wrong = 0;
	for (size_t i = 0; i < words; i++)
		wrong |= w[i] ^ word(b->id, i);
	uint64_t last = word(b->id, words);
	return wrong == 0 && memcmp(b->p + words * 8, &last, n % 8) == 0;
}

static void check(struct lane *l, const struct block *b, size_t n, const char *when)
{
	if (holds(b, n))
		return;
	for (size_t i = 0; i < n; i++) {
		unsigned char want = word(b->id, i / 8) >> i % 8 * 8;
		if (b->p[i] != want)
			storm_fail(l,
				"%s: block %p of %zu bytes (made by lane %lu): byte %zu is %02x, not %02x", when,
				(void *)b->p, b->n, b->id & 63, i, b->p[i], want);
	}
	storm_fail(l, "%s: block %p changed while it was looked at", when, (void *)b->p);
}

void block_check(struct lane *l, const struct block *b, const char *when)
{
	check(l, b, b->n, when);
}

static void check_zero(struct lane *l, const struct block *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->p[i] != 0)
			storm_fail(l, "calloc(%zu) = %p: byte %zu is %02x", b->n, (void *)b->p, i, b->p[i]);
}

// Takes a fresh block of at least n bytes at a multiple of align into use.
static struct block adopt(struct lane *l, void *p, size_t n, size_t align, const char *by)
{
	if (p == NULL)
		storm_fail(l, "%s of %zu bytes failed", by, n);
	if ((uintptr_t)p % align != 0)
		storm_fail(l, "%s(%zu) = %p is not a multiple of %zu", by, n, p, align);
	struct block b = {.p = p, .n = n};
	// The low bits name the lane, the others are unlike those of other blocks.
	b.id = (++l->next_id * 0x9e3779b97f4a7c15u & ~63ul) | l->number;
	return b;
}

static struct block make_aligned(struct lane *l, size_t n)
{
	size_t align = 16u << storm_below(l, storm_below(l, 64) == 0 ? 15 : 8);
	void *p = NULL;
	switch (storm_below(l, 3)) {
	case 0:
		l->calls.memalign++;
		return adopt(l, memalign(align, n), n, align, "memalign");
	case 1:
		l->calls.aligned_alloc++;
		return adopt(l, aligned_alloc(align, n), n, align, "aligned_alloc");
	default:
		l->calls.posix_memalign++;
		if (posix_memalign(&p, align, n) != 0)
			p = NULL;
		return adopt(l, p, n, align, "posix_memalign");
	}
}

static struct block make(struct lane *l, int small)
{
	size_t n = random_size(l, small);
	uint64_t r = storm_below(l, 16);
	struct block b;
	if (r < 3) {
		l->calls.calloc++;
		b = adopt(l, calloc(1, n), n, 16, "calloc");
		check_zero(l, &b);
	} else if (r < 5) {
		b = make_aligned(l, n);
	} else if (r < 6) {
		l->calls.realloc++;
		b = adopt(l, realloc(NULL, n), n, 16, "realloc");
	} else {
		l->calls.malloc++;
		b = adopt(l, malloc(n), n, 16, "malloc");
	}
	if (storm_below(l, 16) == 0) {
		l->calls.usable++;
		size_t usable = malloc_usable_size(b.p);
		if (usable < n)
			storm_fail(l, "%zu of %zu bytes at %p are usable", usable, n, (void *)b.p);
		b.n = usable;
	}
	account(&b, 1);
	fill(&b);
	return b;
}

struct block block_make(struct lane *l) { return make(l, 0); }

struct block block_make_small(struct lane *l) { return make(l, 1); }

void block_free(struct lane *l, struct block *b)
{
	block_check(l, b, "free");
	account(b, -1);
	free(b->p);
	l->calls.free++;
	b->p = NULL;
}

void block_resize(struct lane *l, struct block *b)
{
	size_t n = random_size(l, 0);
	uint64_t r = storm_below(l, 8);
	if (r < 3) // grow or shrink by a little, as buffers do
		n = b->n / 2 + storm_below(l, b->n + 64);
	block_check(l, b, "realloc");
	account(b, -1);
	l->calls.realloc++;
	void *p = realloc(b->p, n);
	if (n == 0) { // glibc frees the block and returns NULL
		if (p != NULL)
			storm_fail(l, "realloc(%p, 0) = %p", (void *)b->p, p);
		b->p = NULL;
		return;
	}
	if (p == NULL || (uintptr_t)p % 16 != 0)
		storm_fail(l, "realloc(%p of %zu, %zu) = %p", (void *)b->p, b->n, n, p);
	b->p = p;
	check(l, b, n < b->n ? n : b->n, "after realloc");
	b->n = n;
	b->id ^= 0x5555555555555540u;
	account(b, 1);
	fill(b);
}
