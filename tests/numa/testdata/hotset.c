/* A program with a hot and a cold set of memory, for the kernel's memory tiering.
 *
 *   hotset MIB SECONDS [PERCENT [one]]
 *
 * allocates two sets of so many MiB in blocks of 1 MiB by turns, a cold one first, and writes
 * them. Then it writes to the pages of the hot set again and again, for so many seconds, or until
 * so many percent of the set are on node 0. It prints where the sets lie and how many pages the
 * kernel has promoted meanwhile, and leaves copies of its maps. With one, the sets are parts of one
 * block, 2 MiB of each by turns. */
#include "guest.h"
#include <time.h>

#define MOST 1024

static char *hot[MOST], *cold[MOST];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* A count of /proc/vmstat. */
static long vmstat(const char *name)
{
	char text[64];
	long n, found = -1;
	FILE *f = fopen("/proc/vmstat", "r");
	MUST(f);
	while (fscanf(f, "%63s %ld", text, &n) == 2)
		if (!strcmp(text, name))
			found = n;
	fclose(f);
	return found;
}

static void find(char **set, long n, long pages[NODES + 1])
{
	memset(pages, 0, (NODES + 1) * sizeof *pages);
	for (long i = 0; i < n; i++)
		where(set[i], MIB, pages);
}

int main(int argc, char **argv)
{
	MUST(argc >= 3);
	long n = atol(argv[1]), percent = argc > 3 ? atol(argv[3]) : 101;
	MUST(n > 0 && n <= MOST);
	char *one = argc > 4 ? malloc(2 * n * MIB) : NULL;
	for (long i = 0; i < n; i++) {
		if (one) {
			cold[i] = one + (i / 2 * 4 + i % 2) * MIB;
			hot[i] = cold[i] + 2 * MIB;
		} else {
			MUST((cold[i] = malloc(MIB)) && (hot[i] = malloc(MIB)));
		}
		fill(cold[i], MIB, 2 * i);
		fill(hot[i], MIB, 2 * i + 1);
	}
	long pages[NODES + 1], before = vmstat("pgpromote_success");
	find(cold, n, pages);
	show("coldfirst", pages);
	find(hot, n, pages);
	show("first", pages);
	uint64_t random = 1;
	for (double begin = now(), asked = begin; now() - begin < atof(argv[2]);) {
		for (long i = 0; i < 1000; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			char *block = hot[(random >> 33) % n];
			for (long page = 0; page < MIB / PAGE; page++)
				((volatile char *)block)[page * PAGE + 8]++;
		}
		if (percent > 100 || now() - asked < 1)
			continue;
		asked = now();
		find(hot, n, pages);
		long all = 0; /* a block that does not begin at a page lies on one more */
		for (int i = 0; i <= NODES; i++)
			all += pages[i];
		if (pages[0] * 100 >= all * percent)
			break;
	}
	find(hot, n, pages);
	show("hot", pages);
	find(cold, n, pages);
	show("cold", pages);
	free(malloc(
		2 * MIB)); /* a request, on whose way the library may look at what the kernel has moved */
	printf("promoted %ld\n", vmstat("pgpromote_success") - before);
	maps();
	return 0;
}
