// bench_alloc WHAT WAY SIZE [FREE] prints nanoseconds of the processor's time for each
// block of SIZE bytes, of which the first is written.
//
//	pair     a block is allocated and released
//	alloc    up to 256 blocks, 64 MiB at most, are allocated; their release is not timed
//	release  the same the other way round
//	batch    both are timed
//
// WAY is how a block is allocated: malloc; the name of a hint, by ta_alloc; or set_ and
// the name of a hint, by malloc after ta_set_hint. With two ways and a plus between them
// they take turns. Blocks go back by FREE, which is free or ta_free.
//
// A block in another tier than its hint's home ends the program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../../interpose/tieralloc.h"

#define BLOCKS 256
#define BYTES  (64ul << 20)
#define RUN_NS 30000000

struct way {
	enum { MALLOC, ALLOC, SET } how;
	ta_hint hint;
	ta_tier home;
};

static const struct {
	const char *name;
	ta_hint hint;
	ta_tier home;
} hints[] = {
	{"hot", TA_HOT, TA_FAST},
	{"warm", TA_WARM, TA_NORMAL},
	{"cold", TA_COLD, TA_SLOW},
	{"pin_fast", TA_PIN_FAST, TA_FAST},
	{"prefer_fast", TA_PREFER_FAST, TA_FAST},
};

static __typeof__(ta_alloc) *alloc;
static __typeof__(ta_set_hint) *set_hint;
static __typeof__(ta_tier_of) *tier_of;
static void (*release)(void *);

static struct way ways[2];
static size_t size;
static char *block[BLOCKS];

static _Noreturn void fail(const char *why)
{
	fprintf(stderr, "bench_alloc: %s\n", why);
	exit(1);
}

static void *function(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);
	return f != NULL ? f : (fail(name), NULL);
}

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

// The way that is named by the n bytes at name.
static struct way parse(const char *name, size_t n)
{
	struct way w = {.how = ALLOC};
	if (n == 6 && strncmp(name, "malloc", 6) == 0)
		return (struct way){MALLOC, TA_WARM, TA_NORMAL};
	if (n > 4 && strncmp(name, "set_", 4) == 0) {
		w.how = SET;
		name += 4;
		n -= 4;
	}
	for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
		if (strlen(hints[i].name) == n && strncmp(hints[i].name, name, n) == 0) {
			w.hint = hints[i].hint;
			w.home = hints[i].home;
			return w;
		}
	fail("no such way");
}

static inline char *get(const struct way *w)
{
	char *p;
	if (w->how == SET)
		set_hint(w->hint);
	p = w->how == ALLOC ? alloc(size, w->hint) : malloc(size);
	if (p == NULL)
		fail("out of memory");
	*(volatile char *)p = 1;
	return p;
}

static void pairs(long n)
{
	for (long i = 0; i < n; i++)
		release(get(&ways[i & 1]));
}

// One round of up to BLOCKS blocks; the times are added to *gets and *releases.
static void round_of(int blocks, long *gets, long *releases)
{
	long start = now(), middle, between;
	for (int i = 0; i < blocks; i++)
		block[i] = get(&ways[i & 1]);
	middle = now();
	for (int i = 0; i < blocks; i++)
		if (tier_of(block[i]) != (int)ways[i & 1].home)
			fail("a block is not in its tier");
	between = now();
	for (int i = 0; i < blocks; i++)
		release(block[i]);
	*gets += middle - start;
	*releases += now() - between;
}

static double pair(void)
{
	long n = 512;
	for (;;) {
		long start = now();
		pairs(n);
		long took = now() - start;
		if (took >= RUN_NS)
			return (double)took / n;
		n *= took > RUN_NS / 16 ? (double)RUN_NS / took + 1 : 8;
	}
}

static double batch(int alloc_too, int release_too)
{
	int blocks = BYTES / size < BLOCKS ? BYTES / size : BLOCKS;
	long gets = 0, releases = 0, n = 0;
	round_of(blocks, &gets, &releases); // the first round finds no memory that was used before
	gets = releases = 0;
	while (gets + releases < RUN_NS) {
		round_of(blocks, &gets, &releases);
		n += blocks;
	}
	return (double)(alloc_too * gets + release_too * releases) / n;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(
			stderr, "usage: bench_alloc pair|alloc|release|batch WAY[+WAY] SIZE [free|ta_free]\n");
		return 2;
	}
	alloc = (__typeof__(alloc))function("ta_alloc");
	set_hint = (__typeof__(set_hint))function("ta_set_hint");
	tier_of = (__typeof__(tier_of))function("ta_tier_of");
	release = (void (*)(void *))function(argc > 4 ? argv[4] : "free");
	const char *way = argv[2], *plus = strchrnul(way, '+');
	ways[0] = parse(way, plus - way);
	ways[1] = *plus != 0 ? parse(plus + 1, strlen(plus + 1)) : ways[0];
	size = strtoul(argv[3], NULL, 0);
	if (size == 0 || size > BYTES)
		fail("bad size");
	int both = strcmp(argv[1], "batch") == 0;
	if (strcmp(argv[1], "pair") == 0)
		printf("%.3f\n", pair());
	else
		printf("%.3f\n",
			batch(both || strcmp(argv[1], "alloc") == 0, both || strcmp(argv[1], "release") == 0));
	return 0;
}
