// Resident memory over time. Each line of output is a number of KiB.
//
//	growth rounds N        three numbers for each of N rounds that fill 100 MB and free it: the
//	                       most that its blocks took, what is resident after it, and what is after
//	                       malloc_trim, which the first round and the last call
//	growth threads N       the same, each round in four fresh threads
//	growth drop ORDER      before and after freeing 400 MB of 1000-byte blocks in
//	                       the order they came, from the last on (back) or at random
//	growth remote          the same, freed by another thread than made them
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PHASE  (100u << 20)
#define DROP   400000000u
#define BLOCK  1000u
#define BLOCKS (DROP / BLOCK)

static uint64_t state = 1;

static uint64_t next(uint64_t *s) // xorshift64*
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 2685821657736338717u >> 16;
}

// The kernel's figure: statm's is summed up lazily and may be off.
static long resident(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[200];
	long kib = -1;
	while (f != NULL && kib < 0 && fgets(line, sizeof line, f) != NULL)
		sscanf(line, "Rss: %ld", &kib);
	if (f != NULL)
		fclose(f);
	return kib;
}

static void report(void)
{
	printf("%ld\n", resident());
	fflush(stdout);
}

static void rest(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

// Touches every page of a block.
static void touch(char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 4096)
		p[i] = 1;
}

// Fills bytes with blocks of one range of sizes, then frees them all. The range
// depends on the round: what one leaves behind is of little use to the next.
// It returns the bytes that all blocks took.
static size_t phase(size_t bytes, unsigned round, uint64_t *random)
{
	static const size_t most[] = {128, 1500, 20000, 300000, 3000000, 9000000};
	size_t limit = most[round % 6], room = bytes / (limit / 8) + 1024, n = 0, sum = 0, took = 0;
	char **block = malloc(room * sizeof *block);
	while (sum < bytes && n < room) {
		size_t size = limit / 8 + next(random) % limit;
		if ((block[n] = malloc(size)) == NULL)
			abort();
		touch(block[n], size);
		took += malloc_usable_size(block[n++]) + sizeof *block;
		sum += size;
	}
	for (size_t i = n; i > 1; i--) { // shuffle
		size_t k = next(random) % i;
		char *t = block[k];
		block[k] = block[i - 1];
		block[i - 1] = t;
	}
	for (size_t i = 0; i < n; i++)
		free(block[i]);
	free(block);
	return took;
}

static void *phase_thread(void *arg)
{
	uint64_t random = (uintptr_t)arg * 77 + 1;
	return (void *)phase(PHASE / 4, (uintptr_t)arg, &random);
}

static void rounds(int n, int threads)
{
	for (int i = 0; i < n; i++) {
		pthread_t t[4];
		size_t most = 0;
		if (!threads) {
			for (unsigned k = 0; k < 6; k++) {
				size_t took = phase(PHASE, k, &state);
				most = took > most ? took : most;
			}
		} else {
			for (uintptr_t k = 0; k < 4; k++)
				pthread_create(&t[k], NULL, phase_thread, (void *)(i + k));
			for (int k = 0; k < 4; k++) {
				void *took;
				pthread_join(t[k], &took);
				most += (size_t)took;
			}
		}
		printf("%zu\n", most / 1024);
		report();
		if (i == 0 || i == n - 1)
			malloc_trim(0);
		report();
	}
}

static char *blocks[BLOCKS];

static void swap(size_t a, size_t b)
{
	char *t = blocks[a];
	blocks[a] = blocks[b];
	blocks[b] = t;
}

static void arrange(const char *order)
{
	if (!strcmp(order, "back"))
		for (size_t i = 0; i < BLOCKS / 2; i++)
			swap(i, BLOCKS - 1 - i);
	if (!strcmp(order, "random"))
		for (size_t i = BLOCKS; i > 1; i--)
			swap(next(&state) % i, i - 1);
}

static void *free_blocks(void *unused)
{
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return unused;
}

static void drop(const char *order, int remote)
{
	for (size_t i = 0; i < BLOCKS; i++)
		memset(blocks[i] = malloc(BLOCK), 1, BLOCK);
	report();
	arrange(order);
	pthread_t t;
	if (remote && pthread_create(&t, NULL, free_blocks, NULL) == 0)
		pthread_join(t, NULL);
	else
		free_blocks(NULL);
	report(); // at once
	rest(1800);
	// The call that does the work. The owner of blocks that another thread freed
	// hears of them when its present page is used up.
	for (int i = remote ? 65536 / BLOCK + 1 : 1; i > 0; i--)
		blocks[i] = malloc(BLOCK);
	report();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";
	if (!strcmp(mode, "rounds") || !strcmp(mode, "threads"))
		rounds(atoi(arg), mode[0] == 't');
	else if (!strcmp(mode, "drop"))
		drop(arg, 0);
	else if (!strcmp(mode, "remote"))
		drop("", 1);
	else
		return fprintf(stderr, "usage: growth rounds|threads N, drop came|back|random, remote\n"),
			   2;
	return 0;
}
