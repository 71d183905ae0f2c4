// Many threads with small stacks, each of which allocates a little: 50 blocks of 16 to 2000 bytes,
// most of them small. A thread frees some, its neighbour frees others. Arguments: how many threads,
// and whether all of them are alive at once ("together") or come and go, 50 at a time ("pass"). It
// prints the processor time in microseconds, the most memory that was resident in KiB, and the time
// that passed in microseconds.
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 50, GROUP = 50 };

static pthread_barrier_t barrier;
static unsigned char **given; // blocks that a thread leaves to its neighbour
static int group;             // threads that are alive at once

static size_t size_of(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	uint32_t r = *seed >> 8;
	size_t most = r % 8 == 0 ? 2000 : r % 8 < 3 ? 500 : 120;
	return 16 + (r >> 3) % (most - 15);
}

static void *work(void *arg)
{
	int i = (int)(intptr_t)arg;
	uint32_t seed = i + 1;
	unsigned char *mine[BLOCKS], **left = given + (size_t)i * BLOCKS;
	for (int k = 0; k < BLOCKS; k++) {
		size_t n = size_of(&seed);
		if ((mine[k] = malloc(n)) == NULL)
			abort();
		memset(mine[k], i, n);
	}
	for (int k = 0; k < BLOCKS; k++) {
		if (mine[k][0] != (unsigned char)i || mine[k][15] != (unsigned char)i)
			abort();
		if (k % 5 == 0)
			free(mine[k]);
		else if (k % 5 == 1)
			left[k] = mine[k];
	}
	pthread_barrier_wait(&barrier);
	int first = i - i % group;
	unsigned char **of = given + (size_t)(first + (i + 1 - first) % group) * BLOCKS;
	for (int k = 1; k < BLOCKS; k += 5)
		free(of[k]);
	for (int k = 0; k < 10; k++)
		free(malloc(size_of(&seed)));
	for (int k = 0; k < BLOCKS; k++)
		if (k % 5 > 1)
			free(mine[k]);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static long micros(struct timeval t) { return t.tv_sec * 1000000L + t.tv_usec; }

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int n = atoi(argv[1]);
	group = strcmp(argv[2], "pass") == 0 ? GROUP : n;
	pthread_t *threads = malloc(n * sizeof *threads);
	given = calloc((size_t)n * BLOCKS, sizeof *given);
	size_t stack = 16 << 10;
	if (stack < (size_t)sysconf(_SC_THREAD_STACK_MIN))
		stack = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	pthread_attr_t attr;
	if (threads == NULL || given == NULL || n % group != 0 || pthread_attr_init(&attr) != 0 ||
		pthread_attr_setstacksize(&attr, stack) != 0 ||
		pthread_barrier_init(&barrier, NULL, group) != 0)
		return 2;
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < n; i += group) {
		for (int k = i; k < i + group; k++)
			if (pthread_create(&threads[k], &attr, work, (void *)(intptr_t)k) != 0)
				return 3;
		for (int k = i; k < i + group; k++)
			pthread_join(threads[k], NULL);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	printf("%ld %ld %ld\n", micros(u.ru_utime) + micros(u.ru_stime), u.ru_maxrss,
		(to.tv_sec - from.tv_sec) * 1000000L + (to.tv_nsec - from.tv_nsec) / 1000);
	return 0;
}
