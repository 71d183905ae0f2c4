// grow MODE prints the microseconds of the processor's time of one sequence of realloc
// calls, the median of several. An allocator that copies takes so long that it is
// asked but once.
//
//	double   from 1 MB to 1 GB by doubling, nothing written
//	touched  the same, the first byte of every MB written
//	step     by 64 KB at a time up to 64 MB, the last byte written
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MB     (1ul << 20)
#define RUNS   9
#define ENOUGH 200000000 // ns

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

static char *resize(char *p, size_t n)
{
	p = realloc(p, n);
	if (p == NULL)
		abort();
	return p;
}

static void doubling(int touch)
{
	char *p = NULL;
	size_t have = 0;
	for (size_t n = MB; n <= 1024 * MB; n *= 2) {
		p = resize(p, n);
		for (size_t i = have; touch && i < n; i += MB)
			*(volatile char *)(p + i) = 1;
		have = n;
	}
	free(p);
}

static void stepping(void)
{
	char *p = NULL;
	for (size_t n = 64 << 10; n <= 64 * MB; n += 64 << 10) {
		p = resize(p, n);
		*(volatile char *)(p + n - 1) = 1;
	}
	free(p);
}

static int ascending(const void *a, const void *b)
{
	return *(const long *)a < *(const long *)b ? -1 : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int touch = !strcmp(mode, "touched"), step = !strcmp(mode, "step");
	long took[RUNS];
	if (!touch && !step && strcmp(mode, "double") != 0) {
		fprintf(stderr, "usage: grow double|touched|step\n");
		return 2;
	}
	int runs = 0;
	for (long first = now(); runs < RUNS && now() - first < ENOUGH; runs++) {
		long start = now();
		if (step)
			stepping();
		else
			doubling(touch);
		took[runs] = now() - start;
	}
	qsort(took, runs, sizeof *took, ascending);
	printf("%.3f\n", took[runs / 2] / 1e3);
	return 0;
}
