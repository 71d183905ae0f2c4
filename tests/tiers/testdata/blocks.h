// The driver's blocks, the commands that work on them, and its answers.
#ifndef BLOCKS_H
#define BLOCKS_H
#include "common.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>

enum { NAMES = 16, BLOCKS = 65536, HINTS = TA_PREFER_FAST + 1 };

struct block {
	char name[NAMES];
	void *p;
	size_t size;
	uint64_t seed;
};

static struct block blocks[BLOCKS];
static unsigned block_count;
static uint64_t next_seed = 1;
static size_t watched = SIZE_MAX; // bytes of each block that have contents

static const char *const tiers[] = {"fast", "normal", "slow"};
static const char *const hints[] = {"default", "hot", "warm", "cold", "pin_fast", "prefer_fast"};

static void *object;

// The answer to one line.
struct answer {
	char text[400 << 10];
	size_t n;
	char run[64];
	unsigned count;
};

static struct answer answer;

static void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(answer.text + answer.n, sizeof answer.text - answer.n, format, args);
	va_end(args);
	if (n > 0 && answer.n + n < sizeof answer.text)
		answer.n += n;
}

static void end_run(void)
{
	if (answer.count > 0)
		say("%s%s*%u", answer.n > 0 ? " " : "", answer.run, answer.count);
	answer.count = 0;
}

static void run(const char *what)
{
	if (answer.count > 0 && strcmp(what, answer.run) != 0)
		end_run();
	snprintf(answer.run, sizeof answer.run, "%s", what);
	answer.count++;
}

static const char *error_name(int error)
{
	switch (error) {
	case ENOMEM:
		return "ENOMEM";
	case EINVAL:
		return "EINVAL";
	case EPERM:
		return "EPERM";
	case EBUSY:
		return "EBUSY";
	}
	return "another error";
}

static const char *tier_name(const void *p)
{
	errno = 0;
	int tier = ta_tier_of(p);
	return tier >= 0 && tier <= TA_SLOW ? tiers[tier] : error_name(errno);
}

static int word_of(const char *const *list, unsigned n, const char *text)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(list[i], text) == 0)
			return (int)i;
	return -1;
}

static size_t size_of(const char *text)
{
	char *end;
	size_t n = strtoull(text, &end, 10);
	return *end == 'K' ? n * KIB : *end == 'M' ? n * MIB : n;
}

static void *allocate(const char *how, size_t n)
{
	int hint = word_of(hints, HINTS, how);
	if (hint >= 0)
		return ta_alloc(n, (ta_hint)hint);
	if (strcmp(how, "nohint") == 0)
		return ta_alloc(n, (ta_hint)HINTS);
	if (strcmp(how, "malloc") == 0)
		return malloc(n);
	if (strcmp(how, "realloc") == 0)
		return realloc(NULL, n);
	if (strncmp(how, "memalign:", 9) == 0)
		return memalign(size_of(how + 9), n);
	if (strcmp(how, "calloc") == 0) {
		unsigned char *p = calloc(1, n);
		for (size_t i = 0; p != NULL && i < n; i++)
			CHECK(p[i] == 0, "byte %zu of a calloc of %zu", i, n);
		return p;
	}
	CHECK(object != NULL, "%s", how);
	void *(*f)(size_t) = (void *(*)(size_t))dlsym(object, how);
	CHECK(f != NULL, "%s", how);
	return f(n);
}

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

static void fill(struct block *b) { pattern_fill(b->p, at_most(b->size, watched), b->seed); }

// Verifies the first n bytes.
static void verify(struct block *b, size_t n)
{
	n = at_most(n, watched);
	size_t at = pattern_wrong(b->p, at_most(b->size, watched), n, b->seed);
	CHECK(at == n, "%s: byte %zu of %zu has changed", b->name, at, b->size);
}

static void do_new(char **w)
{
	unsigned count = (unsigned)strtoul(w[2], NULL, 10);
	size_t n = size_of(w[4]);
	for (unsigned i = 0; i < count; i++) {
		errno = 0;
		void *p = allocate(w[3], n);
		if (p == NULL) {
			run(error_name(errno));
			continue;
		}
		CHECK(block_count < BLOCKS, "too many blocks");
		struct block *b = &blocks[block_count++];
		snprintf(b->name, sizeof b->name, "%s", w[1]);
		b->p = p;
		b->size = n;
		b->seed = next_seed++ << 40;
		fill(b);
		run(tier_name(p));
	}
}

static void do_free(char **w)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < block_count; i++) {
		struct block *b = &blocks[i];
		if (strcmp(b->name, w[1]) != 0) {
			blocks[kept++] = *b;
			continue;
		}
		verify(b, b->size);
		errno = 77;
		free(b->p);
		CHECK(errno == 77, "free changes errno");
		run("freed");
	}
	block_count = kept;
}

