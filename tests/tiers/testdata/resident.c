/* resident BLOCK TOTAL HOT SECONDS [LIMIT]: fills TOTAL MiB of blocks of BLOCK KiB (one block with
 * 0), of which HOT MiB, spread evenly, stay in use for some seconds. It prints how many KiB of all
 * blocks and of the hot ones are resident then, and ok if the contents are right. With LIMIT it
 * goes on until for three seconds at most LIMIT KiB were resident, and 95% of the hot ones, or for
 * five minutes: on a busy machine SECONDS are little. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { page = 4096, words = page / sizeof(uint64_t) };
static char **chunk;         /* the pieces that are hot or cold as a whole */
static size_t chunks, pages; /* pages of a piece */

static int hot(size_t i, size_t percent) { return (i * percent) % 100 + percent >= 100; }

static uint64_t content(size_t i, size_t k) { return i << 24 | k << 4 | 5; }

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { CALM = 3, MOST = 300 }; // seconds

static void resident(size_t percent, size_t *all, size_t *of_hot)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	*all = *of_hot = 0;
	for (size_t i = 0; i < chunks; i++) {
		uint64_t e[512];
		for (size_t k = 0; k < pages; k += 512) {
			size_t n = pages - k < 512 ? pages - k : 512;
			if (pread(fd, e, n * 8, (off_t)(((uintptr_t)chunk[i] / page + k) * 8)) < 0)
				exit(2);
			for (size_t j = 0; j < n; j++)
				if (e[j] >> 63) {
					*all += 4;
					*of_hot += hot(i, percent) ? 4 : 0;
				}
		}
	}
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	size_t kib = strtoul(argv[1], 0, 10), total = strtoul(argv[2], 0, 10) << 20;
	size_t percent = strtoul(argv[3], 0, 10) * 100 / (total >> 20);
	double seconds = atof(argv[4]);
	size_t piece = kib ? kib << 10 : 2 << 20;
	char *one = kib ? 0 : aligned_alloc(2 << 20, total);
	chunks = total / piece;
	pages = piece / page;
	chunk = calloc(chunks, sizeof *chunk);
	for (size_t i = 0; i < chunks; i++) {
		chunk[i] = kib ? aligned_alloc(page, piece) : one + i * piece;
		for (size_t k = 0; k < pages; k++)
			for (size_t w = 0; w < words; w++)
				((uint64_t *)(chunk[i] + k * page))[w] = content(i, k);
	}
	volatile uint64_t sum = 0;
	size_t hots = 0, all, of_hot, limit = argc > 5 ? strtoul(argv[5], 0, 10) : 0;
	for (size_t i = 0; i < chunks; i++)
		hots += hot(i, percent) ? piece >> 10 : 0;
	double begin = now(), told = begin;
	for (int calm = 0; now() - begin < (calm < CALM && limit ? MOST : seconds);) {
		for (size_t i = 0; i < chunks; i++)
			for (size_t k = 0; hot(i, percent) && k < pages; k++)
				sum += *(uint64_t *)(chunk[i] + k * page + 64 * (k % 64));
		nanosleep(&(struct timespec){0, 20000000}, NULL);
		if (limit && now() - told > 1) {
			told = now();
			resident(percent, &all, &of_hot);
			calm = all <= limit && of_hot >= hots / 100 * 95 ? calm + 1 : 0;
		}
	}
	resident(percent, &all, &of_hot);
	printf("%zu %zu %zu\n", all, of_hot, hots);
	for (size_t i = 0; i < chunks; i++)
		for (size_t k = 0; k < pages; k++)
			for (size_t w = 0; w < words; w++)
				if (((uint64_t *)(chunk[i] + k * page))[w] != content(i, k))
					return 1;
	puts("ok");
	return 0;
}
