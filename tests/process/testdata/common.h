// What the test programs share.
#ifndef COMMON_H
#define COMMON_H
#ifndef _GNU_SOURCE
#	define _GNU_SOURCE
#endif
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Says what does not hold and ends the process, the others' buffers unwritten.
#define CHECK(ok, ...) \
	do { \
		if (!(ok)) { \
			dprintf(1, "%s:%d: not so: %s:", __FILE__, __LINE__, #ok); \
			dprintf(1, " " __VA_ARGS__); \
			dprintf(1, "\n"); \
			_exit(1); \
		} \
	} while (0)

struct test {
	const char *name;
	void (*run)(void);
};

// Runs the case that the first argument names.
#define RUN(tests) \
	do { \
		for (unsigned i_ = 0; argc > 1 && i_ < sizeof tests / sizeof *tests; i_++) \
			if (strcmp(argv[1], tests[i_].name) == 0) { \
				tests[i_].run(); \
				return 0; \
			} \
		printf("no such case\n"); \
		return 2; \
	} while (0)

#define MIB (1024 * 1024ul)

// Resident memory in bytes; -1 without /proc.
static inline long rss(void)
{
	long pages = -1;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%*d %ld", &pages) != 1)
		pages = -1;
	fclose(f);
	return pages * 4096;
}

// Keeps a pointer's origin from the compiler, which knows malloc and its misuse.
static inline void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

#endif
