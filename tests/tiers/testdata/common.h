// What the test programs share.
#ifndef COMMON_H
#define COMMON_H
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../../interpose/tieralloc.h"

// The programs are linked without the library, which is preloaded.
#pragma weak ta_alloc
#pragma weak ta_free
#pragma weak ta_move
#pragma weak ta_tier_of
#pragma weak ta_tier_of_range
#pragma weak ta_set_default_hint
#pragma weak ta_set_hint
#pragma weak ta_get_stats
#pragma weak ta_stats_json

// Says what does not hold and ends the process.
#define CHECK(ok, ...) \
	do { \
		if (!(ok)) { \
			dprintf(1, "%s:%d: not so: %s:", __FILE__, __LINE__, #ok); \
			dprintf(1, " " __VA_ARGS__); \
			dprintf(1, "\n"); \
			_exit(1); \
		} \
	} while (0)

#define KIB   1024ul
#define MIB   (1024 * KIB)
#define SLICE (64 * KIB)

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

// Contents that tell a block, and each word of it, from all others.
static inline void pattern_fill(void *p, size_t n, uint64_t seed)
{
	uint64_t *w = p;
	size_t i;
	for (i = 0; i < n / 8; i++)
		w[i] = seed + i * 0x9e3779b97f4a7c15u;
	for (i = i * 8; i < n; i++)
		((unsigned char *)p)[i] = (unsigned char)(seed + i);
}

// The first byte that is not as pattern_fill left it, of a block that had size bytes
// then and of which n are looked at; n when there is none.
static inline size_t pattern_wrong(const void *p, size_t size, size_t n, uint64_t seed)
{
	const uint64_t *w = p;
	size_t i, words = size / 8 < n / 8 ? size / 8 : n / 8;
	for (i = 0; i < words; i++)
		if (w[i] != seed + i * 0x9e3779b97f4a7c15u)
			return i * 8;
	if (n < size)
		return n;
	for (i = i * 8; i < n; i++)
		if (((const unsigned char *)p)[i] != (unsigned char)(seed + i))
			return i;
	return n;
}

// A figure of the report: the key, behind the key of its object if there is one.
static inline uint64_t figure(const char *json, const char *object, const char *key)
{
	char quoted[64];
	if (object != NULL) {
		snprintf(quoted, sizeof quoted, "\"%s\": {", object);
		json = strstr(json, quoted);
		CHECK(json != NULL, "%s", quoted);
	}
	snprintf(quoted, sizeof quoted, "\"%s\": ", key);
	json = strstr(json, quoted);
	CHECK(json != NULL, "%s", quoted);
	return strtoull(json + strlen(quoted), NULL, 10);
}

#endif