static void do_resize(struct block *b, size_t n)
{
	verify(b, b->size);
	errno = 0;
	void *p = realloc(b->p, n);
	if (p == NULL) {
		run(error_name(errno));
		return;
	}
	b->p = p;
	verify(b, at_most(n, b->size));
	b->size = n;
	fill(b);
	run(tier_name(p));
}

static void do_move(struct block *b, const char *tier)
{
	int dst = word_of(tiers, 3, tier);
	errno = 0;
	void *p = ta_move(b->p, dst >= 0 ? (ta_tier)dst : (ta_tier)9);
	if (p == NULL) {
		const char *why = error_name(errno);
		verify(b, b->size);
		run(why);
		return;
	}
	char text[64];
	snprintf(text, sizeof text, "%s@%s", tier_name(p), p == b->p ? "same" : "new");
	b->p = p;
	verify(b, b->size);
	run(text);
}

// Says how many MiB of a block lie in each tier; all of it must, and the first byte where
// ta_tier_of says.
static void do_parts(const struct block *b)
{
	size_t in[3], first[3], all = malloc_usable_size(b->p);
	CHECK(ta_tier_of_range(b->p, 0, SIZE_MAX, in) == 0 && in[0] + in[1] + in[2] == all,
		"%zu of %zu bytes", in[0] + in[1] + in[2], all);
	CHECK(
		ta_tier_of_range(b->p, 0, 1, first) == 0 && first[ta_tier_of(b->p)] == 1, "the first byte");
	char text[64];
	snprintf(text, sizeof text, "%zu+%zu+%zu", in[0] / MIB, in[1] / MIB, in[2] / MIB);
	run(text);
}

static void each(char **w)
{
	for (unsigned i = 0; i < block_count; i++) {
		struct block *b = &blocks[i];
		if (strcmp(b->name, w[1]) != 0)
			continue;
		if (strcmp(w[0], "tiers") == 0)
			run(tier_name(b->p));
		else if (strcmp(w[0], "parts") == 0)
			do_parts(b);
		else if (strcmp(w[0], "check") == 0)
			verify(b, b->size), run("whole");
		else if (strcmp(w[0], "resize") == 0)
			do_resize(b, size_of(w[2]));
		else if (strcmp(w[0], "move") == 0)
			do_move(b, w[2]);
	}
}

static void do_apart(char **w)
{
	for (unsigned i = 0; i < block_count; i++)
		for (unsigned k = 0; k < block_count; k++) {
			struct block *a = &blocks[i], *b = &blocks[k];
			if (strcmp(a->name, w[1]) != 0 || strcmp(b->name, w[2]) != 0)
				continue;
			uintptr_t a1 = (uintptr_t)a->p / SLICE, a2 = ((uintptr_t)a->p + a->size - 1) / SLICE;
			uintptr_t b1 = (uintptr_t)b->p / SLICE, b2 = ((uintptr_t)b->p + b->size - 1) / SLICE;
			if (a1 <= b2 && b1 <= a2) {
				say("%p and %p share a slice", a->p, b->p);
				return;
			}
		}
	say("apart");
}

// What is no block is refused and not touched.
static void do_strangers(void)
{
	static char data[256];
	char stack[256];
	char *libc = strdup("text"), *page = malloc(300 * KIB), *huge = malloc(5 * MIB);
	char *many = malloc(100), *freed = malloc(100);
	free(freed);
	void *list[] = {NULL, data, stack, (void *)16, (void *)~0ul, (void *)(1ul << 47),
		(void *)&do_strangers, &errno, page + 16, page + 64 * KIB, huge + 16, huge + MIB, many + 8,
		freed, libc == NULL ? NULL : libc + 1};
	for (unsigned i = 0; i < sizeof list / sizeof *list; i++) {
		errno = 0;
		CHECK(ta_tier_of(list[i]) == -1 && errno == EINVAL, "tier of %u, errno %d", i, errno);
		size_t in[3];
		errno = 0;
		CHECK(ta_tier_of_range(list[i], 0, 1, in) == -1 && errno == EINVAL, "range of %u, errno %d",
			i, errno);
		errno = 0;
		CHECK(
			ta_move(list[i], TA_SLOW) == NULL && errno == EINVAL, "move of %u, errno %d", i, errno);
	}
	errno = 0;
	CHECK(ta_tier_of_range(many, 0, 1, NULL) == -1 && errno == EINVAL, "nowhere to put the answer");
	errno = 0;
	CHECK(ta_move(many, (ta_tier)3) == NULL && errno == EINVAL, "no such tier");
	errno = 0;
	CHECK(ta_move(many, (ta_tier)-1) == NULL && errno == EINVAL, "no such tier");
	ta_free(NULL);
	free(many);
	free(page);
	free(huge);
	free(libc);
	say("refused");
}

#endif
