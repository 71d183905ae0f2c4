// What the two programs share: arguments, memory, and a line of JSON for each step.
#ifndef RUN_H
#define RUN_H
#include <stdio.h>
#include <stdlib.h>
#include "tieralloc_compat.h"

static const char *program;

static inline _Noreturn void fail(const char *why)
{
	fprintf(stderr, "%s: %s\n", program, why);
	exit(1);
}

// The i-th argument, a number above 0, or what is usual.
static inline size_t number(int argc, char **argv, int i, size_t usual)
{
	char *end;
	if (i >= argc)
		return usual;
	size_t n = strtoull(argv[i], &end, 10);
	if (n == 0 || *end != 0 || argv[i][0] == '-')
		fail("an argument is no number above 0");
	return n;
}

static inline void *room_for(size_t n, size_t size)
{
	void *p = calloc(n, size);
	return p != NULL ? p : (fail("out of memory"), NULL);
}

static inline void *allocate(size_t bytes, ta_hint_t hint)
{
	char *p = ta_alloc(bytes, hint);
	if (p == NULL)
		fail("out of memory");
	*(volatile char *)p = 0;
	return p;
}

static inline void tell(size_t step, const char *what, size_t live)
{
	char stats[512];
	ta_stats_json(stats, sizeof stats);
	printf("{\"step\": %zu, \"what\": \"%s\", \"blocks_live\": %zu, \"tiers\": %s}\n", step, what,
		live, stats);
	fflush(stdout);
}

#endif
