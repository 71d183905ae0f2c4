// bench_roll SIZE prints nanoseconds of the processor's time for each step of a window
// of live blocks that moves on: the oldest block is released, a new one is allocated with
// the hint PREFER_FAST, and a byte is written in each memory page of it. A line with the
// number of steps follows, and then the library's report, made while the window is live.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../../../interpose/tieralloc.h"

#define WINDOW (64ul << 20)
#define PAGE   4096
#define RUN_NS 100000000

static __typeof__(ta_alloc) *alloc;
static size_t size;

static _Noreturn void fail(const char *why)
{
	fprintf(stderr, "bench_roll: %s\n", why);
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

static char *get(void)
{
	char *p = alloc(size, TA_PREFER_FAST);
	if (p == NULL)
		fail("out of memory");
	for (size_t i = 0; i < size; i += PAGE)
		*(volatile char *)(p + i) = 1;
	return p;
}

static void print_report(void)
{
	__typeof__(ta_stats_json) *json = (__typeof__(json))function("ta_stats_json");
	size_t room = json(NULL, 0) + 4096;
	char *text = malloc(room);
	if (text == NULL || json(text, room) == 0)
		fail("no report");
	fputs(text, stdout);
	free(text);
}

int main(int argc, char **argv)
{
	size = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	if (size == 0 || size > WINDOW) {
		fprintf(stderr, "usage: bench_roll SIZE\n");
		return 2;
	}
	alloc = (__typeof__(alloc))function("ta_alloc");
	__typeof__(ta_free) *release = (__typeof__(release))function("ta_free");
	long blocks = WINDOW / size, steps = 0, took;
	char **window = calloc(blocks, sizeof *window);
	if (window == NULL)
		fail("out of memory");
	for (long i = 0; i < blocks; i++)
		window[i] = get();
	long start = now();
	do {
		for (long i = 0; i < blocks; i++) {
			release(window[i]);
			window[i] = get();
		}
		steps += blocks;
		took = now() - start;
	} while (took < RUN_NS);
	printf("%.3f\n%ld\n", (double)took / steps, steps);
	print_report();
	return 0;
}
