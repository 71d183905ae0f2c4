// poor: threads that begin before there is a limit of the address space, and whose first call
// of the library, under it, frees a block: of all sizes in turn. It ends with 0 when the
// library has all the blocks back.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tieralloc.h"

enum { THREADS = 300 };

static pthread_barrier_t all_begun, limited, all_done;
static char *block[THREADS];
static int refused, changed;

static void *first(void *arg)
{
	char **mine = arg;
	pthread_barrier_wait(&all_begun);
	pthread_barrier_wait(&limited);
	errno = 7;
	free(*mine);
	if (errno != 7)
		__atomic_fetch_add(&changed, 1, __ATOMIC_RELAXED);
	if (malloc(1) == NULL) // left for the process's end
		__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
	pthread_barrier_wait(&all_done); // nobody gets the heap of a thread that has ended
	return NULL;
}

int main(void)
{
	static const size_t sizes[] = {16, 500, 9000, 70000, 700000, 5000000};
	int (*get)(ta_stats *) = (int (*)(ta_stats *))dlsym(RTLD_DEFAULT, "ta_get_stats");
	ta_stats before = {.size = sizeof before}, after = {.size = sizeof after};
	struct rlimit limit, none;
	pthread_t t[THREADS];
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&all_begun, NULL, THREADS + 1);
	pthread_barrier_init(&limited, NULL, THREADS + 1);
	pthread_barrier_init(&all_done, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		block[i] = memset(malloc(sizes[i % 6]), 1, sizes[i % 6]);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], &attr, first, &block[i]) != 0)
			return dprintf(2, "no thread %d\n", i), 2;
	pthread_barrier_wait(&all_begun);
	if (get == NULL || get(&before) != 0)
		return 2;
	getrlimit(RLIMIT_AS, &none);
	limit = none;
	limit.rlim_cur = 1 << 20; // less than there is: no mapping any more
	setrlimit(RLIMIT_AS, &limit);
	pthread_barrier_wait(&limited);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	setrlimit(RLIMIT_AS, &none);
	get(&after);
	long freed = after.blocks_total_freed - before.blocks_total_freed,
		 huge = after.huge_blocks_live;
	printf("%d refused, %d changed, %ld freed, %ld huge\n", refused, changed, freed, huge);
	return refused == 0 || changed != 0 || freed < THREADS || huge != 0;
}
